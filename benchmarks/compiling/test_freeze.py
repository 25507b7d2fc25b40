"""Freezing a graph, and comparing frozen graphs."""

from __future__ import annotations

import time
from statistics import median

import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FrozenFunctionGraph, FunctionGraph

from benchmarks.fusion.evaluation import evaluate
from benchmarks.fusion.passes import copy
from benchmarks.graphs.named import STUDENT_T, Reference, deep, large
from benchmarks.measuring.results import largest_difference
from benchmarks.measuring.rows import Report, Row
from benchmarks.measuring.turns import interleaved
from pytensor_fuse import freeze
from pytensor_fuse.reports import FrozenGraph

MICROSECONDS = 1e6


def stock_freeze(fgraph: FunctionGraph) -> FrozenFunctionGraph:
    return fgraph.freeze()


@pytest.mark.parametrize("seen", [True, False], ids=["again", "first"])
@pytest.mark.parametrize(
    ("reference", "rounds"),
    [(deep(1000), 15), (large(200), 7), (STUDENT_T, 15)],
    ids=str,
)
def test_freeze(report: Report, reference: Reference, rounds: int, seen: bool) -> None:
    fgraph = reference.fgraph()
    values = reference.values(10)
    thawed = freeze(fgraph).unfreeze()
    expected = evaluate(fgraph, values)
    assert largest_difference(evaluate(thawed, values), expected) == 0

    def prepare() -> tuple[FunctionGraph]:
        # Ops that no one has seen are made anew with the graph.
        return (copy(fgraph) if seen else reference.fgraph(),)

    timings = interleaved(stock_freeze, freeze, prepare, rounds=rounds)
    what = "freezing" if seen else "freezing, ops not seen before"
    report(Row(what, reference.name, timings.ratio, floor=10))


def test_equality_and_hash(report: Report) -> None:
    def chain(n_nodes: int) -> FrozenGraph:
        x = out = pt.vector("x")
        for _ in range(n_nodes):
            out = pt.exp(out)
        return freeze([x], [out])

    a, b = chain(10_000), chain(10_000)
    assert a is not b
    assert a == b
    assert hash(a) == hash(b)
    n_calls = 10_000

    def compare() -> float:
        start = time.perf_counter()
        for _ in range(n_calls):
            _ = a == b
            hash(a)
        return (time.perf_counter() - start) / n_calls

    figure = median(compare() for _ in range(5)) * MICROSECONDS
    report(Row("frozen: == and hash", "chain, 1e4 nodes", figure, " us", ceiling=1.0))
