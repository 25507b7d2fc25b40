"""``python -m pytensor_fuse audit`` and ``plan``: what they print, and how they fail."""

import json
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

import pytensor_fuse
from pytensor_fuse._cli.failures import ExitCode
from support.programs.processes import PATIENCE, run_process, run_python, start_process

MAIN = ("-m", "pytensor_fuse")

FILE = """
import atexit
import os
import sys
import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op

print("printed by the file")


class Strange(Op):
    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0]


x = pt.vector("x")
a = pt.matrix("<a>")
graph = FunctionGraph([x], [pt.exp(x) + pt.sin(x)], clone=False)
linear = FunctionGraph([a], [pt.linalg.inv(a), pt.linalg.det(a)], clone=False)
strange = FunctionGraph([x], [Strange()(x)], clone=False)
function = pytensor.function([x], pt.exp(x) + 1, mode=Mode("py", "fast_run"))


class Holder:
    graph = graph


def make():
    print("printed by the call")
    return graph


def writes():
    os.write(1, b"printed by the system\\n")
    atexit.register(print, "printed by the exit")
    return graph


def moves():
    os.chdir(os.pardir)
    return graph


class Silent(Exception):
    def __str__(self):
        raise RuntimeError("nothing to say")


def fails_silently():
    raise Silent


class Closed:
    @property
    def graph(self):
        raise ValueError("closed")


closed = Closed()


def returns_variable():
    return x


def raises():
    return deeper()


def deeper():
    raise ValueError("first line\\nsecond line")


def leaves():
    sys.exit(3)


def needs(argument):
    return graph


if __name__ == "__main__":
    raise AssertionError("not a script")
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    (path / "model.py").write_text(FILE)
    (path / "bad_syntax.py").write_text("x = 1\ny = = 2\n")
    (path / "bad_import.py").write_text("x = 1\n\nimport not_there_at_all\n")
    (path / "helper.py").write_text("VALUE = 3\n")
    (path / "imports_helper.py").write_text(
        "import helper\nimport pytensor.tensor as pt\nfrom pytensor.graph.fg import FunctionGraph\n"
        "x = pt.vector()\ngraph = FunctionGraph([x], [x + helper.VALUE])\n"
    )
    # A name that the library itself imports.
    (path / "inner").mkdir()
    (path / "inner" / "json.py").write_text("VALUE = 1\n" + FILE)
    return path


def tool(place, *arguments, **options):
    return run_process("-W", "ignore", *MAIN, *arguments, cwd=place, check=False, **options)


def start_tool(place, *arguments, **options):
    return start_process("-W", "ignore", *MAIN, *arguments, cwd=place, **options)


def without_steps(said):
    """What was said, but for the steps that took long: on a busy machine they may."""
    return "".join(
        line
        for line in said.splitlines(keepends=True)
        if not (line.startswith("pytensor_fuse: ") and line.endswith(" ...\n"))
    )


def fails(place, code, *arguments):
    """Run a command that must fail with one line."""
    done = tool(place, *arguments)
    assert done.returncode == code
    assert done.stdout == ""
    said = without_steps(done.stderr).splitlines()
    [line] = [line for line in said if not line.startswith("printed by")]
    assert line.startswith("pytensor_fuse: ")
    return line


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


def test_a_file_does_not_replace_a_module(place):
    done = tool(place, "plan", os.path.join("inner", "json.py:graph"), "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["stats"]["nodes"] >= 1


MODEL = """
import pymc as pm

with pm.Model() as model:
    mu = pm.Normal("mu")
    pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=[1.0, 2.0, 3.0])

with pm.Model() as discrete:
    pm.Poisson("n", 3)

log_density = model.compile_logp()
"""


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


# Failures ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["audit"], "FILE.py:NAME"),
        (["audit", "model.py"], "'model.py' is not of the form FILE.py:NAME"),
        (["audit", ":function"], "not of the form"),
        (["audit", "model.py:"], "not of the form"),
        (["audit", "model.py:graph", "--shape", "x"], "not of the form INPUT=N,N"),
        (["audit", "model.py:graph", "--shape", "x=a,3"], "not of the form INPUT=N,N"),
        (["audit", "model.py:graph", "--shape", "x=3,,4"], "not of the form INPUT=N,N"),
        (["audit", "model.py:graph", "--svg", "x.svg"], "--svg"),
        (["plan", "model.py:graph", "--target", "jax"], "'jax'"),
        (["plan", "model.py:graph", "more"], "more"),
    ],
)
def test_wrong_usage(place, arguments, says):
    line = fails(place, ExitCode.USAGE, *arguments)
    assert says in line
    assert line.endswith(f"see pytensor-fuse {arguments[0]} --help")


def test_no_file(place):
    line = fails(place, ExitCode.NO_FILE, "audit", "not_there.py:x")
    assert line.endswith("not_there.py cannot be read: No such file or directory")
    assert "." in fails(place, ExitCode.NO_FILE, "audit", ".:x")


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("bad_syntax.py:x", "bad_syntax.py fails on line 2: SyntaxError: invalid syntax"),
        ("bad_import.py:x", "fails on line 3: ModuleNotFoundError: No module named"),
        ("model.py:leaves", "leaves in model.py fails on line 52: SystemExit: 3"),
        ("model.py:raises", "raises in model.py fails on line 48: ValueError: first line"),
        ("model.py:needs", "needs in model.py fails: TypeError: "),
        ("model.py:closed.graph", "closed.graph in model.py fails on line 67: ValueError: closed"),
        ("model.py:fails_silently", "fails_silently in model.py fails on line 59: Silent"),
    ],
)
def test_a_file_that_fails(place, target, says):
    expected = says.replace("line 48", f"line {line_of('first line')}")
    expected = expected.replace("line 52", f"line {line_of('sys.exit(3)')}")
    expected = expected.replace("line 59", f"line {line_of('raise Silent')}")
    expected = expected.replace("line 67", "line " + str(line_of('Error("closed')))
    assert expected in fails(place, ExitCode.FILE_FAILS, "audit", target)


def line_of(text):
    return next(i for i, line in enumerate(FILE.splitlines(), start=1) if text in line)


def test_no_name(place):
    line = fails(place, ExitCode.NO_NAME, "audit", "model.py:grahp")
    assert line.endswith("there is no grahp in model.py; did you mean graph?")
    assert fails(place, ExitCode.NO_NAME, "plan", "model.py:graph.zzz").endswith("in model.py")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("x", "x in model.py is a TensorVariable; give a compiled function,"),
        ("Holder", "is a class Holder;"),
        ("returns_variable", "returns_variable in model.py returns a TensorVariable;"),
    ],
)
def test_wrong_kind(place, name, says):
    line = fails(place, ExitCode.NOT_REPORTABLE, "audit", f"model.py:{name}")
    assert says in line
    assert "such as graph or linear or strange" in line


@pytest.mark.parametrize("command", ["audit", "plan"])
def test_output_that_cannot_be_written(place, command):
    for path in ("not_there/page.html", ".", "n" * 300 + ".html"):
        line = fails(place, ExitCode.CANNOT_WRITE, command, "model.py:graph", "--html", path)
        assert f"{path} cannot be written: " in line
    # The file is not even imported for that.
    fails(place, ExitCode.CANNOT_WRITE, command, "bad_syntax.py:x", "--html", ".")


@pytest.mark.skipif(
    getattr(os, "geteuid", int)() == 0, reason="the superuser may write anywhere, others elsewhere"
)
def test_a_directory_that_cannot_be_written_to(place):
    closed = place / "closed"
    closed.mkdir(mode=0o500)
    line = fails(
        place, ExitCode.CANNOT_WRITE, "audit", "model.py:graph", "--html", "closed/page.html"
    )
    assert "Permission denied" in line


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a place where none may write")
def test_a_place_where_nobody_may_write(place):
    line = fails(
        place, ExitCode.CANNOT_WRITE, "audit", "model.py:graph", "--html", "/proc/page.html"
    )
    assert "/proc/page.html cannot be written: " in line


def test_shapes_that_cannot_be(place):
    for shape in ("x=3,4", "y=3"):
        line = fails(place, ExitCode.CANNOT_REPORT, "audit", "model.py:graph", "--shape", shape)
        assert shape[0] in line


@pytest.mark.skipif(not find_spec("pymc"), reason="PyMC is not installed")
def test_a_model_that_has_no_gradient(place):
    (place / "bayes.py").write_text(MODEL)
    for command in ("audit", "plan"):
        done = tool(place, command, "bayes.py:discrete")
        assert done.returncode in (0, ExitCode.CANNOT_REPORT)
        assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away(place):
    with start_tool(place, "audit", "model.py:function", "--json") as running:
        running.stdout.close()
        assert without_steps(running.stderr.read()) == "printed by the file\n"
        assert running.wait(PATIENCE) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_an_interrupt(place):
    (place / "slow.py").write_text(
        "import time\nprint('waiting', flush=True)\ntime.sleep(600)\nx = 1\n"
    )
    with start_tool(place, "audit", "slow.py:x") as running:
        assert running.stderr.readline() == "waiting\n"
        # It takes long, so that it is named.
        assert running.stderr.readline() == "pytensor_fuse: importing slow.py ...\n"
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, out, err) == (
        ExitCode.INTERRUPTED,
        "",
        "pytensor_fuse: interrupted\n",
    )


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_an_interrupt_that_is_ignored(place):
    (place / "goes_on.py").write_text(FILE + "import signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = tool(place, "audit", "goes_on.py:function", ignore_interrupts=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Audit of a function")


def test_a_terminal_is_told_each_step(place):
    ours, theirs = pytest.importorskip("pty").openpty()
    with start_tool(place, "plan", "model.py:graph", stderr=theirs) as running:
        printed, _ = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0
    os.close(theirs)
    said = os.read(ours, 10_000).decode()
    os.close(ours)
    assert "importing model.py ..." in said
    assert "planning ..." in said
    assert "kernels" in printed


def test_what_is_ours_to_blame():
    done = run_python(
        """
        from pytensor_fuse._cli import commands

        def broken(options):
            raise RuntimeError("a mistake\\nof several lines")

        commands._REPORTS["audit"] = broken
        commands.run("audit", ["model.py:x"])
        """,
        check=False,
    )
    assert done.returncode == ExitCode.OURS
    [line] = done.stderr.splitlines()
    assert "RuntimeError: a mistake (<string>, line " in line
    assert line.endswith("please report it")


# The command line -------------------------------------------------------------------------


def test_help_names_every_code(place):
    for command in ("audit", "explain", "plan", "info"):
        text = tool(place, command, "--help").stdout
        assert all(f"\n  {code} " in text for code in ExitCode)


def test_a_file_does_not_shadow_a_command(tmp_path):
    for command in ("audit", "explain", "plan", "cache", "info"):
        (tmp_path / command).write_text("import sys; print('the script', sys.argv)")
    for command in ("audit", "explain", "plan", "info"):
        assert "exit codes" in tool(tmp_path, command, "--help").stdout
    assert tool(tmp_path, "cache", "path").stdout.endswith(".sqlite\n")
    assert tool(tmp_path, "./audit", "--help").stdout == "the script ['./audit', '--help']\n"


def test_the_guide_lists_every_code():
    guide = Path(__file__).parents[2] / "docs" / "command_line.md"
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
