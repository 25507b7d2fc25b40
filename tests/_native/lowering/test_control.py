"""IfElse, checks, copies and inner graphs."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor import ifelse
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.ops import deep_copy_op, view_op
from pytensor.raise_op import Assert, CheckAndRaise

from pytensor_fuse._native.lowering.registry import NoRuleError, lower
from pytensor_fuse._native.program.model import If
from support.native.lowering import (
    check,
    check_failure,
    lowered,
    raw_graph,
    require_same,
    rewritten_graph,
    run,
    stock,
)
from support.numba_only import numba_mirrored


# The Python linker has no IfElse.
def check_branches(inputs: list, outputs: list, values: list, expected: list) -> None:
    for fgraph in (raw_graph(inputs, outputs), rewritten_graph(inputs, outputs)):
        for at, (one, other) in enumerate(zip(run(fgraph, values), expected, strict=True)):
            require_same(np.asarray(one), np.asarray(other, one.dtype), f"output {at}")


@pytest.mark.parametrize("condition", [0, 1, -7])
def test_ifelse(condition: int) -> None:
    c, x, y, a = pt.lscalar("c"), pt.vector("x"), pt.matrix("y"), pt.scalar("a")
    outs = [
        ifelse(c, pt.exp(x) * 2, y.sum(axis=0)),
        ifelse(c, x, y[0]) + 1,
        ifelse(c, a, y.sum()),
        *ifelse(c, [x * a, a], [x + a, a * 2]),
    ]
    data = np.arange(6.0).reshape(2, 3)
    xs = np.array([0.1, 0.2])
    if condition:
        expected = [np.exp(xs) * 2, xs + 1, 0.5, xs * 0.5, 0.5]
    else:
        expected = [data.sum(axis=0), data[0] + 1, 15.0, xs + 0.5, 1.0]
    check_branches([c, x, y, a], outs, [condition, xs, data, 0.5], expected)


def test_only_one_side_runs() -> None:
    c, x = pt.scalar("c"), pt.vector("x")
    out = ifelse(c > 0, Assert("not here")(x, pt.all(x > 0)) * 2, x - 1)
    fgraph = rewritten_graph([c, x], [out])
    if not any(type(node.op).__name__ == "LazyIfElse" for node in fgraph.apply_nodes):
        pytest.skip("this version of PyTensor computes both sides")
    values = np.array([-1.0, 2])
    [found] = run(fgraph, [-1, values])
    assert found.tolist() == [-2, 1]
    with pytest.raises(AssertionError, match="not here"):
        run(fgraph, [1, values])
    program = lowered(fgraph).program
    assert any(isinstance(statement, If) for statement in program.body)


def test_a_branch_of_arrays_whose_length_one_side_alone_knows() -> None:
    c, x = pt.scalar("c"), pt.vector("x")
    out = ifelse(c > 0, pt.alloc(np.float64(1), pt.sum(pt.cast(x, "int64"))), x)
    fgraph = rewritten_graph([c, x], [out])
    if any(type(node.op).__name__ == "LazyIfElse" for node in fgraph.apply_nodes):
        with pytest.raises(NoRuleError, match="one side of a branch"):
            lowered(fgraph)
    else:
        assert run(fgraph, [1, np.array([1.0, 2])])[0].tolist() == [1, 1, 1]


# Checks


class CheckParameter(CheckAndRaise):
    """A check like PyMC's."""

    def __init__(self, msg: str = "") -> None:
        super().__init__(ValueError, msg)


@pytest.mark.parametrize("message", ["wrong", 'a {0} % "b" {}\n\u00e9'])
def test_checks(message: str) -> None:
    x, n = pt.vector("x"), pt.lscalar("n")
    out = CheckParameter(message)(x, n > 0, pt.all(x > 0)) * 2
    values = np.array([1.0, 2])
    check([x, n], [out], [values, 3])
    check_failure([x, n], [out], [values, 0], ValueError, message)
    check_failure([x, n], [out], [-values, 3], ValueError, message)
    out = Assert(message)(n, n > 0)
    check([x, n], [out], [values, 3])
    check_failure([x, n], [out], [values, 0], AssertionError, message)


# Copies


def test_copies_and_views() -> None:
    x, a = pt.matrix("x"), pt.scalar("a")
    outs = [deep_copy_op(x), view_op(x) + 1, deep_copy_op(a), deep_copy_op(x.T), view_op(a)]
    check([x, a], outs, [np.arange(6.0).reshape(2, 3), 0.5], rewrites=False)


def test_outputs_twice() -> None:
    x = pt.vector("x")
    y = pt.exp(x)
    check([x], [y, y, x, y[1:]], [np.arange(3.0)])


# Inner graphs


def test_inner_graphs() -> None:
    x, y = pt.vector("x"), pt.scalar("y")
    op = OpFromGraph([x, y], [pt.exp(x) * y, x.sum() + y, x[1:]])
    outer = OpFromGraph([x, y], [out * 2 for out in op(x, y + 1)])
    a, b = pt.vector("a"), pt.scalar("b")
    check([a, b], [*outer(a, b), *op(a * 2, a[0])], [np.arange(3.0), 0.5], rtol=1e-15)


def test_inner_graphs_are_refused_for_what_is_in_them() -> None:
    x = pt.vector("x")
    op = OpFromGraph([x], [numba_mirrored(x) + 1])
    assert "inside of it: no rule for NumbaMirrored" in (lower.refusal(op(x).owner) or "")


def test_fused_elemwise() -> None:
    x, i = pt.matrix("x"), pt.lvector("i")
    a = pt.vector("a")
    outs = [pt.exp(a[i]).sum(), (x * a.sum()).sum(axis=0), pt.log(x.sum() + 1) * a]
    values = [np.arange(6.0).reshape(2, 3), np.array([0, 2, 2]), np.array([0.5, 1, 2])]
    expected = stock([x, i, a], outs, values)
    fgraph = rewritten_graph([x, i, a], outs)
    for one, other in zip(run(fgraph, values), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
