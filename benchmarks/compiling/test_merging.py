"""Merging within a compile, and whole compiles."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest
from pytensor.compile.mode import Mode
from pytensor.graph.fg import FunctionGraph

from benchmarks.compiling.merging import merging_seconds
from benchmarks.graphs.named import RADON, STUDENT_T, Reference, deep, large
from benchmarks.measuring.rows import Report, Row
from benchmarks.measuring.sides import compiled
from benchmarks.measuring.turns import in_turns, interleaved, ratio_of

PYTHON = Mode("py", "fast_run")


def ops(fgraph: FunctionGraph) -> Counter[str]:
    return Counter(str(node.op) for node in fgraph.apply_nodes)


def assert_same_graph(reference: Reference) -> None:
    """Fail unless merging ours leads to the graph that stock's does; fusion is for other rows."""
    mode = PYTHON.excluding("fusion")
    stock, ours = (
        ops(compiled(*reference.build(), ours=ours, mode=mode).maker.fgraph)
        for ours in (False, True)
    )
    assert ours == stock


@pytest.mark.parametrize("reference", [large(100), STUDENT_T], ids=str)
def test_merging(report: Report, reference: Reference) -> None:
    assert_same_graph(reference)
    sides = {
        side: partial(merging_seconds, reference, ours=side == "ours", mode=PYTHON)
        for side in ("stock", "ours")
    }
    times = in_turns(sides, 7)
    ratio = ratio_of(times["stock"], times["ours"])
    report(Row("merging in a compile", reference.name, ratio, floor=5))


@pytest.mark.parametrize("reference", [deep(20), large(25), RADON, STUDENT_T], ids=str)
def test_whole_compile(report: Report, reference: Reference) -> None:
    assert_same_graph(reference)
    timings = interleaved(
        partial(compiled, ours=False, mode=PYTHON),
        partial(compiled, ours=True, mode=PYTHON),
        reference.build,
        rounds=9,
    )
    report(Row("whole compile", reference.name, timings.ratio, floor=1.2))
