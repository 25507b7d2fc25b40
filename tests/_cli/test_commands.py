"""``python -m pytensor_fuse audit`` and ``plan``: what they print."""

import json
import os
import platform
import re
import shlex
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

import pytensor_fuse
from pytensor_fuse._cli.failures import ExitCode
from support.programs.commands import MAIN, MODEL, fails, tool, without_steps
from support.programs.processes import run_python

# Reports ----------------------------------------------------------------------------------


def test_an_audit_of_a_function(place):
    done = tool(place, "audit", "model.py:function")
    assert done.returncode == 0
    assert done.stdout.startswith("Audit of a function")
    assert "kernels" in done.stdout
    assert without_steps(done.stderr) == "printed by the file\n"


def test_an_audit_as_json(place):
    done = tool(place, "audit", "model.py:make", "--json", "--shape", "x=1000")
    report = json.loads(done.stdout)
    assert report["memory"]["results"][0]["nbytes"] == 8000
    assert without_steps(done.stderr) == "printed by the file\nprinted by the call\n"


def test_an_audit_as_a_page(place):
    done = tool(place, "audit", "model.py:linear", "--html", "audit.html")
    assert (done.returncode, done.stdout) == (0, "")
    page = (place / "audit.html").read_text(encoding="utf-8")
    assert "one LU factorization of &lt;a&gt;" in page


def test_unknown_ops_are_reported(place):
    done = tool(place, "audit", "model.py:strange")
    assert done.returncode == ExitCode.SUCCESS
    assert "Strange" in done.stdout
    [line] = [line for line in done.stderr.splitlines() if line.startswith("pytensor_fuse: the")]
    assert "does not know these ops: " in line
    assert "Strange" in line


def test_an_explanation(place):
    done = tool(place, "explain", "model.py:function", "--html", "explained.html")
    assert (done.returncode, done.stdout) == (0, "")
    assert "<h2>native</h2>" in (place / "explained.html").read_text(encoding="utf-8")
    done = tool(place, "explain", "model.py:function", "--json")
    parts = {"fusion", "native", "joins", "linalg", "cache"}
    assert set(json.loads(done.stdout)) == parts | {"format", "versions", "title"}
    lines = tool(place, "explain", "model.py:function").stdout.splitlines()
    assert parts <= set(lines)


def test_a_plan(place):
    done = tool(place, "plan", "model.py:Holder.graph")
    assert done.returncode == 0
    assert "kernels  3 -> 1" in done.stdout


def test_a_plan_in_all_forms(place):
    files = ("--html", "plan.html", "--svg", "plan.svg", "--dot", "plan.dot")
    done = tool(place, "plan", "model.py:graph", "--json", "--target", "c", *files)
    assert done.returncode == 0
    plan = json.loads(done.stdout)
    assert plan["stats"]["kernels_after"] == 1
    [kernel] = plan["kernels"]
    assert sorted(kernel["ops"]) == ["Add", "Exp", "Sin"]
    assert kernel["inputs"] == ["x"]
    assert "<html" in (place / "plan.html").read_text(encoding="utf-8")
    assert "<svg" in (place / "plan.svg").read_text(encoding="utf-8")
    assert "digraph" in (place / "plan.dot").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["audit", "plan"])
def test_json_to_a_file(place, command):
    done = tool(place, command, "model.py:graph", "--json", f"{command}.json")
    assert (done.returncode, done.stdout) == (0, "")
    report = json.loads((place / f"{command}.json").read_text(encoding="utf-8"))
    assert report["format"] == 1
    # The same as is printed, to - or by default; with others, in any order.
    for option in (["--json", "-"], ["--json=-"], ["--html", "both.html", "--json"]):
        done = tool(place, command, "model.py:graph", *option)
        assert json.loads(done.stdout) == report
        assert done.returncode == 0
    line = fails(place, ExitCode.USAGE, command, "--json", "model.py:graph")
    assert "put it before --json" in line
    where = os.path.join("nowhere", "plan.json")
    line = fails(place, ExitCode.CANNOT_WRITE, command, "model.py:graph", "--json", where)
    assert "nowhere" in line


def test_the_target_that_a_plan_prints(place):
    done = tool(place, "plan", "model.py:graph", "--target", "strict")
    assert "for target 'strict'" in done.stdout


def test_what_is_beside_the_file_can_be_imported(place):
    path = os.path.join("..", place.name, "imports_helper.py")
    assert tool(place, "plan", f"{path}:graph").returncode == 0


@pytest.mark.parametrize("command", ["audit", "explain", "plan"])
def test_the_file_may_set_the_flags_of_pytensor(place, command, tmp_path):
    (place / "flags.py").write_text(
        f"import os\nos.environ['PYTENSOR_FLAGS'] = 'floatX=float32,base_compiledir={tmp_path}'\n"
        "import pytensor, pytensor.tensor as pt\n"
        "assert pt.vector().dtype == 'float32', 'PyTensor was there before'\n"
        "x = pt.vector()\n"
        "f = pytensor.function([x], pt.exp(x) + 1, mode='FAST_COMPILE')\n"
    )
    done = tool(place, command, "flags.py:f")
    assert done.returncode == 0, done.stderr


def test_a_file_does_not_replace_a_module(place):
    done = tool(place, "plan", os.path.join("inner", "json.py:graph"), "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["stats"]["nodes"] >= 1


@pytest.mark.skipif(not find_spec("pymc"), reason="PyMC is not installed")
def test_a_model(place):
    (place / "bayes.py").write_text(MODEL)
    audit = json.loads(tool(place, "audit", "bayes.py:model", "--json").stdout)
    assert audit["kernels"]["kernels"]
    done = tool(place, "plan", "bayes.py:model", "--json")
    assert done.returncode == 0
    plan = json.loads(done.stdout)["stats"]
    assert plan["kernels_after"] < plan["kernels_before"]


@pytest.mark.skipif(not find_spec("pymc"), reason="PyMC is not installed")
@pytest.mark.parametrize("command", ["audit", "explain", "plan"])
def test_a_function_of_a_model(place, command):
    (place / "bayes.py").write_text(MODEL)
    for name in ("log_density", "model.compile_logp"):
        done = tool(place, command, f"bayes.py:{name}")
        assert done.returncode == 0, done.stderr


def test_only_the_report_is_printed(place):
    done = tool(place, "audit", "model.py:writes", "--json")
    assert json.loads(done.stdout)["title"] == "Audit of a graph: 3 nodes"
    for who in ("file", "system", "exit"):
        assert f"printed by the {who}" in done.stderr


def test_a_file_that_changes_the_directory(place):
    assert tool(place, "plan", "model.py:moves", "--dot", "moved.dot").returncode == 0
    assert (place / "moved.dot").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a POSIX shell and its devices")
@pytest.mark.parametrize(
    ("redirection", "code"),
    [("> /dev/full", 7), (">&-", 7), ("2>&-", 0), ("| head -c 1", 0)],
)
def test_streams_that_take_nothing(place, redirection, code):
    command = shlex.join([sys.executable, "-W", "ignore", *MAIN, "audit", "model.py:graph"])
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} {redirection}"],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


# The command line -------------------------------------------------------------------------


def test_help_names_every_code(place):
    of_files = (
        ExitCode.NO_FILE,
        ExitCode.FILE_FAILS,
        ExitCode.NO_NAME,
        ExitCode.NOT_REPORTABLE,
    )
    for command in ("audit", "explain", "plan", "info", "cache"):
        text = tool(place, command, "--help").stdout
        takes_file = command not in ("info", "cache")
        for code in ExitCode:
            assert (f"\n  {code} " in text) is (takes_file or code not in of_files)


def test_a_file_does_not_shadow_a_command(tmp_path):
    for command in ("audit", "explain", "plan", "cache", "info"):
        (tmp_path / command).write_text("import sys; print('the script', sys.argv)")
    for command in ("audit", "explain", "plan", "info"):
        assert "exit codes" in tool(tmp_path, command, "--help").stdout
    assert tool(tmp_path, "cache", "path").stdout.endswith(".sqlite\n")
    assert tool(tmp_path, "./audit", "--help").stdout == "the script ['./audit', '--help']\n"


def test_the_guide_lists_every_code():
    guide = Path(__file__).parents[2] / "docs" / "reference" / "command_line.md"
    text = guide.read_text(encoding="utf-8")
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert set(ExitCode) <= listed


def test_a_trace_of_what_a_report_compiles(place):
    done = tool(place, "--trace", "audit", "model.py:function")
    assert done.returncode == 0
    assert done.stdout.startswith("Audit of")
    assert "1 call of pytensor.function" in done.stderr


def test_the_programs_help_names_them(place):
    text = tool(place, "--help").stdout
    assert "audit FILE.py:NAME" in text
    assert "explain FILE.py:NAME" in text
    assert "plan FILE.py:NAME" in text


# Information ------------------------------------------------------------------------------


def test_info(tmp_path):
    done = tool(tmp_path, "info", "--json", variable="fusion,merging")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["format"] == 1
    assert found["versions"]["pytensor-fuse"] == pytensor_fuse.__version__
    assert found["versions"]["pytensor"] == version("pytensor")
    assert found["python"] == platform.python_version()
    assert set(found["features"]) == set(pytensor_fuse.status())
    on = {name for name, feature in found["features"].items() if feature["is_on"]}
    assert on == {"fusion", "merging"}
    assert found["features"]["joins"]["is_wanted"] is False
    assert set(found["features"]["accelerators"]["parts"]) >= {"clones", "queries"}
    assert found["environment"]["PYTENSOR_FUSE"] == "fusion,merging"
    assert set(found["cache"]) == {"level", "path", "entries_on_disk", "bytes_on_disk"}


def test_info_as_text(tmp_path):
    done = tool(tmp_path, "info", variable="fusion,merging")
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == [
        "versions",
        "environment",
        "features",
        "cache",
    ]
    assert f"  pytensor         {version('pytensor')}" in lines
    assert "  fusion           on" in lines
    assert "  joins            off: not wanted" in lines
    done = tool(tmp_path, "info", "--json", "info.json")
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads((tmp_path / "info.json").read_text(encoding="utf-8"))["cache"]
    assert "--json" in tool(tmp_path, "info", "--help").stdout
    assert fails(tmp_path, ExitCode.USAGE, "info", "model.py:x")


def test_info_says_why_a_feature_is_off(tmp_path):
    code = """
        import pytensor_fuse
        from pytensor_fuse._activation import switch
        from pytensor_fuse._activation.units import UNITS
        UNITS["joins"].reason = "the moon is full"
        UNITS["accelerators:clones"].reason = "it rains"
        switch._switch()
        print(pytensor_fuse.info())
        """
    lines = run_python(code).stdout.splitlines()
    assert "  joins            off: the moon is full" in lines
    assert "    clones: off: it rains" in lines
