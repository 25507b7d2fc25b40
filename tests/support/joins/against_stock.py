"""Functions with and without the elimination of joins, compared with stock's.

The comparison does not depend on how the elimination works: it is switched off by its name, and its
ops are identified by theirs. The same kernels run with and without it, so results are compared bit
for bit; with those of stock, too, except for the signs of zeros, since stock merges the constants
0.0 and -0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.debug.debugmode import DebugMode
from pytensor.compile.executor import Function
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.elemwise import Elemwise

from support.graphs import assert_same_results
from support.joins.outcomes import always_worth_it
from support.joins.strategies import (
    JoinCase,
)
from support.switching import switched

REWRITE = "join_buffer_elimination"

needs_cxx = pytest.mark.skipif(not pytensor.config.cxx, reason="needs a C++ compiler")
LINKERS = ["py", pytest.param("c", marks=needs_cxx), "numba"]
COMPILERS = LINKERS[1:]


def mode_of(linker: str) -> Mode:
    return (
        Mode("py", "fast_run")
        if linker == "py"
        else get_mode({"c": "CVM", "numba": "NUMBA"}[linker])
    )


def compiled(
    inputs: Sequence[Any],
    outputs: Any,
    linker: str | Mode = "py",
    *,
    ours: bool = True,
    joins: bool = True,
    **options: Any,
) -> Function:
    """Return a function of stock, or of ours with or without the elimination of joins."""
    mode = mode_of(linker) if isinstance(linker, str) else linker
    if not joins:
        mode = mode.excluding(REWRITE)
    options.setdefault("on_unused_input", "ignore")
    # Numba compiles it: our machine code has other bits of mathematical functions.
    features = {"native": False} if ours else {}
    with switched(ours, **features), always_worth_it():
        return pytensor.function(inputs, outputs, mode=mode, **options)


def ops_named(function: Function, *names: str) -> list[Apply]:
    return [node for node in function.maker.fgraph.toposort() if type(node.op).__name__ in names]


def kernels_of(function: Function) -> list[Apply]:
    """Return the kernels on arrays; those on scalars compute lengths.

    Kernels on one element are excluded: PyTensor 3.3 computes them in Numba without an array where
    it can.
    """
    return [
        node
        for node in function.maker.fgraph.toposort()
        if isinstance(node.op, Elemwise) or type(node.op).__name__ == "FusedElemwise"
        if any(not all(n == 1 for n in getattr(out.type, "shape", ())) for out in node.outputs)
    ]


def is_rewritten(function: Function) -> bool:
    return bool(ops_named(function, "WriteJoin", "WriteSplit"))


def assert_equal(got: Sequence[np.ndarray], expected: Sequence[np.ndarray], what: str) -> None:
    for i, (g, e) in enumerate(zip(got, expected, strict=True)):
        np.testing.assert_array_equal(g, e, strict=True, err_msg=f"output {i}, {what}")


def assert_same_bits(got: Sequence[np.ndarray], expected: Sequence[np.ndarray], what: str) -> None:
    assert_equal(got, expected, what)
    for i, (g, e) in enumerate(zip(got, expected, strict=True)):
        assert np.asarray(g).tobytes() == np.asarray(e).tobytes(), f"output {i}, signs, {what}"


def check(
    case: JoinCase,
    linker: str | Mode,
    *,
    rounding: float = 0.0,
    stock_linker: str | Mode | None = None,
) -> Function:
    """Assert that ours agrees with stock: results, kernels, arguments, and results kept.

    ``rounding`` allows additions in another order, or fused with a product. Stock may then use
    another linker, which compiles faster.
    """
    stock = compiled(case.inputs, case.outputs, stock_linker or linker, ours=False)
    without = compiled(case.inputs, case.outputs, linker, joins=False)
    ours = compiled(case.inputs, case.outputs, linker)
    assert not is_rewritten(without)
    assert len(kernels_of(ours)) == len(kernels_of(without))
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    for values in case.calls:
        copies = [value.copy() for value in values]
        got = ours(*values)
        for value, copy in zip(values, copies, strict=True):
            np.testing.assert_array_equal(value, copy, err_msg="an argument was written over")
        if rounding:
            assert_same_results(got, without(*values), rounding)
            assert_same_results(got, stock(*values), rounding)
        else:
            assert_same_bits(got, without(*values), "without the rewrite")
            assert_equal(got, stock(*values), "by stock")
        kept += [(result, np.copy(result)) for result in got]
    for result, copy in kept:
        np.testing.assert_array_equal(result, copy, err_msg="a later call wrote over a result")
    return ours


def debug_mode(*, c_code: bool) -> DebugMode:
    return DebugMode(
        optimizer="fast_run",
        stability_patience=2,
        check_c_code=c_code,
        check_py_code=True,
        check_isfinite=False,
        require_matching_strides=False,
    )


def vectors(n: int) -> list[Variable]:
    return [pt.vector(f"x{i}") for i in range(n)]


def numbers(*lengths: int) -> list[np.ndarray]:
    return [np.random.default_rng(i).normal(size=n) for i, n in enumerate(lengths)]


def joined(streams: Sequence[Variable], axis: int = 0) -> Variable:
    return pt.concatenate(list(streams), axis=axis)
