"""Failures that fusion planners are known for, one test each."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import add
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.subtensor import inc_subtensor
from pytensor.tensor.type import TensorType

import pytensor_fuse
from support.checker import check_plan, count_kernels, stock_plan
from support.graphs import (
    Witness,
    assert_same_results,
    deep_small_kernels,
    evaluate,
    large_fuseable_graph,
    picture,
    reverse,
)


def vectors_for(fgraph: FunctionGraph) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    return [rng.uniform(0.1, 0.9, (4,) * var.type.ndim) for var in fgraph.inputs]


def check_and_apply(fgraph: FunctionGraph, max_operands: int | None = None) -> None:
    """Plan, judge, compare with stock, apply, and compare results."""
    values = vectors_for(fgraph)
    expected = evaluate(fgraph, values)
    plan = pytensor_fuse.plan_fusion(fgraph, max_operands=max_operands)
    check_plan(plan, fgraph, max_operands=max_operands)
    stock = stock_plan(fgraph, max_operands=max_operands)
    assert (plan.stats.kernels_after, plan.stats.arrays_after) <= (
        stock.kernels_after,
        stock.arrays_after,
    )
    fused = [node for kernel in plan.kernels for node in kernel.nodes]
    plan.apply()
    fgraph.check_integrity()
    assert not fgraph.apply_nodes & set(fused), "an old node came back"
    assert count_kernels(fgraph) == plan.stats.kernels_after
    assert_same_results(evaluate(fgraph, values), expected)


def widened(op: Elemwise, x: Variable, shape: tuple[int | None, ...]) -> Variable:
    """``op(x)`` as an Apply made by hand, with an output type of its own."""
    output = TensorType(x.type.dtype, shape)()
    Apply(op, [x], [output])
    return output


# Cycles -----------------------------------------------------------------------------------


def test_an_unfusable_path_between_members() -> None:
    x = pt.vector("x")
    a = pt.exp(x)
    check_and_apply(FunctionGraph([x], [pt.sin(a) + reverse(a)], clone=False))


def test_an_unfusable_path_between_siblings() -> None:
    x = pt.vector("x")
    fgraph = FunctionGraph([x], [x * reverse(pt.exp(x))], clone=False)
    assert not pytensor_fuse.plan_fusion(fgraph).kernels
    check_and_apply(fgraph)


def test_two_convex_groups_that_wait_for_each_other() -> None:
    x, y = pt.vectors("x", "y")
    a, b = pt.sin(x), pt.cos(y)
    fgraph = FunctionGraph([x, y], [a + reverse(b), b + reverse(a)], clone=False)
    assert len(pytensor_fuse.plan_fusion(fgraph).kernels) == 1
    check_and_apply(fgraph)


@pytest.mark.parametrize("n", [3, 4, 7])
def test_a_ring_of_convex_groups(n: int) -> None:
    inputs = [pt.vector(f"x{i}") for i in range(n)]
    heads = [pt.sin(x) for x in inputs]
    tails = [heads[i] * reverse(heads[i - 1]) for i in range(n)]
    fgraph = FunctionGraph(inputs, tails, clone=False)
    assert len(pytensor_fuse.plan_fusion(fgraph).kernels) == n - 1
    check_and_apply(fgraph)


def test_sibling_groups_that_wait_for_each_other() -> None:
    x, y = pt.vectors("x", "y")
    a, b = pt.sin(x), pt.cos(y)
    late_a, late_b = x * reverse(b), y * reverse(a)
    fgraph = FunctionGraph([x, y], [late_a, late_b], clone=False)
    assert len(pytensor_fuse.plan_fusion(fgraph).kernels) == 1
    check_and_apply(fgraph)


def test_a_sibling_merge_that_closes_a_cycle_with_a_data_group() -> None:
    x, y = pt.vectors("x", "y")
    a = pt.sin(x)
    middle = pt.exp(reverse(a)) + y
    late = x * reverse(middle)
    last = pt.tanh(y) - late
    check_and_apply(FunctionGraph([x, y], [late, last, middle], clone=False))


def test_a_cycle_through_a_kernel_of_another_broadcast_pattern() -> None:
    x, s = pt.vector("x"), pt.scalar("s")
    a = pt.sin(x)
    total = pt.exp(pt.sum(a)) * s
    other = pt.cos(s)
    b = a * total
    check_and_apply(FunctionGraph([x, s], [b, pt.tanh(x) * other, other + total], clone=False))


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_expansion_order(order: tuple[int, ...]) -> None:
    # b feeds d through the unfusable c, and both feed e1 and e2.
    x = pt.vector("x")
    b = pt.sin(x)
    c = reverse(b)
    d = pt.cos(c)
    outputs = [b + d, d + b, c]
    check_and_apply(FunctionGraph([x], [outputs[i] for i in order], clone=False))


# Replacement ------------------------------------------------------------------------------


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_replacement_order_for_every_order_of_outputs(order: tuple[int, ...]) -> None:
    x, y = pt.vectors("x", "y")
    a = pt.sin(x)
    b = pt.exp(a) * y
    c = reverse(b)
    d = pt.cos(c) - a
    e = pt.tanh(reverse(d)) + b
    f = pt.sigmoid(e) * d
    outputs = [f, b, d, pt.sum(e) + pt.sum(a)]
    check_and_apply(FunctionGraph([x, y], [outputs[i] for i in order], clone=False))


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_kernels_that_read_each_other_directly(order: tuple[int, ...]) -> None:
    row, matrix = pt.row("row"), pt.matrix("matrix")
    a = pt.sin(row) * pt.cos(row)
    b = (matrix + a) * matrix
    c = pt.exp(a) - a
    d = pt.tanh(b) * c
    fgraph = FunctionGraph([row, matrix], [[d, a, c, b][i] for i in order], clone=False)
    values = [np.linspace(0, 1, 4)[None], np.linspace(-1, 1, 12).reshape(3, 4)]
    expected = evaluate(fgraph, values)
    pytensor_fuse.plan_fusion(fgraph).apply()
    assert count_kernels(fgraph) == 2
    assert_same_results(evaluate(fgraph, values), expected)


def test_more_than_256_kernels() -> None:
    fgraph = deep_small_kernels(300)
    expected = evaluate(fgraph, [np.linspace(-1, 1, 9).reshape(3, 3)])
    plan = pytensor_fuse.plan_fusion(fgraph)
    check_plan(plan, fgraph)
    assert len(plan.kernels) == 300
    plan.apply()
    assert count_kernels(fgraph) == 300
    assert_same_results(evaluate(fgraph, [np.linspace(-1, 1, 9).reshape(3, 3)]), expected)


# Types ------------------------------------------------------------------------------------


def test_a_less_specific_type_across_a_fused_edge() -> None:
    x, m = pt.matrix("x", shape=(1, 3)), pt.matrix("m", shape=(1, 3))
    a = widened(pt.sin, x, (None, 3))
    b = pt.cos(a)
    fgraph = FunctionGraph([x, m], [b, pt.exp(b) * 2, m * x, reverse(a)], clone=False)
    values = [np.array([[0.1, 0.2, 0.3]]), np.array([[1.0, 2.0, 3.0]])]
    expected = evaluate(fgraph, values)
    types = [out.type for out in fgraph.outputs]
    plan = pytensor_fuse.plan_fusion(fgraph)
    check_plan(plan, fgraph)
    plan.apply()
    assert [out.type for out in fgraph.outputs] == types
    assert_same_results(evaluate(fgraph, values), expected)


def test_siblings_of_a_less_specific_type() -> None:
    x = pt.vector("x", shape=(1,))
    for hidden in (widened(pt.sin, x, (None,)), pt.cumsum(widened(pt.sin, x, (None,)))):
        unfused = reverse(hidden)
        fgraph = FunctionGraph([x], [pt.cos(unfused), pt.exp(unfused)], clone=False)
        assert len(pytensor_fuse.plan_fusion(fgraph).kernels) == 1


@pytest.mark.parametrize("op", [pt.erfcinv, pt.sin])
def test_siblings_of_a_node_of_a_less_specific_type(op: Elemwise) -> None:
    x = pt.vector("x", shape=(1,))
    a = widened(op, x, (None,))
    fgraph = FunctionGraph([x], [pt.cos(a), pt.exp(a)], clone=False)
    plan = pytensor_fuse.plan_fusion(fgraph)
    check_plan(plan, fgraph)
    assert plan.stats.kernels_after <= stock_plan(fgraph).kernels_after


def test_a_less_specific_type_does_not_hide_a_broadcast() -> None:
    # The type of a hides its length of 1, so that adding it to a longer y is an error; that of the
    # sine, inside a kernel, would not.
    x, y = pt.vector("x", shape=(1,)), pt.vector("y")
    a = widened(pt.sin, x, (None,))
    fgraph = FunctionGraph([x, y], [a + y], clone=False)
    values = [np.ones(1), np.ones(3)]
    with pytest.raises(ValueError, match="Runtime broadcasting not allowed"):
        evaluate(fgraph, values)
    pytensor_fuse.plan_fusion(fgraph).apply()
    with pytest.raises(ValueError, match="Runtime broadcasting not allowed"):
        evaluate(fgraph, values)


def test_a_type_that_claims_more_than_its_operands() -> None:
    x, m = pt.matrix("x"), pt.matrix("m")
    a = widened(pt.sin, x, (1, 3))
    fgraph = FunctionGraph([x, m], [pt.cos(a) * m, pt.exp(a)], clone=False)
    values = [np.array([[0.1, 0.2, 0.3]]), np.ones((2, 3))]
    expected = evaluate(fgraph, values)
    types = [out.type for out in fgraph.outputs]
    pytensor_fuse.plan_fusion(fgraph).apply()
    fgraph.check_integrity()
    assert [out.type for out in fgraph.outputs] == types
    assert_same_results(evaluate(fgraph, values), expected)


def test_a_dtype_that_is_not_the_scalar_ops() -> None:
    x = pt.vector("x", dtype="float64")
    output = TensorType("float32", (None,))()
    Apply(pt.sin, [x], [output])
    fgraph = FunctionGraph([x], [pt.cos(output), pt.exp(x)], clone=False)
    plan = pytensor_fuse.plan_fusion(fgraph)
    plan.apply()
    fgraph.check_integrity()
    assert fgraph.outputs[0].type.dtype == "float32"


# Graphs of unusual shape ------------------------------------------------------------------


def unusual_graphs() -> dict[str, FunctionGraph]:
    x, y = pt.vectors("x", "y")
    constant = pt.constant(np.array([1.0, 2.0, 3.0, 4.0]))
    fused = pt.sin(pt.cos(x))
    graphs = {
        "empty": ([], []),
        "inputs only": ([x, y], []),
        "output is an input": ([x], [x]),
        "output is an input twice": ([x], [x, x]),
        "output is a constant": ([], [constant]),
        "single Elemwise node": ([x], [pt.exp(x)]),
        "single node of constants": ([], [constant + constant]),
        "single other node": ([x], [reverse(x)]),
        "unused input": ([x, y], [pt.exp(pt.sin(x))]),
        "outputs of every sort": ([x, y], [x, fused, constant, fused, y * fused, pt.sum(y)]),
        "intermediate output": ([x], [fused, pt.exp(fused), fused.owner.inputs[0]]),
        "constants only": ([], [pt.sin(pt.cos(constant))]),
        "one variable in all places": ([x], [x * x + x * x]),
    }
    return {
        name: FunctionGraph(inputs, outputs, clone=True)
        for name, (inputs, outputs) in graphs.items()
    }


@pytest.mark.parametrize("name", unusual_graphs())
def test_unusual_graphs(name: str) -> None:
    check_and_apply(unusual_graphs()[name])


@pytest.mark.parametrize(
    "name", ["empty", "inputs only", "output is an input", "output is a constant"]
)
def test_graphs_without_kernels_are_left_alone(name: str) -> None:
    fgraph = unusual_graphs()[name]
    witness = Witness()
    fgraph.attach_feature(witness)
    before = picture(fgraph)
    plan = pytensor_fuse.plan_fusion(fgraph)
    assert plan.kernels == ()
    plan.apply()
    assert picture(fgraph) == before
    assert witness.n_calls == 0


def test_a_chain_deeper_than_the_stack() -> None:
    x = pt.vector("x")
    out = x
    for _ in range(3000):
        out = pt.sin(out)
    fgraph = FunctionGraph([x], [out], clone=False)
    plan = pytensor_fuse.plan_fusion(fgraph)
    assert len(plan.kernels) == 1
    plan.apply()
    assert count_kernels(fgraph) == 1


# Operand limits ---------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [2, 3, 4, 5, 6])
def test_operand_limit_of_a_sum_of_products(limit: int) -> None:
    inputs = [pt.vector(f"x{i}") for i in range(8)]
    products = [x * y for x, y in zip(inputs[::2], inputs[1::2], strict=True)]
    out = pt.sin(products[0])
    for product in products[1:]:
        out = pt.tanh(out + product)
    check_and_apply(FunctionGraph(inputs, [out, products[1]], clone=False), limit)


@pytest.mark.parametrize("limit", [2, 3, 4, 5, 6])
def test_operand_limit_of_a_chain(limit: int) -> None:
    x = pt.vector("x")
    out = x
    for _ in range(6):
        out = pt.cos(pt.sin(out))
    fgraph = FunctionGraph([x], [out], clone=False)
    assert pytensor_fuse.plan_fusion(fgraph, max_operands=limit).stats.kernels_after == 1
    check_and_apply(fgraph, limit)


@pytest.mark.parametrize("limit", [2, 3, 4, 5, 6])
def test_operand_limit_of_siblings(limit: int) -> None:
    x = pt.vector("x")
    ops = (pt.sin, pt.cos, pt.tanh, pt.exp, pt.sigmoid, pt.sqr)
    fgraph = FunctionGraph([x], [op(x) for op in ops], clone=False)
    stats = pytensor_fuse.plan_fusion(fgraph, max_operands=limit).stats
    assert stats.kernels_after == -(-len(ops) // (limit - 1))
    check_and_apply(fgraph, limit)


@pytest.mark.parametrize("limit", [2, 3, 4, 5, 6])
def test_operand_limit_of_a_gradient_graph(limit: int) -> None:
    fgraph = large_fuseable_graph(10)
    plan = pytensor_fuse.plan_fusion(fgraph, max_operands=limit)
    check_plan(plan, fgraph, max_operands=limit)
    stock = stock_plan(fgraph, max_operands=limit)
    assert plan.stats.kernels_after <= stock.kernels_after
    plan.apply()
    fgraph.check_integrity()


def test_a_group_over_the_limit_is_split_and_not_dropped() -> None:
    fgraph = large_fuseable_graph(200)
    before = count_kernels(fgraph)
    plan = pytensor_fuse.plan_fusion(fgraph, max_operands=1024)
    check_plan(plan, fgraph, max_operands=1024)
    assert plan.stats.kernels_after < before / 10
    plan.apply()  # Under warnings as errors.
    assert count_kernels(fgraph) == plan.stats.kernels_after


# Targets ----------------------------------------------------------------------------------


@pytest.mark.parametrize("op", [lambda x: pt.gammaincinv(x, x), pt.erfcinv])
def test_numba_fuses_what_has_no_c_code(op: Elemwise) -> None:
    x = pt.vector("x")
    fgraph = FunctionGraph([x], [pt.sin(op(pt.sigmoid(x)))], clone=False)
    for target in (None, "c", "python"):
        plan = pytensor_fuse.plan_fusion(fgraph, target=target)
        check_plan(plan, fgraph)
        assert plan.kernels == ()
    plan = pytensor_fuse.plan_fusion(fgraph, target="numba")
    check_plan(plan, fgraph, can_compile=lambda node: True)
    assert len(plan.kernels) == 1
    values = [np.array([0.1, 0.5, 2.0])]
    expected = evaluate(fgraph, values)
    plan.apply()
    assert_same_results(evaluate(fgraph, values, "numba"), expected)


def test_python_mode_runs_kernels_of_the_default_size() -> None:
    # NumPy's ufuncs, by which Python mode runs a kernel, take 32 operands.
    inputs = [pt.vector(f"x{i}") for i in range(40)]
    out = pt.sin(inputs[0])
    for x in inputs[1:]:
        out = out + x
    fgraph = FunctionGraph(inputs, [out], clone=False)
    values = [np.full(2, float(i)) for i in range(40)]
    expected = evaluate(fgraph, values)
    pytensor_fuse.plan_fusion(fgraph, target="python").apply()
    assert_same_results(evaluate(fgraph, values), expected)


# Hidden dependencies ----------------------------------------------------------------------


def test_a_destroyed_input_is_read_before_it_is_destroyed() -> None:
    x, v = pt.vectors("x", "v")
    b = pt.exp(x)
    before = pt.sin(b)
    destroyed = inc_subtensor(b[:1], v, inplace=True)
    after = before * destroyed
    fgraph = FunctionGraph([x, v], [after], clone=False)
    fgraph.attach_feature(DestroyHandler())
    values = [np.linspace(0, 1, 3), np.array([10.0])]
    expected = evaluate(fgraph, values)
    plan = pytensor_fuse.plan_fusion(fgraph)
    check_plan(plan, fgraph)
    why = plan.why_not(before.owner, after.owner)
    assert why.reason is pytensor_fuse.reports.Reason.CYCLE
    plan.apply()
    fgraph.check_integrity()
    assert_same_results(evaluate(fgraph, values), expected)


def test_a_destroyed_view_is_read_before_it_is_destroyed() -> None:
    x, v = pt.vectors("x", "v")
    b = pt.exp(x)
    before = pt.sin(reverse(b)) + 1
    destroyed = inc_subtensor(b[:1], v, inplace=True)
    outputs = [pt.cos(before) + destroyed, pt.tanh(destroyed) * 2]
    fgraph = FunctionGraph([x, v], outputs, clone=False)
    fgraph.attach_feature(DestroyHandler())
    values = [np.linspace(0, 1, 3), np.array([10.0])]
    expected = evaluate(fgraph, values)
    plan = pytensor_fuse.plan_fusion(fgraph)
    check_plan(plan, fgraph)
    plan.apply()
    fgraph.check_integrity()
    assert_same_results(evaluate(fgraph, values), expected)


class Ordering(Feature):
    def __init__(self, first: Apply, then: Apply) -> None:
        self.pair = first, then

    def orderings(self, fgraph: FunctionGraph) -> dict[Apply, list[Apply]]:
        first, then = self.pair
        if {first, then} <= fgraph.apply_nodes:
            return {then: [first]}
        return {}


def test_an_order_that_a_feature_asks_for() -> None:
    x, y = pt.vectors("x", "y")
    a, b = pt.sin(x), pt.cos(x)
    last = reverse(a)
    fgraph = FunctionGraph([x, y], [last, b], clone=False)
    assert len(pytensor_fuse.plan_fusion(fgraph).kernels) == 1
    fgraph.attach_feature(Ordering(last.owner, b.owner))
    plan = pytensor_fuse.plan_fusion(fgraph)
    check_plan(plan, fgraph)
    assert plan.kernels == ()


def test_an_order_that_comes_after_the_plan() -> None:
    x = pt.vector("x")
    a, b = pt.sin(x), pt.cos(x)
    last = reverse(a)
    fgraph = FunctionGraph([x], [last, b], clone=False)
    plan = pytensor_fuse.plan_fusion(fgraph)
    fgraph.attach_feature(Ordering(last.owner, b.owner))
    with pytest.raises(pytensor_fuse.exceptions.StalePlanError):
        plan.apply()


def test_an_elemwise_node_that_works_in_place() -> None:
    x, y = pt.vectors("x", "y")
    b = pt.exp(x)
    in_place = Elemwise(add, inplace_pattern={0: 0})(b, y)
    fgraph = FunctionGraph([x, y], [pt.sin(in_place), pt.cos(b) * y, pt.sort(b)], clone=False)
    fgraph.attach_feature(DestroyHandler())
    check_plan(pytensor_fuse.plan_fusion(fgraph), fgraph)
    values = [np.linspace(0, 1, 3), np.full(3, 10.0)]
    expected = evaluate(fgraph, values)
    pytensor_fuse.plan_fusion(fgraph).apply()
    fgraph.check_integrity()
    assert_same_results(evaluate(fgraph, values), expected)


@pytest.mark.parametrize("length", [-1, 2**63, 2**70])
def test_static_lengths_that_no_array_has(length: int) -> None:
    """PyTensor takes any integer."""
    x = TensorType("float64", (length,))("x")
    fgraph = FunctionGraph([x], [pt.exp(x) * 2 + 1], clone=False)
    check_plan(pytensor_fuse.plan_fusion(fgraph), fgraph)
