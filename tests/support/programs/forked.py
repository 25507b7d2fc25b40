"""Processes in which PyTensor has not been imported yet, but all of its dependencies have.

Starting Python, and importing NumPy and SciPy, takes longer than most tests do in a process of
their own. Here each process is forked from one that has done that, and has imported
`support.programs.future`, which changes PyTensor while it is imported.
"""

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from support.programs.processes import run_python

# Modules that PyTensor and a small compilation import. No thread may run where a process forks.
_PARENT = """
import ast, dataclasses, gc, json, os, sys, traceback, types
import numpy.random, numpy.ma, scipy.linalg, scipy.sparse, scipy.special

sys.path.insert(0, sys.argv[1])
import support.programs.future

# A child's collector neither visits nor copies the objects that exist by now.
gc.collect()
gc.freeze()

def run(code, path):
    for number in (1, 2):
        os.dup2(os.open(f"{path}{number}", os.O_WRONLY | os.O_CREAT), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.modules["__main__"] = program = types.ModuleType("__main__")
    exec(compile(code, "<string>", "exec"), vars(program))

assert "pytensor" not in sys.modules
for line in sys.stdin:
    child = os.fork()
    if not child:
        status = 1
        try:
            run(*json.loads(line))
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@functools.cache
def _parent():
    process = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(Path(__file__).parents[2])],
        env={**os.environ, "PYTENSOR_FUSE": "", "OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(process.communicate)
    return process


def run_forked(*code):
    """Run indented pieces of code, as `run_python` does; exit functions do not run.

    Raises
    ------
    AssertionError
        If the code raises an exception. The message contains the error output.
    """
    if not hasattr(os, "fork"):
        return run_python(*code)
    text = "\n".join(map(textwrap.dedent, code))
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "output")
        parent = _parent()
        print(json.dumps([text, path]), file=parent.stdin, flush=True)
        status = int(parent.stdout.readline())
        stdout, stderr = (Path(f"{path}{number}").read_text() for number in (1, 2))
    assert status == 0, stderr
    return subprocess.CompletedProcess(["fork"], status, stdout, stderr)
