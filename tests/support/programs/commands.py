"""Commands of ``python -m pytensor_fuse``, and the file that tests run them on."""

from support.programs.processes import run_process, start_process

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


MODEL = """
import pymc as pm

with pm.Model() as model:
    mu = pm.Normal("mu")
    pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=[1.0, 2.0, 3.0])

with pm.Model() as discrete:
    pm.Poisson("n", 3)

log_density = model.compile_logp()
"""
