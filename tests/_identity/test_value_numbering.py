"""Which outputs of kernels are the same values, judged by evaluating them."""

from __future__ import annotations

import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type import TensorType

from pytensor_fuse._identity.value_numbering import equal_outputs
from support.graphs import assert_same_results, evaluate, tolerance_of
from support.random_graphs.building import Program, build_fused_and_not
from support.random_graphs.strategies import any_programs


def classes(inputs, outputs):
    """The sets of variables that are found to be the same."""
    found = {}
    for other, first in equal_outputs(FunctionGraph(inputs, outputs, clone=False).toposort()):
        found.setdefault(first, {first}).add(other)
    return list(found.values())


X, Y = pt.vectors("x", "y")
a, b, c = (ps.float64(name) for name in "abc")


def composite(inputs, outputs):
    return Elemwise(Composite(list(inputs), list(outputs)))


def test_an_expression_is_the_same_in_any_kernel():
    shared = ps.exp(a) * b
    first, _ = composite([a, b], [shared, shared + a])(X, Y)
    # The same, beside other things, the inputs in another order.
    _, second = composite([b, a], [b - a, shared])(Y, X)
    alone = pt.exp(X) * Y
    assert classes([X, Y], [first, second, alone]) == [{first, second, alone}]


def test_other_operands_or_ops_make_other_values():
    difference, _ = composite([a, b], [a - b, a + b])(X, Y)
    swapped, _ = composite([a, b], [b - a, a * b])(X, Y)
    other = composite([a], [ps.exp(a)])(X)
    assert classes([X, Y], [difference, swapped, other, pt.exp(Y)]) == []


def test_kernels_on_top_of_kernels():
    low = composite([a], [ps.exp(a)])(X)
    high = composite([a, b], [ps.log1p(a) * b])(low, Y)
    whole = composite([a, b], [ps.log1p(ps.exp(a)) * b])(X, Y)
    assert classes([X, Y], [high, whole]) == [{high, whole}]


def test_an_output_has_the_shape_of_all_inputs():
    row, matrix = pt.row("row"), pt.matrix("matrix")
    narrow = composite([a], [ps.exp(a)])(row)
    wide, _ = composite([a, b], [ps.exp(a), a + b])(row, matrix)
    assert narrow.type != wide.type
    assert classes([row, matrix], [narrow, wide]) == []
    # Broadcast together with the same.
    again, _ = composite([a, b], [ps.exp(a), a - b])(row, matrix)
    assert classes([row, matrix], [wide, again]) == [{again, wide}]
    other = pt.matrix("other")
    elsewhere, _ = composite([a, b], [ps.exp(a), a - b])(row, other)
    assert classes([row, matrix, other], [wide, elsewhere]) == []
    # Where the expression itself fixes the shape, what else the kernel reads does not matter.
    long, _ = composite([a, b], [ps.exp(a), a - b])(matrix, row)
    long_again, _ = composite([a, b], [ps.exp(a), a - b])(matrix, other)
    assert classes([row, matrix, other], [long, long_again]) == [{long, long_again}]


@pytest.mark.parametrize("numbers", [(2.0, 2.0), (0.0, -0.0)])
def test_a_constant_is_the_same_inside_and_outside(numbers):
    inlined = composite([a], [ps.arctan2(a, ps.constant(numbers[0], dtype="float64"))])(X)
    outside = composite([a, b], [ps.arctan2(a, b)])(X, pt.constant([numbers[1]]))
    expected = [{inlined, outside}] if str(numbers[0]) == str(numbers[1]) else []
    assert classes([X], [inlined, outside]) == expected


def test_nodes_that_overwrite_an_input_are_left_alone():
    in_place = Elemwise(ps.exp, inplace_pattern={0: 0})
    assert in_place.destroy_map
    first, second = in_place(X + 1), pt.exp(X + 1)
    assert classes([X], [first, second]) == []


def test_a_less_specific_type_does_not_take_the_place_of_another():
    three = pt.vector("three", shape=(3,))
    exact = pt.exp(three)
    vague = TensorType("float64", (None,))()
    Apply(exact.owner.op, [three], [vague])
    # In the order in which they are computed, whichever that is.
    for outputs in ([exact, vague], [vague, exact]):
        fgraph = FunctionGraph([three], outputs, clone=False)
        first = fgraph.toposort()[0].outputs[0]
        expected = [(vague, exact)] if first is exact else []
        assert equal_outputs(fgraph.toposort()) == expected


@given(any_programs(), st.integers(2, 6))
def test_equal_outputs_are_equal(program: Program, max_operands: int) -> None:
    case = build_fused_and_not(program, max_operands)
    both = case.fgraph
    found = equal_outputs(both.toposort())
    assume(found)
    order = {node: i for i, node in enumerate(both.toposort())}
    tolerance = tolerance_of(both)
    variables = [variable for pair in found for variable in pair]
    values = evaluate(FunctionGraph(both.inputs, variables, clone=True), case.values)
    assert_same_results(values[::2], values[1::2], tolerance)
    for later, first in found:
        assert order[first.owner] <= order[later.owner]
        assert later.type.is_super(first.type)
