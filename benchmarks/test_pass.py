"""The whole pass: plan and apply."""

from __future__ import annotations

import pytest

import child
import measure
from conftest import Pair
from graphs import RADON, STUDENT_T, Reference, deep, large
from rows import Row

WARM = "whole pass, warm"
NEW_GRAPH = "whole pass, first sight of the graph"
FIRST = "whole pass, first of a process"


@pytest.mark.parametrize(
    ("reference", "floor", "rounds"),
    [
        pytest.param(deep(20), 5, 51, id="deep-20"),
        pytest.param(large(25), 5, 21, id="large-25"),
        pytest.param(RADON, 5, 51, id="radon"),
        pytest.param(STUDENT_T, None, 21, id="student-t-40"),
        pytest.param(deep(1000), 5, 9, id="deep-1000"),
        pytest.param(large(200), 15, 5, id="large-200"),
    ],
)
def test_warm(pair: Pair, reference: Reference, floor: float | None, rounds: int) -> None:
    fgraph = reference.fgraph()
    measure.assert_same_answer(fgraph, reference.values(10))
    timings = pair.in_process(
        measure.stock_pass, measure.our_pass, lambda: (measure.copy(fgraph),), rounds=rounds
    )
    pair.report(Row(WARM, reference.name, timings.ratio, "x", floor=floor))


@pytest.mark.parametrize(
    ("what", "earlier", "floor"),
    [
        # The process has fused other graphs, as one that compiles several models has.
        pytest.param(NEW_GRAPH, STUDENT_T.name, 3.5, id="new-graph"),
        # Nothing is known yet: no answer about a scalar op, no kernel, no scalar of PyTensor's own.
        pytest.param(FIRST, "nothing", None, id="new-process"),
    ],
)
@pytest.mark.parametrize("reference", [deep(20), large(25), RADON], ids=lambda r: r.name)
def test_first(
    pair: Pair, reference: Reference, what: str, earlier: str, floor: float | None
) -> None:
    measure.assert_same_answer(reference.fgraph(), reference.values(10))

    def run(ours: bool) -> dict[str, float]:
        return child.run("first-pass", reference.name, "ours" if ours else "stock", earlier)

    results = pair.in_processes(run, rounds=7)
    for stock, ours in results:
        assert (ours["kernels"], ours["arrays"]) <= (stock["kernels"], stock["arrays"])
    timings = measure.Timings.of_results(results, "seconds")
    pair.report(Row(what, reference.name, timings.ratio, "x", floor=floor))


@pytest.mark.parametrize("reference", [large(25), RADON], ids=lambda r: r.name)
def test_on_the_graph_that_a_compile_hands_over(pair: Pair, reference: Reference) -> None:
    fgraph = measure.graph_at_fusion(reference)
    measure.assert_same_answer(fgraph, reference.values(10))
    timings = pair.in_process(
        measure.stock_pass, measure.our_pass, lambda: (measure.copy(fgraph),), rounds=51
    )
    what = "whole pass, warm, after the rewrites before it"
    pair.report(Row(what, reference.name, timings.ratio, "x"))
