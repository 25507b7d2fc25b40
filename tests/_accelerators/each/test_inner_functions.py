"""Inner functions of what runs without C run without C, and give the same."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Variable

from support.switching import switched

inner_function = pytest.importorskip(
    "pytensor.compile.inner_function", reason="PyTensor 3.3 has them"
)


def scanned() -> tuple[Variable, Variable]:
    x = pt.vector("x")
    trace = pytensor.scan(
        lambda now, before: pt.tanh(before + now),
        sequences=[x],
        outputs_info=[pt.constant(np.float64(0))],
        return_updates=False,
    )
    return x, trace


def inner_linker(mode: str, **features: bool) -> object:
    x, trace = scanned()
    with switched(native=False, cache=False, **features):
        function = pytensor.function([x], trace, mode=mode)
    np.testing.assert_allclose(function(np.ones(3))[:1], np.tanh(1))
    [scan] = [
        node.op
        for node in function.maker.fgraph.apply_nodes
        if isinstance(node.op, inner_function.HasInnerFunction)
    ]
    return scan.fn.maker.linker


def test_without_c() -> None:
    linker = inner_linker("FAST_COMPILE")
    assert (linker.use_cloop, linker.c_thunks) == (False, False)
    assert inner_linker("FAST_COMPILE", accelerators=False).c_thunks is not False


@pytest.mark.skipif(not pytensor.config.cxx, reason="there is no C compiler")
def test_with_c() -> None:
    assert inner_linker("CVM").c_thunks is not False
