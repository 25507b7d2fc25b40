"""Freezing a graph, and comparing frozen graphs."""

from __future__ import annotations

import time
from statistics import median

import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FrozenFunctionGraph, FunctionGraph

import measure
from conftest import Pair
from graphs import STUDENT_T, Reference, deep, large
from pytensor_fuse import freeze
from pytensor_fuse.reports import FrozenGraph
from rows import Row

MICROSECONDS = 1e6


def stock_freeze(fgraph: FunctionGraph) -> FrozenFunctionGraph:
    return fgraph.freeze()


@pytest.mark.parametrize("seen", [True, False], ids=["again", "first"])
@pytest.mark.parametrize(
    ("reference", "rounds"),
    [(deep(1000), 15), (large(200), 7), (STUDENT_T, 15)],
    ids=["deep-1000", "large-200", "student-t-40"],
)
def test_freeze(pair: Pair, reference: Reference, rounds: int, seen: bool) -> None:
    fgraph = reference.fgraph()
    values = reference.values(10)
    thawed = freeze(fgraph).unfreeze()
    expected = measure.evaluate(fgraph, values)
    assert measure.largest_difference(measure.evaluate(thawed, values), expected) == 0

    def prepare() -> tuple[FunctionGraph]:
        # Ops that no one has seen are made anew with the graph.
        return (measure.copy(fgraph) if seen else reference.fgraph(),)

    timings = pair.in_process(stock_freeze, freeze, prepare, rounds=rounds)
    what = "freezing" if seen else "freezing, ops not seen before"
    pair.report(Row(what, reference.name, timings.ratio, "x", floor=10))


def test_equality_and_hash(pair: Pair) -> None:
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

    def compare() -> dict[str, float]:
        start = time.perf_counter()
        for _ in range(n_calls):
            _ = a == b
            hash(a)
        return {"seconds": (time.perf_counter() - start) / n_calls}

    results = pair.alone(compare, rounds=5)
    figure = median(result["seconds"] for result in results) * MICROSECONDS
    pair.report(Row("frozen: == and hash", "chain, 1e4 nodes", figure, " us", ceiling=1.0))
