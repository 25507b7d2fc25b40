"""How the commands of ``python -m pytensor_fuse`` fail: in one line, with an exit code."""

import os
import signal
import sys
from importlib.util import find_spec

import pytest

from pytensor_fuse._cli.failures import ExitCode
from support.programs.commands import FILE, MODEL, fails, start_tool, tool, without_steps
from support.programs.processes import PATIENCE, run_python


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
