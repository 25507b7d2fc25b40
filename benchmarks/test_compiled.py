"""What the plan does to compiled functions: their run time, and the compiler's first call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from statistics import median
from typing import Any

import numpy as np
import pytest
from pytensor.compile.executor import Function

import child
import measure
from conftest import Pair
from graphs import STUDENT_T, Reference, demo_references
from rows import Row

REFERENCES = [*demo_references(), STUDENT_T]
BATCH_SECONDS = 0.02


@cache
def both(reference: Reference) -> tuple[Function, Function]:
    """The graph compiled with stock's pass and with ours."""
    inputs, outputs = reference.build()
    stock, ours = (
        measure.compiled(inputs, outputs, ours=ours, mode="NUMBA") for ours in (False, True)
    )
    # As PyMC does: the checks of the arguments would hide the kernels of small inputs.
    stock.trust_input = ours.trust_input = True
    return stock, ours


def call_often(function: Function, values: Sequence[np.ndarray], times: int) -> None:
    for _ in range(times):
        function(*values)


@pytest.mark.parametrize("size", [10, 100_000])
@pytest.mark.parametrize("reference", REFERENCES, ids=lambda r: r.name)
def test_run_time(pair: Pair, reference: Reference, size: int) -> None:
    stock, ours = both(reference)
    values = reference.values(size)
    difference = measure.largest_difference(ours(*values), stock(*values))
    assert difference <= measure.ROUNDING

    one_call = measure.seconds(call_often, stock, values, 10) / 10
    times = max(1, round(BATCH_SECONDS / one_call))
    timings = pair.in_process(
        lambda: call_often(stock, values, times),
        lambda: call_often(ours, values, times),
        rounds=41,
    )
    what = "run time, ours / stock"
    graph = f"{reference.name}, {size:.0e} elements".replace("e+0", "e")
    pair.report(Row(what, graph, 1 / timings.ratio, "x", mean_ceiling=1.02))


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda r: r.name)
def test_first_call(pair: Pair, reference: Reference) -> None:
    def run(ours: bool) -> dict[str, Any]:
        side = "ours" if ours else "stock"
        return child.run_in_empty_compiledir("first-call", reference.name, side, ours=ours)

    results = pair.in_processes(run, rounds=3)
    for stock, ours in results:
        difference = measure.largest_difference(
            [np.array(result) for result in ours["results"]],
            [np.array(result) for result in stock["results"]],
        )
        assert difference <= measure.ROUNDING

    timings = measure.Timings.of_results(results, "call")
    what = "first call (NUMBA), ours / stock"
    pair.report(Row(what, reference.name, 1 / timings.ratio, "x", ceiling=1.3, mean_ceiling=1.05))
    both = [(s["compile"] + s["call"], o["compile"] + o["call"]) for s, o in results]
    pair.report(
        Row(
            "compile and first call, ours / stock",
            reference.name,
            median(o / s for s, o in both),
            "x",
        )
    )
