"""Planning alone, extraction from the FunctionGraph included, and the whole pass."""

from __future__ import annotations

import pytest
from pytensor.graph.fg import FunctionGraph

from benchmarks.fusion import passes
from benchmarks.graphs.named import GP, MIXTURE, RADON, STUDENT_T, Reference, deep, large
from benchmarks.measuring.processes import run_in_turns, samples
from benchmarks.measuring.rows import Report, Row
from benchmarks.measuring.turns import Timings, interleaved

STEPS = {
    "planning": (passes.stock_plan, passes.our_plan),
    "whole pass": (passes.stock_pass, passes.our_pass),
}


def ratio_in_process(step: str, reference: Reference, fgraph: FunctionGraph, rounds: int) -> float:
    """How many times faster ours is in this process."""
    passes.assert_same_answer(fgraph, reference.values(10))
    return interleaved(*STEPS[step], lambda: (passes.copy(fgraph),), rounds=rounds).ratio


@pytest.mark.parametrize(
    ("step", "reference", "floor", "rounds"),
    [
        ("planning", deep(20), 12, 51),
        ("planning", large(25), 12, 31),
        ("planning", RADON, 12, 51),
        ("planning", MIXTURE, 12, 51),
        ("planning", GP, 12, 51),
        ("planning", STUDENT_T, None, 31),
        ("planning", deep(1000), 15, 15),
        ("planning", large(200), 40, 5),
        ("whole pass", deep(20), 5, 51),
        ("whole pass", large(25), 5, 21),
        ("whole pass", RADON, 5, 51),
        ("whole pass", STUDENT_T, None, 21),
        ("whole pass", deep(1000), 5, 9),
        ("whole pass", large(200), 15, 5),
    ],
    ids=str,
)
def test_warm(
    report: Report, step: str, reference: Reference, floor: float | None, rounds: int
) -> None:
    ratio = ratio_in_process(step, reference, reference.fgraph(), rounds)
    report(Row(f"{step}, warm", reference.name, ratio, floor=floor))


@pytest.mark.parametrize(
    ("what", "function", "floor"),
    [
        ("planning, first of a process", ("plan",), 3),
        # The process has fused other graphs, as one that compiles several models has.
        ("whole pass, first sight of the graph", ("fuse", STUDENT_T.name), 3.5),
        # Nothing is known yet: no answer about a scalar op, no kernel, no scalar of PyTensor's own.
        ("whole pass, first of a process", ("fuse", "nothing"), None),
    ],
    ids=str,
)
@pytest.mark.parametrize("reference", [deep(20), large(25), RADON], ids=str)
def test_first(
    report: Report,
    reference: Reference,
    what: str,
    function: tuple[str, ...],
    floor: float | None,
) -> None:
    passes.assert_same_answer(reference.fgraph(), reference.values(10))
    name, *earlier = function
    # The package is on in the processes of both sides.
    given = (f"benchmarks.fusion.first:{name}", reference.name, *earlier)
    results = run_in_turns(*given, rounds=7, ours=True)
    for stock, ours in zip(*results.values(), strict=True):
        assert ours.get("plan", ()) <= stock.get("plan", ())
    timings = Timings(**samples(results, "seconds"))
    report(Row(what, reference.name, timings.ratio, floor=floor))


@pytest.mark.parametrize("reference", [large(25), RADON], ids=str)
def test_on_the_graph_that_a_compile_hands_over(report: Report, reference: Reference) -> None:
    ratio = ratio_in_process("whole pass", reference, passes.graph_at_fusion(reference), 51)
    report(Row("whole pass, warm, after the rewrites before it", reference.name, ratio))
