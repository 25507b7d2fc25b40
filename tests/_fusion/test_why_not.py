"""`FusionPlan.why_not`: every reason, its culprit, and that the answer is true."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from types import SimpleNamespace

import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.elemwise import Elemwise

import pytensor_fuse
from pytensor_fuse.reports import FusionPlan, Reason, WhyNot
from support.checker import (
    dependencies,
    external_inputs,
    external_outputs,
    is_elemwise,
    is_fusable,
    linked,
    pattern,
    quotient_is_acyclic,
)
from support.graphs import reverse
from support.random_graphs.building import Program, build, composite_of_two
from support.random_graphs.strategies import any_programs


def ask(fgraph: FunctionGraph, a: Apply, b: Apply, **options: object) -> WhyNot:
    plan = pytensor_fuse.plan_fusion(fgraph, **options)
    there, back = plan.why_not(a, b), plan.why_not(b, a)
    assert there.reason is back.reason, "the reason depends on who is named first"
    assert there.reason.value in str(there)
    return there


def same_kernel() -> tuple[WhyNot, Apply | None]:
    x = pt.vector("x")
    a = pt.sin(x)
    b = pt.cos(a)
    return ask(FunctionGraph([x], [b], clone=False), a.owner, b.owner), None


def alone() -> tuple[WhyNot, Apply | None]:
    x = pt.vector("x")
    a = pt.sin(x)
    return ask(FunctionGraph([x], [a], clone=False), a.owner, a.owner), None


def not_elemwise() -> tuple[WhyNot, Apply | None]:
    x = pt.vector("x")
    a = pt.sin(x)
    b = reverse(a)
    return ask(FunctionGraph([x], [b], clone=False), a.owner, b.owner), b.owner


def several_outputs() -> tuple[WhyNot, Apply | None]:
    x, y = pt.vectors("x", "y")
    a = pt.sin(x)
    two = Elemwise(composite_of_two(1))(a, y, return_list=True)
    return ask(FunctionGraph([x, y], two, clone=False), a.owner, two[0].owner), two[0].owner


def cannot_compile() -> tuple[WhyNot, Apply | None]:
    x = pt.vector("x")
    a = pt.sin(x)
    b = pt.erfcinv(a)
    return ask(FunctionGraph([x], [b], clone=False), a.owner, b.owner), b.owner


def other_broadcast_pattern() -> tuple[WhyNot, Apply | None]:
    x, m = pt.row("x"), pt.matrix("m")
    a = pt.sin(x)
    b = a + m
    return ask(FunctionGraph([x, m], [b], clone=False), a.owner, b.owner), None


def not_connected() -> tuple[WhyNot, Apply | None]:
    x, y = pt.vectors("x", "y")
    a, b = pt.sin(x), pt.cos(y)
    return ask(FunctionGraph([x, y], [a, b], clone=False), a.owner, b.owner), None


def cycle() -> tuple[WhyNot, Apply | None]:
    x = pt.vector("x")
    a = pt.sin(x)
    between = reverse(a)
    b = a + between
    why = ask(FunctionGraph([x], [b], clone=False), a.owner, b.owner)
    assert [str(node.op) for node in why.path] == [
        str(node.op) for node in (a.owner, between.owner, b.owner)
    ]
    assert str(between.owner.op) in str(why)
    return why, between.owner


def operand_limit() -> tuple[WhyNot, Apply | None]:
    x, y, z = pt.vectors("x", "y", "z")
    a = x * y
    b = a * z
    why = ask(FunctionGraph([x, y, z], [b], clone=False), a.owner, b.owner, max_operands=3)
    assert "4" in str(why)
    assert "3" in str(why)
    return why, None


def not_tried() -> tuple[WhyNot, Apply | None]:
    # Only a search that gave up leaves such a pair, and it gives up on no graph of test size: see
    # test_plan_properties.test_no_two_kernels_could_be_one.
    x = pt.vector("x")
    a = pt.sin(x)
    b = pt.cos(a)
    plan = pytensor_fuse.plan_fusion(FunctionGraph([x], [b], clone=False))
    plan._clusters = SimpleNamespace(explain_pairs=lambda pairs: [("possible", [], 0)])
    return plan.why_not(a.owner, b.owner), None


EXAMPLES = {
    Reason.SAME_KERNEL: same_kernel,
    Reason.ALONE: alone,
    Reason.NOT_ELEMWISE: not_elemwise,
    Reason.SEVERAL_OUTPUTS: several_outputs,
    Reason.CANNOT_COMPILE: cannot_compile,
    Reason.OTHER_BROADCAST_PATTERN: other_broadcast_pattern,
    Reason.NOT_CONNECTED: not_connected,
    Reason.CYCLE: cycle,
    Reason.OPERAND_LIMIT: operand_limit,
    Reason.NOT_TRIED: not_tried,
}


@pytest.mark.parametrize("reason", EXAMPLES)
def test_each_reason(reason: Reason) -> None:
    why, culprit = EXAMPLES[reason]()
    assert why.reason is reason
    assert why.culprit is culprit
    assert bool(why.path) == (reason is Reason.CYCLE)


def test_every_reason_has_an_example() -> None:
    assert set(EXAMPLES) == set(Reason)


def test_a_cycle_through_another_kernel_names_its_path() -> None:
    x, y = pt.vectors("x", "y")
    a, b = pt.sin(x), pt.cos(y)
    late_a, late_b = a + reverse(b), b + reverse(a)
    fgraph = FunctionGraph([x, y], [late_a, late_b], clone=False)
    plan = pytensor_fuse.plan_fusion(fgraph)
    (kernel,) = plan.kernels
    apart = [v.owner for v in (a, b, late_a, late_b) if v.owner not in kernel.nodes]
    why = plan.why_not(*apart)
    assert why.reason is Reason.CYCLE
    assert_true(plan, fgraph, *apart, None)


def test_a_node_and_itself_share_a_kernel_or_not() -> None:
    x = pt.vector("x")
    fused = pt.cos(pt.exp(x))
    other = reverse(fused)
    alone = pt.sin(other)
    plan = pytensor_fuse.plan_fusion(FunctionGraph([x], [alone], clone=False))
    for variable, reason in (
        (fused, Reason.SAME_KERNEL),
        (other, Reason.NOT_ELEMWISE),
        (alone, Reason.ALONE),
    ):
        assert plan.why_not(variable.owner, variable.owner).reason is reason


def shared_number() -> tuple[Variable, Variable]:
    x, y, shared = pt.vector("x"), pt.vector("y"), pt.scalar("shared").dimshuffle("x")
    return pt.exp(x) * shared, pt.sin(y) * shared


def shared_row() -> tuple[Variable, Variable]:
    x, y, shared = pt.matrix("x"), pt.matrix("y"), pt.row("shared")
    return x * shared, y * shared


def shared_constant() -> tuple[Variable, Variable]:
    x, y, shared = pt.vector("x", shape=(3,)), pt.vector("y", shape=(3,)), pt.constant([2.0] * 3)
    return x * shared, y * shared


@pytest.mark.parametrize("make", [shared_number, shared_row, shared_constant])
def test_kernels_that_share_an_input_are_not_said_to_share_none(
    make: Callable[[], tuple[Variable, Variable]],
) -> None:
    a, b = make()
    plan = pytensor_fuse.plan_fusion(FunctionGraph(outputs=[a, b], clone=False))
    kernels = [k.nodes for k in plan.kernels] or [[a.owner], [b.owner]]
    assert set.intersection(*({v for node in nodes for v in node.inputs} for nodes in kernels))
    why = plan.why_not(a.owner, b.owner)
    assert why.reason is Reason.NOT_CONNECTED
    assert "no input with the broadcast pattern of their results" in str(why)


def test_nodes_of_other_graphs_are_refused() -> None:
    x = pt.vector("x")
    a, other = pt.sin(x), pt.cos(x)
    fgraph = FunctionGraph([x], [a], clone=False)
    plan = pytensor_fuse.plan_fusion(fgraph)
    with pytest.raises(ValueError, match=r"(?i)cos"):
        plan.why_not(a.owner, other.owner)
    with pytest.raises(ValueError, match="x"):
        plan.why_not(x, a.owner)


def test_an_unfusable_node_is_named_by_its_op() -> None:
    x = pt.vector("x")
    a = pt.cos(pt.exp(x))
    b = reverse(a)
    plan = pytensor_fuse.plan_fusion(FunctionGraph([x], [b], clone=False))
    before = plan.why_not(a.owner, b.owner)
    assert before.detail == str(b.owner.op)
    plan.apply()
    assert str(plan.why_not(a.owner, b.owner)) == str(before)


def test_why_not_of_a_plan_that_was_applied() -> None:
    x = pt.vector("x")
    a = pt.sin(x)
    b = pt.cos(a)
    plan = pytensor_fuse.plan_fusion(FunctionGraph([x], [b], clone=False))
    plan.apply()
    assert plan.why_not(a.owner, b.owner).reason is Reason.SAME_KERNEL


# The answers are true ---------------------------------------------------------------------


def assert_true(
    plan: FusionPlan, fgraph: FunctionGraph, a: Apply, b: Apply, max_operands: int | None
) -> None:
    """Assert what ``why_not(a, b)`` says of the graph, by the definitions alone."""
    group = {node: tuple(kernel.nodes) for kernel in plan.kernels for node in kernel.nodes}
    group_a, group_b = group.get(a, (a,)), group.get(b, (b,))
    why = plan.why_not(a, b)
    culprits = (why.culprit,) if why.culprit is not None else (a, b)
    match why.reason:
        case Reason.SAME_KERNEL:
            assert group_a == group_b
            assert len(group_a) > 1
        case Reason.NOT_ELEMWISE:
            assert not is_elemwise(why.culprit)
        case Reason.SEVERAL_OUTPUTS:
            assert len(why.culprit.outputs) != 1
        case Reason.CANNOT_COMPILE:
            assert not is_fusable(why.culprit)
        case Reason.OTHER_BROADCAST_PATTERN:
            assert pattern(a.outputs[0]) != pattern(b.outputs[0])
        case Reason.NOT_CONNECTED:
            assert not linked(group_a, group_b, constants=False)
        case Reason.CYCLE:
            waits = dependencies(fgraph)
            for node, following in zip(why.path, why.path[1:], strict=False):
                together = node in group and group[node] == group.get(following)
                assert together or node in waits[following]
            ends = {why.path[0], why.path[-1]}
            assert ends & set(group_a)
            assert ends & set(group_b)
            assert why.culprit in why.path
            assert why.culprit not in group_a + group_b
            others = [g for g in set(group.values()) if g not in (group_a, group_b)]
            assert not quotient_is_acyclic(fgraph, [*others, group_a + group_b])
        case Reason.OPERAND_LIMIT:
            joined = group_a + group_b
            n_operands = len(external_inputs(joined)) + len(external_outputs(joined, fgraph))
            assert max_operands is not None
            assert n_operands > max_operands
            assert str(n_operands) in str(why)
        case _:
            pytest.fail(f"unexpected {why}")
    assert set(culprits) <= fgraph.apply_nodes


@given(any_programs(10, widen=False), st.one_of(st.none(), st.integers(2, 6)))
def test_every_answer_is_true(program: Program, max_operands: int | None) -> None:
    fgraph = build(program).fgraph
    plan = pytensor_fuse.plan_fusion(fgraph, max_operands=max_operands)
    for a, b in combinations(fgraph.toposort(), 2):
        assert_true(plan, fgraph, a, b, max_operands)
