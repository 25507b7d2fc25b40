"""Random Scans against loops in NumPy and against PyTensor's Python linker."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from pytensor.compile.mode import Mode
from pytensor.link.vm import VMLinker

from pytensor_fuse._native.lowering.registry import NoRuleError
from support.effort import examples
from support.native.lowering import raw_graph, require_near, rewritten_graph, stock
from support.native.machine import MACHINES
from support.native.scans.recipes import build, recipes
from support.native.ways import ways

# PyTensor's linker `py` loses a row that a gradient's step writes in place (PyTensor 3.3.8).
PYTHON_VM = Mode(VMLinker(use_cloop=False, c_thunks=False), None)


def require(outs, expected, rtol):
    for at, (one, other) in enumerate(zip(outs, expected, strict=True)):
        require_near(one, other, f"output {at}", rtol)


def check_recipe(recipe, *, machine="512"):
    """Require that all ways to run a Scan agree with a NumPy loop, and gradients with stock."""
    case = build(recipe)
    dtypes = [one.type.dtype for one in [*case.inputs[3:], *case.outputs]]
    rtol = 2e-4 if "float32" in dtypes else 1e-9
    n_given = len(case.expected)
    if case.n_steps:
        with np.errstate(all="ignore"):
            expected = stock(case.inputs, case.outputs, case.values, PYTHON_VM)
        require(expected[:n_given], case.expected, rtol)
    else:
        # Without steps, the Python linker returns arrays of other shapes.
        wanted = [one for one in case.values if one.dtype.kind == "f"]
        n_gradients = len(case.outputs) - n_given
        expected = [*case.expected, *[np.zeros_like(one) for one in wanted[:n_gradients]]]
    for form in (raw_graph, rewritten_graph):
        fgraph = form(case.inputs, case.outputs)
        try:
            found = ways(fgraph, case.values, machine, reassociates=True)
        except NoRuleError as error:
            # The step uses one of two rows, whose lengths are not known to be equal.
            if "whose shape is computed in each step" not in str(error):
                raise
            event("refused")
            continue
        for outs in found:
            require(outs, expected, rtol)


@given(recipe=recipes(), machine=st.sampled_from(sorted(MACHINES)))
def test_values(recipe, machine):
    check_recipe(recipe, machine=machine)


@given(recipe=recipes(order=1))
@examples(0.3)
def test_gradients(recipe):
    check_recipe(recipe)


@pytest.mark.skipif(
    sys.version_info < (3, 12), reason="PyTensor 3.0 gives second gradients too short sequences"
)
@given(recipe=recipes(order=2))
@examples(0.2)
def test_second_gradients(recipe):
    check_recipe(recipe, machine="256")
