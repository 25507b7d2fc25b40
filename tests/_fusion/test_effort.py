"""Plans with a proof: the effort that they take, the bounds, and that they can be carried out."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.graph.fg import FunctionGraph

import pytensor_fuse
from pytensor_fuse._fusion import effort as effort_module
from pytensor_fuse._fusion import fuse as fuse_module
from pytensor_fuse._pictures.from_plan import bound_text
from support.checker import check_plan, count_kernels, stock_plan
from support.examples import examples_of, outputs_of, write_examples
from support.graphs import (
    assert_same_results,
    deep_small_kernels,
    evaluate,
    large_fuseable_graph,
    tolerance_of,
)
from support.programs.processes import run_process
from support.random_graphs.building import Program, build
from support.random_graphs.strategies import any_programs

NAMES = ["fast", "optimal"]


def cost(stats: pytensor_fuse.reports.PlanStats) -> tuple[int, int]:
    return stats.kernels_after, stats.arrays_after


def bound(stats: pytensor_fuse.reports.PlanStats) -> tuple[int, int]:
    return stats.kernels_bound, stats.arrays_bound


# Arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "Fast", "best", "optimal "])
def test_unknown_efforts_are_named(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name!r}.*'fast' or 'optimal'"):
        pytensor_fuse.plan_fusion(deep_small_kernels(1), effort=name)


@pytest.mark.parametrize("name", [None, 3, True, b"fast", ["fast"]])
def test_efforts_of_the_wrong_type_are_named(name: object) -> None:
    with pytest.raises(TypeError, match=f"effort.*{type(name).__name__}"):
        pytensor_fuse.plan_fusion(deep_small_kernels(1), effort=name)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("", None), ("fast", None), ("optimal", 4_000_000), (" OPTIMAL ", 4_000_000), (None, None)],
)
def test_the_environment_says_it_for_compiles(
    value: str | None, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is None:
        monkeypatch.delenv(effort_module.VARIABLE, raising=False)
    else:
        monkeypatch.setenv(effort_module.VARIABLE, value)
    assert effort_module.effort_of_compiles() == expected


def test_an_unknown_effort_in_the_environment_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(effort_module.VARIABLE, "best")
    with pytest.warns(
        RuntimeWarning, match="PYTENSOR_FUSE_EFFORT='best' is not 'fast' or 'optimal'"
    ):
        assert effort_module.effort_of_compiles() is None


def test_compiles_plan_with_the_effort_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int | None] = []
    plan = fuse_module.plan

    def noting(graph: object, target: object, limit: int, effort: int | None) -> object:
        seen.append(effort)
        return plan(graph, target, limit, effort)

    monkeypatch.setattr(fuse_module, "plan", noting)
    values = [np.linspace(0.1, 0.9, 4), np.linspace(0.5, 2.0, 4)]
    x, y = pt.vectors("x", "y")
    out = pt.exp(x * y) + pt.log(y) / pt.exp(x * y).sum()
    with pytensor_fuse.enabled():
        for name in NAMES:
            monkeypatch.setenv(effort_module.VARIABLE, name)
            seen.clear()
            compiled = pytensor.function([x, y], out, mode="FAST_RUN")
            assert seen
            assert set(seen) == {effort_module.EFFORTS[name]}
            e = np.exp(values[0] * values[1])
            np.testing.assert_allclose(compiled(*values), e + np.log(values[1]) / e.sum())


# Plans ------------------------------------------------------------------------------------


def reconvergent() -> FunctionGraph:
    """Two kernels at least; greedy orders take what is needed later too early."""
    x, y = pt.vectors("x", "y")
    a, b = pt.exp(x), pt.sin(y)
    c = a + b
    return FunctionGraph([x, y], [c / c.sum(), a * b.max(), pt.cos(x) - y], clone=False)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("make", [reconvergent, lambda: deep_small_kernels(3)])
def test_plans_of_each_effort_can_be_carried_out(
    make: Callable[[], FunctionGraph], name: str
) -> None:
    fgraph = make()
    rng = np.random.default_rng(3)
    values = [rng.uniform(0.1, 0.9, (4,) * var.type.ndim) for var in fgraph.inputs]
    expected = evaluate(fgraph, values)
    plan = pytensor_fuse.plan_fusion(fgraph, effort=name)
    check_plan(plan, fgraph)
    assert bound(plan.stats) <= cost(plan.stats)
    plan.apply()
    fgraph.check_integrity()
    assert_same_results(evaluate(fgraph, values), expected)


@given(any_programs(24, widen=False), st.one_of(st.none(), st.integers(2, 6)))
def test_bounds_and_plans_are_in_order(program: Program, max_operands: int | None) -> None:
    fgraph = build(program).fgraph
    stock = stock_plan(fgraph, max_operands=max_operands)
    fast = pytensor_fuse.plan_fusion(fgraph, max_operands=max_operands)
    best = pytensor_fuse.plan_fusion(fgraph, max_operands=max_operands, effort="optimal")
    check_plan(best, fgraph, max_operands=max_operands)
    assert bound(fast.stats) <= bound(best.stats) <= cost(best.stats) <= cost(fast.stats)
    assert cost(fast.stats) <= (stock.kernels_after, stock.arrays_after)
    for plan in (fast, best):
        assert plan.stats.proven is (bound(plan.stats) == cost(plan.stats))
    if cost(best.stats) < cost(fast.stats):
        assert best.strategy == "exact search"


@given(any_programs())
def test_the_best_plan_computes_the_same(program: Program) -> None:
    built = build(program)
    fgraph, values = built.fgraph, built.values
    expected, tolerance = evaluate(fgraph, values), tolerance_of(fgraph)
    plan = pytensor_fuse.plan_fusion(fgraph, effort="optimal")
    plan.apply()
    fgraph.check_integrity()
    assert count_kernels(fgraph) == plan.stats.kernels_after
    assert_same_results(evaluate(fgraph, values), expected, tolerance)


def test_the_same_graph_has_the_same_plan() -> None:
    plans = [pytensor_fuse.plan_fusion(reconvergent(), effort="optimal") for _ in range(3)]
    assert len({str(plan) for plan in plans}) == 1


def test_larger_graphs_have_bounds() -> None:
    fgraph = large_fuseable_graph(5)
    plan = pytensor_fuse.plan_fusion(fgraph, effort="optimal")
    assert 0 < plan.stats.kernels_bound <= plan.stats.kernels_after


# What plans look like ---------------------------------------------------------------------


def test_what_is_proven_is_shown() -> None:
    plan = pytensor_fuse.plan_fusion(deep_small_kernels(2))
    assert plan.stats.proven
    sentence = "proven: no plan has fewer kernels, nor fewer arrays with as many"
    assert sentence in str(plan)
    assert sentence in plan.to_html()
    assert sentence in plan._repr_html_()
    assert "<dd>proven</dd>" in plan.to_html()


def test_what_is_not_proven_is_shown_with_its_bounds() -> None:
    assert bound_text((3, 9), (3, 7)) == (
        "no plan has fewer kernels, nor with as many fewer than 7 arrays"
    )
    assert bound_text((3, 9), (2, 10)) == (
        "no plan has fewer than 2 kernels, nor with so few fewer than 10 arrays"
    )


# The guide --------------------------------------------------------------------------------

GUIDE = (Path(__file__).parents[2] / "docs" / "plans.md").read_text(encoding="utf-8")


def test_the_examples_of_the_guide_print_what_is_shown(tmp_path: Path) -> None:
    write_examples(GUIDE, tmp_path / "plans.py")
    done = run_process("-W", "ignore", "plans.py", cwd=tmp_path)
    outputs = outputs_of(done.stdout)
    for (code, expected), output in zip(examples_of(GUIDE), outputs, strict=True):
        assert output.rstrip() == expected.rstrip(), code


# How long it takes ------------------------------------------------------------------------


def _forward_backward(n_steps: int) -> FunctionGraph:
    """Two recursions over the same vectors, one from each end."""
    vectors = [pt.vector(f"v{i}") for i in range(n_steps)]
    first, last = pt.vector("first"), pt.vector("last")
    forward, backward = first, last
    for vector in vectors:
        forward = vector * pt.cumsum(forward)
    for vector in reversed(vectors):
        backward = vector * pt.cumsum(backward)
    return FunctionGraph([*vectors, first, last], [forward, backward], clone=False)


@pytest.mark.parametrize(
    ("n_steps", "effort", "most"), [(128, "fast", 0.5), (64, "optimal", 5), (256, "optimal", 10)]
)
def test_bounds_of_many_parts_at_once_take_no_longer_than_their_effort(
    n_steps: int, effort: str, most: float
) -> None:
    # Of a processor, with a wide margin: the first takes milliseconds, the others half a second.
    graph = _forward_backward(n_steps)
    start = time.process_time()
    plan = pytensor_fuse.plan_fusion(graph, effort=effort)
    assert n_steps <= plan.stats.kernels_bound <= plan.stats.kernels_after < 2 * n_steps
    assert time.process_time() - start < most
