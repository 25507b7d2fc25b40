"""What the plan does to compiled functions: their run time, and the compiler's first call."""

from __future__ import annotations

import time
from functools import cache

import pytest
from pytensor.compile.executor import Function

from benchmarks.graphs.named import STUDENT_T, Reference, demo_references
from benchmarks.measuring.processes import run_in_turns, samples
from benchmarks.measuring.results import assert_same, assert_same_reported
from benchmarks.measuring.rows import Report, Row
from benchmarks.measuring.sides import compiled_by_both
from benchmarks.measuring.turns import call_times, ratio_of

REFERENCES = [*demo_references(), STUDENT_T]
BATCH_SECONDS = 0.02


@cache
def both(reference: Reference) -> tuple[Function, Function]:
    """The graph compiled with stock's pass and with ours."""
    return compiled_by_both(*reference.build(), "NUMBA")


@pytest.mark.parametrize("size", [10, 100_000])
@pytest.mark.parametrize("reference", REFERENCES, ids=str)
def test_run_time(report: Report, reference: Reference, size: int) -> None:
    stock, ours = both(reference)
    values = reference.values(size)
    assert_same(ours(*values), stock(*values))
    calls = {"stock": stock, "ours": ours}
    calls, clock = {"stock": stock, "ours": ours}, time.perf_counter
    times = call_times(calls, values, 41, batch=BATCH_SECONDS, warmup=2, clock=clock)
    graph = f"{reference.name}, {size:.0e} elements".replace("e+0", "e")
    figure = ratio_of(times["ours"], times["stock"])
    report(Row("run time, ours / stock", graph, figure, mean_ceiling=1.02))


@pytest.mark.parametrize("reference", REFERENCES, ids=str)
def test_first_call(report: Report, reference: Reference) -> None:
    results = run_in_turns("benchmarks.fusion.first:call", reference.name, rounds=3)
    assert_same_reported(results)

    def ratio(*keys: str) -> float:
        times = samples(results, *keys)
        return ratio_of(times["ours"], times["stock"])

    name = reference.name
    what = "first call (NUMBA), ours / stock"
    report(
        Row(what, name, ratio("call"), ceiling=1.3, mean_ceiling=1.05),
        Row("compile and first call, ours / stock", name, ratio("compile", "call")),
    )
