"""``python -m pytensor_fuse`` runs a program as Python does, with the pass on."""

import multiprocessing
import os
import signal
import sys
import zipfile

import pytest

from pytensor_fuse import __version__
from support.programs.processes import PATIENCE, run_process, start_process

MAIN = ("-m", "pytensor_fuse")

# What a program can see of how it was started.
LOOK_ROUND = '''"""A program."""
from __future__ import annotations
import inspect, sys

def function():
    return 1

for name, value in sorted(globals().copy().items()):
    print(name, type(value).__name__, value if isinstance(value, str) else "")
loader = __loader__
print(type(loader).__name__, loader.name, loader.path, getattr(__spec__, "name", None))
print(sys.argv, sys.path, sys.flags, sys.modules["__main__"].function is function)
print(function.__module__, function.__code__.co_filename, inspect.getsource(function))
print([name for name in sys.modules if name.split(".")[0] in ("pytensor", "numpy")])
'''


@pytest.fixture
def programs(tmp_path):
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("import sys; print('package sees', sys.argv)")
    (package / "__main__.py").write_text(LOOK_ROUND)
    (package / "module.py").write_text(
        LOOK_ROUND + "from . import __name__ as parent; print(parent)"
    )
    (package / "inner" / "__init__.py").write_text("")
    (tmp_path / "program.py").write_text(LOOK_ROUND)
    (tmp_path / "folder").mkdir()
    with zipfile.ZipFile(tmp_path / "program.zip", "w") as archive:
        archive.writestr("__main__.py", ZIPPED)
        archive.writestr("beside.py", "VALUE = 3")
    return tmp_path


ZIPPED = """
import sys, beside
print(__name__, __file__, repr(__package__), __spec__.name, type(__loader__).__name__, sys.argv)
print(sys.path, beside.VALUE, sorted(globals()), "function")
"""


def alike(programs, *arguments, flags=(), **options):
    """Run a program without and with us, and require that nobody can tell."""
    alone, ours = (
        run_process(*flags, *prefix, *arguments, cwd=programs, check=False, **options)
        for prefix in ((), MAIN)
    )
    assert ours.stdout == alone.stdout
    assert ours.stderr == alone.stderr
    assert ours.returncode == alone.returncode
    return ours


@pytest.mark.parametrize(
    "arguments",
    [
        ["program.py"],
        ["program.py", "a", "-b", "--help", "-m", "c"],
        ["./program.py"],
        ["-m", "program"],
        ["-m", "program", "-m", "-h", "x"],
        ["-m", "package"],
        ["-m", "package.module", "x"],
        ["package", "a", "-m"],
        ["./package/"],
        ["program.zip", "a"],
    ],
)
def test_a_program_sees_what_it_would_see(arguments, programs):
    done = alike(programs, *arguments)
    assert "function" in done.stdout
    assert done.returncode == 0


def test_a_script_finds_the_modules_of_its_own_folder_alone(programs):
    """The command imports nothing by a name that the working directory may have."""
    (programs / "difflib.py").write_text("raise RuntimeError")
    (programs / "inner").mkdir()
    (programs / "inner" / "script.py").write_text("import sys; print('difflib' in sys.modules)")
    assert alike(programs, "inner/script.py").stdout == "False\n"


def test_a_script_in_a_package_knows_no_package(programs):
    assert "ImportError: attempted relative" in alike(programs, "package/module.py").stderr


def test_an_absolute_path(programs):
    alike(programs, str(programs / "program.py"))


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_link_to_a_script(programs):
    (programs / "folder" / "link.py").symlink_to(programs / "program.py")
    alike(programs, "folder/link.py")


@pytest.mark.parametrize("arguments", [["program.py"], ["-m", "json.tool", "--help"]])
def test_safe_path(arguments, programs):
    alike(programs, *arguments, flags=["-P"])


def test_encoding_of_the_source(programs):
    (programs / "latin.py").write_bytes(b"# -*- coding: latin-1 -*-\nprint(ascii('\xe9'))\n")
    assert alike(programs, "latin.py").stdout == "'\\xe9'\n"


@pytest.mark.parametrize(
    "code",
    [
        "raise SystemExit",
        "raise SystemExit(3)",
        "import sys; sys.exit('a message')",
        "import os; os._exit(4)",
        "raise ValueError('x')",
        "def f():\n    1 / 0\ntry:\n    f()\nexcept Exception as e:\n    raise KeyError from e",
        "raise ExceptionGroup('several', [ValueError(1), TypeError(2)])",
        "assert False, 'why'",
        "an error of syntax",
        "import program, nothing_of_that_name",
        "import atexit, sys\natexit.register(lambda: print(sys.modules['__main__'].x))\nx = 1",
        "import threading, time, sys\nx = 2\n"
        "t = lambda: (time.sleep(0.1), print(sys.modules['__main__'].x))\n"
        "threading.Thread(target=t).start()",
        "import pickle\nclass C: pass\nprint(type(pickle.loads(pickle.dumps(C()))) is C)",
        "import sys\nprint(sys.stdin.read().upper())",
    ],
)
def test_endings(code, programs):
    (programs / "ending.py").write_text(code)
    alike(programs, "ending.py", stdin="some input")
    alone, ours = (
        run_process(*prefix, "-m", "ending", cwd=programs, check=False, stdin="some input")
        for prefix in ((), MAIN)
    )
    assert ours.returncode == alone.returncode
    # Above a module, Python shows its own frames.
    assert [line for line in alone.stderr.splitlines() if "<frozen " not in line] in (
        ours.stderr.splitlines(),
        ["Traceback (most recent call last):", *ours.stderr.splitlines()],
    )


@pytest.mark.parametrize(
    "code",
    [
        "import sys; print(sorted(globals()), __name__, __loader__, __spec__, sys.argv, sys.path)",
        "1 / 0",
        "def f():\n    raise ValueError\n\nf()",
        "x = = 1",
        "raise SystemExit(5)",
        "import program",
        "def f(): pass\nprint(f.__module__, f.__code__.co_filename)",
        "",
    ],
)
def test_a_text(code, programs):
    alike(programs, "-c", code, "x", "-c")


@pytest.mark.parametrize("name", ["package", "program.zip"])
@pytest.mark.parametrize("flags", [[], ["-P"]], ids=["", "safe"])
def test_what_holds_a_program(name, flags, programs):
    done = alike(programs, name, "x", flags=flags)
    assert done.returncode == 0


def test_a_program_in_a_directory_that_fails(programs):
    (programs / "package" / "__main__.py").write_text("import sys\n1 / 0")
    alone, ours = (
        run_process(*prefix, "package", cwd=programs, check=False) for prefix in ((), MAIN)
    )
    assert ours.returncode == alone.returncode == 1
    assert "__main__.py" in ours.stderr
    # Above it, Python shows its own frames.
    shown = [line for line in alone.stderr.splitlines() if "<frozen " not in line]
    assert shown == ours.stderr.splitlines()


def test_the_pass_is_on_in_a_text(programs):
    code = "import pytensor_fuse, pytensor; print(pytensor_fuse.status()['fusion'].is_on)"
    assert run_process(*MAIN, "-c", code, cwd=programs).stdout == "True\n"


def test_an_exception_hook_sees_the_program_alone(programs):
    (programs / "hook.py").write_text(
        "import sys\nsys.excepthook = lambda *e: print(e[:2], e[2].tb_lineno)\n1 / 0"
    )
    assert alike(programs, "hook.py").stdout.endswith(" 3\n")
    done = run_process(*MAIN, "-m", "hook", cwd=programs, check=False)
    assert done.stdout.endswith(" 3\n")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are other ones there")
def test_interrupt(programs):
    (programs / "waits.py").write_text("import time\nprint('ready', flush=True)\ntime.sleep(600)")
    with start_process(*MAIN, "waits.py", cwd=programs) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == -signal.SIGINT
    assert errors.startswith("Traceback (most recent call last):\n")
    assert errors.endswith("KeyboardInterrupt\n")
    assert "pytensor_fuse" not in errors


@pytest.mark.skipif(sys.platform == "win32", reason="signals are other ones there")
def test_an_interrupt_that_is_ignored(programs):
    (programs / "goes_on.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
        "print(signal.getsignal(signal.SIGINT).name)"
    )
    done = alike(programs, "goes_on.py", ignore_interrupts=True)
    assert (done.stdout, done.returncode) == ("SIG_IGN\n", 0)


def test_interactive_after_the_program(programs):
    done = run_process("-i", *MAIN, "program.py", cwd=programs, stdin="print(function() + 41)\n")
    assert "42" in done.stdout


STATE = """
from pytensor.compile.mode import optdb
print("FusionRewriter" in repr(optdb["elemwise_fusion"]["composite_elemwise_fusion"]))
"""


@pytest.mark.parametrize("arguments", [["state.py"], ["-m", "state"]])
def test_the_pass_is_on(arguments, programs):
    (programs / "state.py").write_text(STATE)
    assert run_process(*arguments, cwd=programs).stdout == "False\n"
    done = run_process(*MAIN, *arguments, cwd=programs)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_the_environment_variable_keeps_it_off_and_that_is_said(programs):
    (programs / "state.py").write_text(STATE)
    done = run_process(*MAIN, "state.py", cwd=programs, variable="off")
    assert done.stdout == "False\n"
    assert done.stderr == "pytensor_fuse: PYTENSOR_FUSE=off keeps the pass off\n"


def test_a_program_that_sets_flags_and_switches_itself(programs):
    (programs / "sets.py").write_text(
        """
import os
os.environ["PYTENSOR_FLAGS"] = "exception_verbosity=high"
import pytensor, pytensor_fuse
print(pytensor.config.exception_verbosity, pytensor_fuse.status()["fusion"].is_on)
pytensor_fuse.disable()
print(pytensor_fuse.status()["fusion"].is_on, pytensor_fuse.plan_fusion.__name__)
"""
    )
    done = run_process(*MAIN, "sets.py", cwd=programs)
    assert done.stdout == "high True\nFalse plan_fusion\n"


def test_under_another_runner(programs):
    (programs / "state.py").write_text(STATE)
    done = run_process("-m", "cProfile", *MAIN, "state.py", cwd=programs)
    assert "True\n" in done.stdout


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@pytest.mark.parametrize("arguments", [["workers.py", "x"], ["-m", "package.workers", "x"]])
@pytest.mark.parametrize("variable", ["", "0"])
def test_workers(method, arguments, variable, programs):
    code = f"""
import multiprocessing, sys

class Square:
    def __init__(self, number):
        self.number = number

def state(square):
    from pytensor.compile.mode import optdb
    entry = optdb["elemwise_fusion"]["composite_elemwise_fusion"]
    return Square(square.number ** 2), "FusionRewriter" in repr(entry), sys.argv[1:]

if __name__ == "__main__":
    with multiprocessing.get_context({method!r}).Pool(1) as pool:
        [(square, on, arguments)] = pool.map(state, [Square(3)])
    print(square.number, on, arguments)
"""
    (programs / "workers.py").write_text(code)
    (programs / "package" / "__init__.py").write_text("")
    (programs / "package" / "workers.py").write_text(code)
    done = run_process(*MAIN, *arguments, cwd=programs, variable=variable)
    assert done.stdout == f"9 {variable != '0'} ['x']\n"


def test_version():
    assert run_process(*MAIN, "--version").stdout == f"pytensor-fuse {__version__}\n"


def test_the_console_script_finds_what_the_module_finds(tmp_path):
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "pytensor-fuse"
    script.write_text(
        "from pytensor_fuse._cli.runner import run_console_script\nrun_console_script()\n"
    )
    (tmp_path / "here.py").write_text("import sys; print(__name__, sys.argv[1:])")
    (tmp_path / "bin" / "beside.py").write_text("")
    for start in (MAIN, (str(script),)):
        done = run_process(*start, "-m", "here", "x", cwd=tmp_path)
        assert done.stdout == "__main__ ['x']\n"
        assert run_process(*start, "here.py", "x", cwd=tmp_path).stdout == done.stdout
        done = run_process(*start, "-m", "beside", cwd=tmp_path, check=False)
        assert "no module named beside" in done.stderr


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help(option):
    done = run_process(*MAIN, option)
    assert done.stdout.startswith("usage: pytensor-fuse [option ...] script.py [argument ...]\n")
    assert "PYTENSOR_FUSE=0" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        ([], 2, "no program to run"),
        (["-m"], 2, "-m needs the name of a module"),
        (["--fast", "x.py"], 2, "unknown option --fast; see pytensor-fuse --help"),
        (["--trace"], 2, "no program to run"),
        (["--trace", "--fast", "x.py"], 2, "unknown option --fast; see"),
        (["--trace=yes", "x.py"], 2, "unknown option --trace=yes; see"),
        (["--trace-html"], 2, "--trace-html needs the name of a file"),
        (["--trace-html", "folder", "program.py"], 2, "--trace-html: 'folder' is not the name"),
        (["--trace-html=", "program.py"], 2, "--trace-html: '' is not the name of a file"),
        (["--trace-json", "nowhere/t.json", "program.py"], 2, "--trace-json: can't write 'nowhere"),
        (["--trace", "-m", "nowhere"], 1, "no module named nowhere"),
        (["nowhere.py"], 2, "can't open 'nowhere.py': No such file or directory"),
        (
            ["explian", "model.py:f"],
            2,
            "can't open 'explian': No such file or directory; is the command explain meant?",
        ),
        (["Info"], 2, "can't open 'Info': No such file or directory; is the command info meant?"),
        (["plan.py"], 2, "can't open 'plan.py': No such file or directory\n"),
        (["./explian"], 2, "can't open './explian': No such file or directory\n"),
        (["folder"], 1, "can't find '__main__' module in 'folder'"),
        (["-c"], 2, "-c needs the text of a program"),
        (["-m", "nowhere"], 1, "no module named nowhere"),
        (["-m", "nowhere.at.all"], 1, "can't find module nowhere.at.all: ModuleNotFoundError"),
        (["-m", "program.py"], 1, "can't find module program.py: ModuleNotFoundError"),
        (["-m", "package.inner"], 1, "package.inner is a package without a __main__ module"),
        (["-m", "folder"], 1, "folder is a package without a __main__ module"),
        (["-m", "sys"], 1, "no code object available for sys"),
        (["-m", "..x"], 1, "can't find module ..x: "),
    ],
)
def test_wrong_arguments(arguments, code, line, programs):
    (programs / "program.py").write_text("")
    done = run_process(*MAIN, *arguments, cwd=programs, check=False)
    assert done.returncode == code
    assert done.stderr.startswith(f"pytensor_fuse: {line}")
    assert "Traceback" not in done.stderr
    if "no program" not in line:
        assert len(done.stderr.splitlines()) == 1


def test_importing_the_main_module_runs_nothing():
    done = run_process("-c", "import pytensor_fuse.__main__, pytensor_fuse._cli.runner")
    assert (done.stdout, done.stderr) == ("", "")


COMPILES = """
import sys
import pytensor, pytensor.tensor as pt
x = pt.vector("x")
f = pytensor.function([x], pt.exp(x) * 1, mode="FAST_COMPILE", name="the function")
print(f([0.0]), sys.argv)
"""


@pytest.mark.parametrize(
    ("ending", "code"),
    [("", 0), ("sys.exit(3)", 3), ("sys.exit('why')", 1), ("1 / 0", 1), ("raise SystemExit", 0)],
)
@pytest.mark.parametrize("arguments", [["compiles.py"], ["-m", "compiles"]])
def test_trace(arguments, ending, code, programs):
    (programs / "compiles.py").write_text(COMPILES + ending)
    plain = run_process(*arguments, "a", "--trace", cwd=programs, check=False)
    done = run_process(*MAIN, "--trace", *arguments, "a", "--trace", cwd=programs, check=False)
    assert done.stdout == plain.stdout
    assert done.returncode == plain.returncode == code
    # The trace comes last, after what Python says of the end.
    said, _, trace = done.stderr.partition("1 call of pytensor.function in ")
    assert said == plain.stderr or "Traceback" in said
    assert "the function at compiles.py:5" in trace
    assert "canonicalize" in trace


def test_trace_to_files(programs):
    (programs / "compiles.py").write_text(COMPILES + "import os\nos.chdir('/')")
    done = run_process(
        *MAIN, "--trace-html=t.html", "--trace-json", "t.json", "compiles.py", cwd=programs
    )
    assert done.stderr == ""
    assert (programs / "t.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    run_process(
        "-c",
        "import json, pytensor_fuse as p\n"
        "trace = p.Trace.from_dict(json.load(open('t.json')))\n"
        "assert trace.calls[0].name == 'the function'",
        cwd=programs,
    )


def test_a_traced_program_sets_flags_and_compiles_as_it_ends(programs):
    (programs / "flags.py").write_text(
        """
import os, sys, atexit
assert "numpy" not in sys.modules
os.environ["PYTENSOR_FLAGS"] = "exception_verbosity=high"
import pytensor, pytensor.tensor as pt
print(pytensor.config.exception_verbosity)
def compile_one():
    x = pt.vector("x")
    pytensor.function([x], x + 1, mode="FAST_COMPILE", name="at the end")
atexit.register(compile_one)
"""
    )
    done = run_process(*MAIN, "--trace", "flags.py", cwd=programs)
    assert done.stdout == "high\n"
    assert "at the end" in done.stderr


def test_trace_of_a_program_without_pytensor(programs):
    done = run_process(*MAIN, "--trace", "program.py", cwd=programs)
    assert "function" in done.stdout
    assert done.stderr == ("pytensor_fuse: nothing to trace: the program did not import PyTensor\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_children_do_not_report(programs):
    (programs / "forks.py").write_text(
        COMPILES + "import os\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\n"
    )
    done = run_process("-W", "ignore", *MAIN, "--trace", "forks.py", cwd=programs)
    assert done.stderr.count("1 call of pytensor.function") == 1


def test_a_trace_that_cannot_be_written_in_the_end(programs):
    (programs / "gone").mkdir()
    (programs / "removes.py").write_text(COMPILES + "import os\nos.rmdir('gone')\nsys.exit(5)")
    done = run_process(
        *MAIN, "--trace-json", "gone/t.json", "removes.py", cwd=programs, check=False
    )
    assert done.returncode == 5
    assert done.stderr.startswith("pytensor_fuse: can't write the trace: ")
    assert len(done.stderr.splitlines()) == 1


def test_an_interrupted_program_ends_as_interrupted(programs):
    (programs / "interrupted.py").write_text(
        COMPILES + "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
    )
    plain = run_process("interrupted.py", cwd=programs, check=False)
    done = run_process(
        *MAIN,
        "--trace-html=t.html",
        "--trace-json=t.json",
        "interrupted.py",
        cwd=programs,
        check=False,
    )
    assert done.returncode == plain.returncode
    assert (programs / "t.html").exists()
    assert (programs / "t.json").exists()


@pytest.mark.parametrize("end", ["sys.stderr.close()", "sys.stderr = None"])
def test_a_trace_is_written_without_an_error_stream(end, programs):
    (programs / "quiet.py").write_text(COMPILES + f"import sys\n{end}\n")
    plain = run_process("quiet.py", cwd=programs, check=False)
    done = run_process(
        *MAIN,
        "--trace",
        "--trace-html=t.html",
        "--trace-json=t.json",
        "quiet.py",
        cwd=programs,
        check=False,
    )
    assert done.returncode == plain.returncode
    assert (programs / "t.html").exists()
    assert (programs / "t.json").exists()
