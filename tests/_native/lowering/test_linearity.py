"""The steps from a graph to a placed program are linear in the size of the graph."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import io_toposort
from pytensor.raise_op import Assert

import pytensor_fuse._native.lowering.rules  # noqa: F401  registers them
from pytensor_fuse._native.lowering.graph import lower_graph
from pytensor_fuse._native.passes.placement import place_temporaries
from pytensor_fuse._native.runtime.compiling import optimized

if TYPE_CHECKING:
    from pytensor.graph.basic import Variable

X = pt.vector("x")
Graph = tuple[list, list]


def arrays(n: int) -> Graph:
    return [X], [pt.exp(X * (k + 1.5)) for k in range(n)]


def arrays_of_own_lengths(n: int) -> Graph:
    inputs = [pt.vector() for _ in range(n)]
    return inputs, [pt.exp(one) for one in inputs]


def sums(n: int) -> Graph:
    return [X], [pt.exp(X * (k + 1.5)).sum() for k in range(n)]


def chain(n: int) -> Graph:
    outs = [X]
    for _ in range(n):
        outs.append(pt.cumsum(outs[-1]) * 1.01)
    return [X], outs[1:]


def asserts(n: int) -> Graph:
    out = X
    for k in range(n):
        out = Assert(f"message {k}")(out, pt.gt(X.sum(), k))
    return [X], [out]


def computed_lengths(n: int) -> Graph:
    """Return sums of arrays in memory, whose lengths are computed."""
    vectors = [pt.cumsum(pt.arange(pt.cast(pt.sum(X * k), "int64"))) for k in range(n)]
    return [X], [pt.sum(one * one.sum()) for one in vectors]


def kept_together(n: int) -> Graph:
    """Return a graph that needs many arrays of one length at once."""
    vectors = [pt.cumsum(X * (k + 1.5)) for k in range(n)]
    total = pt.add(*[one.sum() for one in vectors])
    return [X], [pt.sum(one * total) for one in vectors]


def steps(inputs: list[Variable], outputs: list[Variable]) -> int:
    """Return the number of function calls and resumptions between a graph and its program."""
    nodes = list(io_toposort(inputs, outputs))
    n_calls = 0

    def count(frame: object, event: str, what: object) -> None:
        nonlocal n_calls
        n_calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        lowered = lower_graph(inputs, outputs, nodes)
        place_temporaries(optimized(lowered.program, lowered.constants))
    finally:
        sys.setprofile(before)
    return n_calls


@pytest.mark.parametrize(
    "graph",
    [arrays, arrays_of_own_lengths, sums, chain, asserts, computed_lengths, kept_together],
    ids=lambda graph: graph.__name__,
)
def test_steps_are_linear(graph):
    """Compare graphs whose sizes differ by a factor of four: 4 ** 1.1 is 4.6."""
    steps(*graph(10))
    assert steps(*graph(400)) < 4.6 * steps(*graph(100))
