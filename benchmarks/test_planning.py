"""Planning alone, extraction from the FunctionGraph included."""

from __future__ import annotations

import pytest

import child
import measure
from conftest import Pair
from graphs import GP, MIXTURE, RADON, STUDENT_T, Reference, deep, large
from rows import Row

WARM = "planning, warm"
FIRST = "planning, first of a process"


@pytest.mark.parametrize(
    ("reference", "floor", "rounds"),
    [
        pytest.param(deep(20), 12, 51, id="deep-20"),
        pytest.param(large(25), 12, 31, id="large-25"),
        pytest.param(RADON, 12, 51, id="radon"),
        pytest.param(MIXTURE, 12, 51, id="mixture-5"),
        pytest.param(GP, 12, 51, id="gaussian-process"),
        pytest.param(STUDENT_T, None, 31, id="student-t-40"),
        pytest.param(deep(1000), 15, 15, id="deep-1000"),
        pytest.param(large(200), 40, 5, id="large-200"),
    ],
)
def test_warm(pair: Pair, reference: Reference, floor: float | None, rounds: int) -> None:
    fgraph = reference.fgraph()
    measure.assert_same_answer(fgraph, reference.values(10))
    timings = pair.in_process(
        measure.stock_plan, measure.our_plan, lambda: (measure.copy(fgraph),), rounds=rounds
    )
    pair.report(Row(WARM, reference.name, timings.ratio, "x", floor=floor))


@pytest.mark.parametrize("reference", [deep(20), large(25), RADON], ids=lambda r: r.name)
def test_first_of_a_process(pair: Pair, reference: Reference) -> None:
    measure.assert_same_answer(reference.fgraph(), reference.values(10))

    def run(ours: bool) -> dict[str, float]:
        return child.run("first-plan", reference.name, "ours" if ours else "stock")

    timings = measure.Timings.of_results(pair.in_processes(run, rounds=5), "seconds")
    pair.report(Row(FIRST, reference.name, timings.ratio, "x", floor=3))
