"""Which variables are said to hold the same values, judged by evaluating them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytensor
import pytensor.tensor as pt
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Constant
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.tensor.random.basic import NormalRV
from pytensor.tensor.type import TensorType

from pytensor_fuse._audit.context.build import graph_context
from pytensor_fuse._audit.context.values import Values
from support.graphs import assert_same_results, evaluate, tolerance_of
from support.joins.strategies import SliceProgram, build_slices, slice_programs
from support.random_graphs.building import Program, build_fused_and_not
from support.random_graphs.strategies import any_programs


def groups(fgraph):
    """The variables of each value, those that hold one alone left out."""
    values = Values(graph_context(fgraph, None))
    held = defaultdict(list)
    for node in fgraph.toposort():
        for output in node.outputs:
            if isinstance(output.type, TensorType):
                held[values.of(output)].append(output)
    return [group for group in held.values() if len(group) > 1]


def check(fgraph, values):
    """Evaluate what is said to be the same, and return how much that is."""
    found = groups(fgraph)
    pairs = [(group[0], other) for group in found for other in group[1:]]
    variables = [variable for pair in pairs for variable in pair]
    results = evaluate(FunctionGraph(fgraph.inputs, variables, clone=True), values)
    assert_same_results(results[::2], results[1::2], tolerance_of(fgraph))
    return len(pairs)


@given(any_programs(), st.integers(2, 6))
def test_the_same_term_is_the_same_value(program: Program, max_operands: int) -> None:
    case = build_fused_and_not(program, max_operands)
    # Each output is there twice, fused and not.
    check(case.fgraph, case.values)


@given(slice_programs())
def test_assignments_and_slices(program: SliceProgram) -> None:
    case = build_slices(program)
    again = clone_replace(case.outputs, {}, copy_inputs_over=True)
    fgraph = FunctionGraph(case.inputs, [*case.outputs, *again], clone=True)
    # Each is there twice.
    check(fgraph, case.calls[0])


def test_memory_that_holds_anything_is_like_no_other():
    one, other = pt.empty(3), pt.empty(3)
    copied = one.copy()
    [group] = groups(FunctionGraph([], [one, other, copied], clone=False))
    assert set(group) == {one, copied}


def test_a_graph_and_its_copy_hold_the_same():
    x = pt.matrix("x")
    outputs = [pt.linalg.cholesky(x @ x.T), x[1:].sum(axis=0), pt.concatenate([x, x.T])]
    copies = clone_replace(outputs, {}, copy_inputs_over=True)
    fgraph = FunctionGraph([x], [*outputs, *copies], clone=False)
    together = {frozenset(group) for group in groups(fgraph)}
    assert {frozenset(pair) for pair in zip(outputs, copies, strict=True)} <= together


def test_random_numbers_are_the_same_only_from_the_same_generator():
    first, second = (pytensor.shared(np.random.default_rng(0), name=name) for name in "ab")

    draws = [
        NormalRV().make_node(generator, None, 0.0, 1.0) for generator in (first, first, second)
    ]
    numbers = [node.outputs[1] for node in draws]
    fgraph = FunctionGraph([first, second], [n + 0.0 for n in numbers], clone=False)
    values = Values(graph_context(fgraph, None))
    one, same, other = (values.of(number) for number in numbers)
    assert one == same != other


def test_what_goes_into_a_graph_and_comes_out_is_known():
    x, y = pt.matrices("x", "y")
    a, b = pt.matrices("a", "b")
    by_graph = OpFromGraph([a, b], [pt.exp(a) @ b, a.T, b])(x, y)
    again = [pt.exp(x) @ y, x.T, y.copy()]
    fgraph = FunctionGraph([x, y], [*by_graph, *again], clone=False)
    values = Values(graph_context(fgraph, None))
    assert [values.of(v) for v in by_graph] == [values.of(v) for v in again]


def test_what_varies_in_a_loop():
    x = pt.matrix("x")

    def step(row, state, matrix):
        return state + row @ matrix, (matrix.T * 2).sum()

    states, sums = pytensor.scan(
        step,
        sequences=[x],
        outputs_info=[x[0], None],
        non_sequences=[x],
        return_updates=False,
    )
    fgraph = FunctionGraph([x], [states, sums], clone=False)
    values = Values(graph_context(fgraph, None))
    [(_, inner)] = values.inner
    varying = {str(node.op) for node in inner.context.order if inner.varies(node)}
    constant = {str(node.op) for node in inner.context.order if not inner.varies(node)}
    assert "Add" in varying
    assert "Sum{axes=None}" in constant
    assert not any(values.varies(node) for node in values.context.order)


def test_constants_are_compared_bit_for_bit():
    x = pt.vector("x")
    zeros = [pt.constant(np.array([value, 1.0])) for value in (0.0, 0.0, -0.0)]
    outputs = [pt.concatenate([x, zero]) for zero in zeros]
    fgraph = FunctionGraph([x], outputs, clone=False)
    values = Values(graph_context(fgraph, None))
    assert not any(isinstance(v, Constant) for v in outputs)
    one, same, other = (values.of(output) for output in outputs)
    assert one == same != other
