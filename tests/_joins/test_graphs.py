"""Streams written into the joined buffer, on graphs of each kind, against stock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.executor import Function
from pytensor.compile.mode import get_mode
from pytensor.graph.basic import Variable

import pytensor_fuse
from support.joins.against_stock import (
    LINKERS,
    REWRITE,
    check,
    compiled,
    debug_mode,
    is_rewritten,
    joined,
    kernels_of,
    mode_of,
    numbers,
    ops_named,
    vectors,
)
from support.joins.strategies import (
    JoinCase,
    laid_out,
)


def _shared_kernel(x: Variable, y: Variable) -> list[Variable]:
    common = pt.exp(x)
    return [common + 1, pt.tanh(y), common * common]


def _kernel_and_output(x: Variable, y: Variable) -> list[Variable]:
    common = pt.exp(x)
    return [common + 1, common * 2]


GRAPHS: dict[str, Callable[[Variable, Variable], list[Variable]]] = {
    "two kernels": lambda x, y: [joined([x * 2 + 1, pt.tanh(y)])],
    "single ops": lambda x, y: [joined([-x, pt.exp(y)])],
    "a kernel of two streams": lambda x, y: [joined(_shared_kernel(x, y))],
    "a kernel with another output": lambda x, y: [
        joined([_kernel_and_output(x, y)[0], y + 1]),
        _kernel_and_output(x, y)[1],
    ],
    "a stream and an input": lambda x, y: [joined([x * 2 + 1, y])],
    "the same stream twice": lambda x, y: [joined([x * 2 + 1, x * 2 + 1, y - 1])],
    "the same input twice": lambda x, y: [joined([y, x * 2 + 1, y])],
    "a stream that is an output": lambda x, y: [joined([x * 2 + 1, y - 1]), y - 1],
    "nested joins": lambda x, y: [joined([joined([x * 2 + 1, y - 1]), joined([pt.exp(y), -x])])],
    "a stream from a join": lambda x, y: [joined([pt.exp(joined([x * 2 + 1, y - 1])), x - 3])],
    "two joins of one stream": lambda x, y: [
        joined([x * 2 + 1, y - 1]),
        joined([pt.exp(y), x * 2 + 1]),
    ],
    "one kernel, two joins": lambda x, y: [
        joined([pt.exp(x) + 1, y - 1]),
        joined([y + 3, pt.exp(x) * 3]),
    ],
    "a stream of another": lambda x, y: [joined([x * 2 + 1, pt.tanh(x * 2 + 1)[::-1], y + 1])],
    "scalars": lambda x, y: [pt.stack([x.sum(), pt.exp(y.sum())]), joined([x + 1, y * y])],
    "integers": lambda x, y: [joined([x * 2 + 1, pt.arange(4) * 3])],
    "raveled": lambda x, y: [
        joined([(x[:, None] * y).ravel() * 2, pt.exp(x[:, None] + y).ravel()])
    ],
    "second axis": lambda x, y: [joined([x[:, None] * 2 + 1, pt.exp(x[:, None] + y)], axis=1)],
    "stacked": lambda x, y: [pt.stack([x * 2 + 1, pt.exp(x)]), pt.stack([y + 1, y * 3], axis=1)],
    "broadcast": lambda x, y: [joined([pt.ones_like(x) * pt.exp(y.sum()), pt.tanh(y)])],
}


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("name", GRAPHS)
def test_named_graphs(name: str, linker: str) -> None:
    x, y = vectors(2)
    calls = [numbers(5, 3), numbers(2, 2), numbers(0, 4), numbers(1, 1), numbers(4, 0)]
    strided = [laid_out(value, "reversed") for value in numbers(5, 3)]
    check(JoinCase([x, y], GRAPHS[name](x, y), [*calls, strided, calls[0]]), linker)


@pytest.mark.every(4)
@pytest.mark.parametrize("name", GRAPHS)
def test_debug_mode(name: str) -> None:
    x, y = vectors(2)
    function = compiled([x, y], GRAPHS[name](x, y), debug_mode(c_code=bool(pytensor.config.cxx)))
    for values in (numbers(5, 3), numbers(1, 4)):
        function(*values)


NO_JOIN_LEFT = (
    "two kernels",
    "single ops",
    "a kernel of two streams",
    "a kernel with another output",
    "a stream and an input",
    "nested joins",
    "second axis",
)


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("name", NO_JOIN_LEFT)
def test_joins_are_eliminated(name: str, linker: str) -> None:
    if (name, linker) == ("single ops", "py"):
        pytest.skip("NumPy's own function is faster than a kernel of Python code")
    x, y = vectors(2)
    function = compiled([x, y], GRAPHS[name](x, y), linker)
    assert not ops_named(function, "Join")
    assert is_rewritten(function)


@pytest.mark.parametrize("linker", LINKERS)
def test_operands_that_make_no_kernel_are_left_alone(linker: str) -> None:
    x, y = vectors(2)
    function = compiled([x, y], [joined([x, y[::-1]])], linker)
    assert not is_rewritten(function)


# Kernels ----------------------------------------------------------------------------------


def absorbed(function: Function) -> Counter[tuple[Any, ...]]:
    """What the fused kernels do besides their own work."""
    return Counter(
        (
            len([entry for entry in node.op.indexed_inputs if entry]),
            len([entry for entry in node.op.indexed_outputs if entry]),
            len([entry for entry in node.op.reduced_outputs if entry]),
        )
        for node in ops_named(function, "FusedElemwise")
    )


def indexed_and_reduced() -> tuple[list[Variable], list[Variable], list[np.ndarray]]:
    x, y = vectors(2)
    index = pt.vector("index", dtype="int64")
    taken = pt.exp(x[index]) * y
    outputs = [joined([taken + 1, pt.tanh(y), x * 2]), taken.sum()]
    rng = np.random.default_rng(3)
    return [x, y, index], outputs, [*numbers(5, 9), rng.integers(5, size=9)]


@pytest.mark.skipif(
    not hasattr(pytensor.tensor.rewriting, "fused_elemwise"), reason="PyTensor 3.0 has none"
)
def test_fused_elemwise_absorbs_what_it_did() -> None:
    inputs, outputs, values = indexed_and_reduced()
    ours = check(JoinCase(inputs, outputs, [values]), "numba", rounding=1e-12)
    without = compiled(inputs, outputs, "numba", joins=False)
    assert absorbed(ours) == absorbed(without)
    assert sum(absorbed(ours).values())


@pytest.mark.parametrize("linker", LINKERS)
def test_a_kernel_of_several_streams_is_one(linker: str) -> None:
    x, y = vectors(2)
    common = pt.exp(x)
    outputs = [joined([common + 1, y * 2, common * common, pt.tanh(common)]), common - 1]
    function = check(JoinCase([x, y], outputs, [numbers(4, 3), numbers(0, 2)]), linker)
    assert len(kernels_of(function)) == 2


def test_scalar_graphs_read_nothing_new() -> None:
    """A kernel computes from its operands alone, not from what its part held before."""
    x, y = vectors(2)
    function = compiled([x, y], joined([x * 2 + 1, pt.tanh(y)]), "py")
    for node in kernels_of(function):
        targets = set(node.op.inplace_pattern.values())
        fgraph = getattr(node.op.scalar_op, "fgraph", None)
        if fgraph is not None:
            assert all(not fgraph.clients.get(fgraph.inputs[i]) for i in targets)


# Modes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["JAX", "PYTORCH", "MLX"])
def test_other_backends_have_no_such_rewrite(mode: str) -> None:
    names = {getattr(rewriter, "name", None) for rewriter in flattened(get_mode(mode).optimizer)}
    assert names
    assert REWRITE not in names


def flattened(rewriter: Any) -> list[Any]:
    inner = getattr(rewriter, "data", None) or []
    return [rewriter, *(found for part in inner for found in flattened(part))]


def test_stock_is_stock_again() -> None:
    x, y = vectors(2)
    outputs = joined([x * 2 + 1, pt.tanh(y)])
    assert is_rewritten(compiled([x, y], outputs))
    stock = compiled([x, y], outputs, ours=False)
    assert not is_rewritten(stock)
    assert ops_named(stock, "Join")


@pytest.mark.skipif(
    not hasattr(pytensor.tensor.rewriting, "fused_elemwise"), reason="PyTensor 3.0 has none"
)
def test_joins_of_single_elements_are_left_to_the_pass_that_makes_them_scalars() -> None:
    x, y = (pt.tensor(name, dtype="float64", shape=(n,)) for name, n in (("x", 1), ("y", 4)))
    outputs = joined([x * 2 + 1, -y, y + 1])
    without = compiled([x, y], outputs, "numba", joins=False)
    with pytensor_fuse.enabled():
        ours = pytensor.function([x, y], outputs, mode=mode_of("numba"))
    assert not is_rewritten(ours)
    assert len(ops_named(ours, "Elemwise")) == len(ops_named(without, "Elemwise"))


@pytest.mark.parametrize("length", [1000, None])
def test_slices_counted_from_the_end(length: int | None) -> None:
    x = pt.tensor("x", dtype="float64", shape=(length,))
    outputs = pt.zeros(x.shape[0] + 2)[1:-1].set(x * 2 + 1)
    function = check(JoinCase([x], [outputs], [numbers(1000)]), "numba")
    # Bounds have to be constants once the length is known.
    assert is_rewritten(function) == (length is not None)
