"""Merging within a compile, and whole compiles."""

from __future__ import annotations

from collections import Counter

import pytest
from pytensor.compile.mode import Mode
from pytensor.graph.fg import FunctionGraph

import measure
from conftest import Pair
from graphs import RADON, STUDENT_T, Reference, deep, large
from rows import Row

PYTHON = Mode("py", "fast_run")


def ops(fgraph: FunctionGraph) -> Counter[str]:
    return Counter(str(node.op) for node in fgraph.apply_nodes)


def assert_same_graph(reference: Reference) -> None:
    """Fail unless merging ours leads to the graph that stock's does; fusion is for other rows."""
    mode = PYTHON.excluding("fusion")
    stock, ours = (
        ops(measure.compiled(*reference.build(), ours=ours, mode=mode).maker.fgraph)
        for ours in (False, True)
    )
    assert ours == stock


@pytest.mark.parametrize("reference", [large(100), STUDENT_T], ids=lambda r: r.name)
def test_merging(pair: Pair, reference: Reference) -> None:
    assert_same_graph(reference)
    results = pair.in_processes(
        lambda ours: {"seconds": measure.merging_seconds(reference, ours=ours, mode=PYTHON)},
        rounds=7,
    )
    timings = measure.Timings.of_results(results, "seconds")
    pair.report(Row("merging in a compile", reference.name, timings.ratio, "x", floor=5))


@pytest.mark.parametrize("reference", [deep(20), large(25), RADON, STUDENT_T], ids=lambda r: r.name)
def test_whole_compile(pair: Pair, reference: Reference) -> None:
    assert_same_graph(reference)
    timings = pair.in_process(
        lambda inputs, outputs: measure.compiled(inputs, outputs, ours=False, mode=PYTHON),
        lambda inputs, outputs: measure.compiled(inputs, outputs, ours=True, mode=PYTHON),
        reference.build,
        rounds=9,
    )
    pair.report(Row("whole compile", reference.name, timings.ratio, "x", floor=1.2))
