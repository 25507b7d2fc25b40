"""Properties of applied plans: same results, same interface, a consistent graph."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pytensor.graph.basic import Variable
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.features import Feature, PreserveVariableAttributes
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import MergeFeature
from pytensor.graph.utils import InconsistencyError
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.rewriting.shape import ShapeFeature

import pytensor_fuse
from support.checker import count_arrays, count_kernels, pattern
from support.effort import examples
from support.graphs import (
    Witness,
    assert_same_results,
    deep_small_kernels,
    evaluate,
    large_fuseable_graph,
    picture,
    reverse,
    tolerance_of,
)
from support.random_graphs.building import Program, build
from support.random_graphs.strategies import any_programs, programs

LIMITS = st.one_of(st.none(), st.integers(2, 6))

few_examples = examples(0.25)
"""For tests that compile every kernel."""

needs_cxx = pytest.mark.skipif(not pytensor.config.cxx, reason="needs a C++ compiler")


# Results ----------------------------------------------------------------------------------


@given(any_programs(), LIMITS)
def test_python_results(program: Program, max_operands: int | None) -> None:
    case = build(program)
    expected = evaluate(case.fgraph, case.values)
    tolerance = tolerance_of(case.fgraph)
    pytensor_fuse.plan_fusion(case.fgraph, max_operands=max_operands).apply()
    assert_same_results(evaluate(case.fgraph, case.values), expected, tolerance)


@needs_cxx
@few_examples
@given(programs(8))
def test_c_results(program: Program) -> None:
    case = build(program)
    expected = evaluate(case.fgraph, case.values)
    tolerance = tolerance_of(case.fgraph)
    pytensor_fuse.plan_fusion(case.fgraph, target="c").apply()
    assert_same_results(evaluate(case.fgraph, case.values, "cvm"), expected, tolerance)


@few_examples
@given(programs(8, complex_numbers=False))
def test_numba_results(program: Program) -> None:
    case = build(program)
    expected = evaluate(case.fgraph, case.values)
    tolerance = tolerance_of(case.fgraph)
    pytensor_fuse.plan_fusion(case.fgraph, target="numba").apply()
    assert_same_results(evaluate(case.fgraph, case.values, "numba"), expected, tolerance)


@pytest.mark.parametrize(
    ("fgraph", "values"),
    [
        (deep_small_kernels(20), [np.linspace(-1, 1, 16).reshape(4, 4)]),
        (large_fuseable_graph(8), [np.array(1.5), np.linspace(-1, 1, 8)]),
    ],
)
@pytest.mark.parametrize("linker", ["py", "numba"])
def test_results_of_the_reference_graphs(
    fgraph: FunctionGraph, values: list[np.ndarray], linker: str
) -> None:
    fused = fgraph.clone()
    pytensor_fuse.plan_fusion(fused, target="numba" if linker == "numba" else "python").apply()
    assert_same_results(evaluate(fused, values, linker), evaluate(fgraph, values))


# The interface of the graph ---------------------------------------------------------------


def uses(fgraph: FunctionGraph, variables: set[Variable]) -> dict[tuple[object, int], Variable]:
    """Where the variables are read by nodes that outlive fusion: ``(node, position)``."""
    return {
        (client, position): var
        for var in variables
        for client, position in fgraph.clients.get(var, ())
    }


@given(any_programs(), LIMITS)
def test_names_types_and_traces_are_kept(program: Program, max_operands: int | None) -> None:
    fgraph = build(program).fgraph
    plan = pytensor_fuse.plan_fusion(fgraph, max_operands=max_operands)
    fused = {node for kernel in plan.kernels for node in kernel.nodes}
    results = {out for kernel in plan.kernels for out in kernel.outputs}
    survivors = {place: v for place, v in uses(fgraph, results).items() if place[0] not in fused}
    inputs, outputs = list(fgraph.inputs), list(fgraph.outputs)

    plan.apply()

    assert list(map(id, fgraph.inputs)) == list(map(id, inputs))
    assert len(fgraph.outputs) == len(outputs)
    replaced = {id(old): id(new) for old, new in zip(outputs, fgraph.outputs, strict=True)}
    for old, new in zip(outputs, fgraph.outputs, strict=True):
        assert replaced[id(old)] == id(new), "equal outputs became different ones"
        assert (old is new) == (old not in results)
        assert new.name == old.name
        assert new.type == old.type
    for (client, position), old in survivors.items():
        new = client.inputs[position]
        assert new is not old
        assert new.name == old.name
        assert new.type == old.type
        assert new.tag.trace == old.tag.trace


@given(any_programs(), LIMITS)
def test_the_graph_becomes_what_the_plan_says(program: Program, max_operands: int | None) -> None:
    fgraph = build(program).fgraph
    plan = pytensor_fuse.plan_fusion(fgraph, max_operands=max_operands)
    fused = {node for kernel in plan.kernels for node in kernel.nodes}
    before = set(fgraph.apply_nodes)

    plan.apply()

    fgraph.check_integrity()
    assert count_kernels(fgraph) == plan.stats.kernels_after
    assert count_arrays(fgraph) == plan.stats.arrays_after
    assert before - fgraph.apply_nodes == fused, "exactly the fused nodes go"
    made = fgraph.apply_nodes - before
    assert len(made) == len(plan.kernels)
    for node in made:
        assert isinstance(node.op, Elemwise)
        assert len({pattern(out) for out in node.outputs}) == 1
    assert sorted((len(n.inputs), len(n.outputs)) for n in made) == sorted(
        (len(k.inputs), len(k.outputs)) for k in plan.kernels
    )


@given(any_programs())
def test_callbacks_tell_the_truth(program: Program) -> None:
    fgraph = build(program).fgraph
    witness = Witness()
    fgraph.attach_feature(witness)
    plan = pytensor_fuse.plan_fusion(fgraph)
    plan.apply()
    witness.assert_agrees(fgraph)
    assert bool(witness.n_calls) == bool(plan.kernels)


@given(any_programs())
def test_the_features_of_a_compile_follow(program: Program) -> None:
    fgraph = build(program).fgraph
    shapes = ShapeFeature()
    for feature in (shapes, PreserveVariableAttributes(), MergeFeature(), DestroyHandler()):
        fgraph.attach_feature(feature)
    before = picture(fgraph)
    plan = pytensor_fuse.plan_fusion(fgraph)
    assert picture(fgraph) == before
    plan.apply()
    fgraph.check_integrity()
    for node in fgraph.toposort():
        for out in node.outputs:
            assert all(shapes.get_shape(out, i) is not None for i in range(out.type.ndim))
    assert count_kernels(fgraph) == plan.stats.kernels_after


# Plans that no longer fit -----------------------------------------------------------------


def assert_stale(plan: pytensor_fuse.reports.FusionPlan, fgraph: FunctionGraph) -> None:
    witness = Witness()
    fgraph.attach_feature(witness)
    before = picture(fgraph)
    with pytest.raises(pytensor_fuse.exceptions.StalePlanError):
        plan.apply()
    assert picture(fgraph) == before
    assert witness.n_calls == 0


@given(any_programs())
def test_a_plan_is_applied_once(program: Program) -> None:
    fgraph = build(program).fgraph
    plan = pytensor_fuse.plan_fusion(fgraph)
    assume(plan.kernels)
    plan.apply()
    assert_stale(plan, fgraph)


@given(any_programs())
def test_only_one_of_two_plans_is_applied(program: Program) -> None:
    fgraph = build(program).fgraph
    first, second = pytensor_fuse.plan_fusion(fgraph), pytensor_fuse.plan_fusion(fgraph)
    assume(first.kernels)
    second.apply()
    assert_stale(first, fgraph)


def swap_operands(fgraph: FunctionGraph) -> None:
    node = next(n for n in fgraph.apply_nodes if str(n.op) == "Sub")
    x, y = node.inputs
    fgraph.change_node_input(node, 0, y)
    fgraph.change_node_input(node, 1, x)


def replace_an_unfusable_node(fgraph: FunctionGraph) -> None:
    node = next(n for n in fgraph.apply_nodes if str(n.op).startswith("Subtensor"))
    fgraph.replace(node.outputs[0], pt.sort(node.inputs[0]), import_missing=True)


def replace_a_member(fgraph: FunctionGraph) -> None:
    node = next(n for n in fgraph.apply_nodes if str(n.op) == "Sin")
    fgraph.replace(node.outputs[0], pt.cos(node.inputs[0]))


def exchange_inputs(fgraph: FunctionGraph) -> None:
    x, y = fgraph.inputs
    for client, position in list(fgraph.clients[x]):
        fgraph.change_node_input(client, position, y)


def add_an_output(fgraph: FunctionGraph) -> None:
    node = next(n for n in fgraph.apply_nodes if str(n.op) == "Sin")
    fgraph.add_output(node.outputs[0])


def remove_an_output(fgraph: FunctionGraph) -> None:
    fgraph.remove_output(0)


@pytest.mark.parametrize(
    "change",
    [
        swap_operands,
        replace_an_unfusable_node,
        replace_a_member,
        exchange_inputs,
        add_an_output,
        remove_an_output,
    ],
)
def test_a_plan_for_a_graph_that_has_changed(change: Callable[[FunctionGraph], None]) -> None:
    x, y = pt.vectors("x", "y")
    a = pt.sin(x) - y
    b = pt.cos(reverse(a)) * y
    fgraph = FunctionGraph([x, y], [b, pt.exp(a)], clone=False)
    plan = pytensor_fuse.plan_fusion(fgraph)
    assert plan.kernels
    change(fgraph)
    assert_stale(plan, fgraph)


# Refusals ---------------------------------------------------------------------------------


class Refusal(Feature):
    """Vetoes every change, as an InconsistencyError."""

    def on_validate(self, fgraph: FunctionGraph) -> None:
        raise InconsistencyError("refused by the test")

    validate = on_validate


@given(any_programs())
def test_a_refused_plan_leaves_the_graph_as_it_was(program: Program) -> None:
    case = build(program)
    fgraph = case.fgraph
    plan = pytensor_fuse.plan_fusion(fgraph)
    assume(plan.kernels)
    witness, refusal = Witness(), Refusal()
    fgraph.attach_feature(witness)
    fgraph.attach_feature(refusal)
    before = picture(fgraph, client_order=False)

    with pytest.raises(InconsistencyError, match="refused by the test"):
        plan.apply()

    assert picture(fgraph, client_order=False) == before
    witness.assert_agrees(fgraph)
    fgraph.check_integrity()
    fgraph.remove_feature(refusal)
    pytensor_fuse.plan_fusion(fgraph).apply()
    fgraph.check_integrity()


class Failure(Feature):
    """Fails at one event, or from it on."""

    def __init__(self, event: str, n_good: int, again: bool) -> None:
        setattr(self, event, self._count)
        self._n_good = n_good
        self._again = again

    def _count(self, *args: object, **kwargs: object) -> None:
        self._n_good -= 1
        if self._n_good == -1 or (self._again and self._n_good < 0):
            raise RuntimeError("a listener failed")


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("n_good", [0, 1, 2])
@pytest.mark.parametrize("event", ["on_import", "on_change_input", "on_prune"])
def test_a_listener_that_fails_leaves_the_graph_as_it_was(
    event: str, n_good: int, again: bool
) -> None:
    fgraph = deep_small_kernels(3)
    plan = pytensor_fuse.plan_fusion(fgraph)
    failure = Failure(event, n_good, again)
    fgraph.attach_feature(failure)
    before = picture(fgraph, client_order=False)
    with pytest.raises(RuntimeError, match="a listener failed"):
        plan.apply()
    assert picture(fgraph, client_order=False) == before
    fgraph.check_integrity()
    fgraph.remove_feature(failure)
    pytensor_fuse.plan_fusion(fgraph).apply()
    fgraph.check_integrity()


# Kernels are shared -----------------------------------------------------------------------


def kernel_ops(fgraph: FunctionGraph) -> list[Elemwise]:
    return [node.op for node in fgraph.toposort() if isinstance(node.op, Elemwise)]


def test_equal_kernels_of_a_graph_share_their_op() -> None:
    fgraph = deep_small_kernels(20)
    pytensor_fuse.plan_fusion(fgraph).apply()
    ops = kernel_ops(fgraph)
    assert len(ops) == 20
    # The first reads a matrix, and its transpose; so do the others.
    assert len(set(map(id, ops))) == 1


@given(any_programs())
def test_equal_graphs_share_their_ops(program: Program) -> None:
    first, second = build(program).fgraph, build(program).fgraph
    for fgraph in (first, second):
        pytensor_fuse.plan_fusion(fgraph).apply()
    made = [
        [node.op for node in fgraph.toposort() if node in fgraph.apply_nodes]
        for fgraph in (first, second)
    ]
    for op_1, op_2 in zip(*made, strict=True):
        assert op_1 == op_2
        if isinstance(op_1, Elemwise) and type(op_1.scalar_op).__name__ == "Composite":
            assert hash(op_1) == hash(op_2)


def test_kernels_of_different_shapes_share_their_op() -> None:
    def fused(x: Variable) -> Elemwise:
        fgraph = FunctionGraph([x], [pt.sin(pt.cos(x))], clone=False)
        pytensor_fuse.plan_fusion(fgraph).apply()
        (op,) = kernel_ops(fgraph)
        return op

    vector, matrix = fused(pt.vector("x")), fused(pt.matrix("m"))
    assert vector is matrix
    assert fused(pt.vector("x", dtype="float32")) is not vector


def test_a_kernel_does_not_keep_its_graph_alive() -> None:
    x = pt.vector("x")
    fgraph = FunctionGraph([x], [pt.sin(pt.cos(x)) * pt.exp(x)], clone=False)
    plan = pytensor_fuse.plan_fusion(fgraph)
    plan.apply()
    alive = [weakref.ref(fgraph), weakref.ref(plan)]
    del fgraph, plan, x
    gc.collect()
    assert [ref() for ref in alive] == [None, None]


CONSTANTS = [
    np.array(v)
    for v in (0.0, -0.0, 1.0, np.float32(1.0), np.int8(1), np.int64(1), True, np.nan, np.inf)
]


@pytest.mark.parametrize("i", range(len(CONSTANTS)))
def test_constants_that_compare_equal_are_not_confused(i: int) -> None:
    x = pt.vector("x")
    outputs = [
        pt.arctan2(pt.as_tensor(c)[None], -pt.cos(x)) - pt.sin(x)
        for c in CONSTANTS[i:] + CONSTANTS[:i]
    ]
    fgraph = FunctionGraph([x], [reverse(out) for out in outputs], clone=False)
    values = [np.array([0.5, 1.0])]
    expected = evaluate(fgraph, values)
    pytensor_fuse.plan_fusion(fgraph).apply()
    assert_same_results(evaluate(fgraph, values), expected)
