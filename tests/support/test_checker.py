"""Tests of the checker: it accepts stock's plans, and refuses each kind of illegal plan."""

import pytensor.tensor as pt
import pytest
from hypothesis import given
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph

from support.checker import (
    SimpleKernel,
    check_kernels,
    check_order,
    external_inputs,
    external_outputs,
    stock_plan,
)
from support.graphs import deep_small_kernels, large_fuseable_graph, reverse
from support.random_graphs.building import Program, build
from support.random_graphs.strategies import any_programs


def kernel(fgraph: FunctionGraph, *members: Apply) -> SimpleKernel:
    return SimpleKernel(
        members, tuple(external_inputs(members)), tuple(external_outputs(members, fgraph))
    )


@given(any_programs())
def test_accepts_what_stock_does(program: Program) -> None:
    fgraph = build(program).fgraph
    check_kernels(stock_plan(fgraph).kernels, fgraph)


@pytest.mark.parametrize(
    ("fgraph", "n_kernels"), [(deep_small_kernels(20), 20), (large_fuseable_graph(25), 55)]
)
def test_stock_makes_the_known_number_of_kernels(fgraph: FunctionGraph, n_kernels: int) -> None:
    assert len(stock_plan(fgraph).kernels) == n_kernels


def test_refuses_a_cycle_through_an_unfusable_node() -> None:
    x = pt.vector("x")
    a = pt.exp(x)
    b = a + reverse(a)
    fgraph = FunctionGraph([x], [b], clone=False)
    with pytest.raises(AssertionError, match="cycle"):
        check_kernels([kernel(fgraph, a.owner, b.owner)], fgraph)


def test_refuses_a_joint_cycle() -> None:
    x, y = pt.vectors("x", "y")
    a1, b1 = pt.sin(x), pt.cos(y)
    a2, b2 = a1 + reverse(b1), b1 + reverse(a1)
    fgraph = FunctionGraph([x, y], [a2, b2], clone=False)
    a, b = kernel(fgraph, a1.owner, a2.owner), kernel(fgraph, b1.owner, b2.owner)
    check_kernels([a], fgraph)
    check_kernels([b], fgraph)
    with pytest.raises(AssertionError, match="cycle"):
        check_kernels([a, b], fgraph)


def test_refuses_unconnected_members() -> None:
    x, y = pt.vectors("x", "y")
    a, b = pt.sin(x), pt.cos(y)
    fgraph = FunctionGraph([x, y], [a, b], clone=False)
    with pytest.raises(AssertionError, match="not connected"):
        check_kernels([kernel(fgraph, a.owner, b.owner)], fgraph)


def test_refuses_siblings_of_an_input_that_is_broadcast() -> None:
    x = pt.row("x")
    y, z = pt.matrices("y", "z")
    a, b = x + y, x + z
    fgraph = FunctionGraph([x, y, z], [a, b], clone=False)
    with pytest.raises(AssertionError, match="not connected"):
        check_kernels([kernel(fgraph, a.owner, b.owner)], fgraph)


def test_refuses_two_broadcast_patterns() -> None:
    x, m = pt.row("x"), pt.matrix("m")
    a = pt.exp(x)
    b = a + m
    fgraph = FunctionGraph([x, m], [b], clone=False)
    with pytest.raises(AssertionError, match="mixes broadcast patterns"):
        check_kernels([kernel(fgraph, a.owner, b.owner)], fgraph)


def test_refuses_what_may_not_be_fused() -> None:
    x = pt.vector("x")
    a = pt.erfcinv(x)
    b = a + a
    c = reverse(b)
    fgraph = FunctionGraph([x], [c], clone=False)
    for members in ((a.owner, b.owner), (b.owner, c.owner)):
        with pytest.raises(AssertionError, match="may not be fused"):
            check_kernels([kernel(fgraph, *members)], fgraph)


def test_refuses_a_node_in_two_kernels_and_wrong_operands() -> None:
    x = pt.vector("x")
    a = pt.sin(x)
    b = pt.cos(a)
    c = pt.tanh(b)
    fgraph = FunctionGraph([x], [c], clone=False)
    good = kernel(fgraph, a.owner, b.owner)
    with pytest.raises(AssertionError, match="in two kernels"):
        check_kernels([good, kernel(fgraph, b.owner, c.owner)], fgraph)
    with pytest.raises(AssertionError, match="inputs"):
        check_kernels([SimpleKernel(good.nodes, (), good.outputs)], fgraph)
    with pytest.raises(AssertionError, match="outputs"):
        check_kernels([SimpleKernel(good.nodes, good.inputs, (a, b))], fgraph)
    with pytest.raises(AssertionError, match="operands"):
        check_kernels([good], fgraph, max_operands=1)
    with pytest.raises(AssertionError, match="fuses nothing"):
        check_kernels([kernel(fgraph, a.owner)], fgraph)


def test_refuses_a_kernel_before_one_that_it_needs() -> None:
    x = pt.vector("x")
    variables = [x]
    for op in (pt.sin, pt.cos, reverse, pt.exp, pt.sigmoid, reverse, pt.tanh, pt.neg):
        variables.append(op(variables[-1]))
    fgraph = FunctionGraph([x], [variables[-1]], clone=False)
    first, second, third = (
        kernel(fgraph, variables[i].owner, variables[i + 1].owner) for i in (1, 4, 7)
    )
    check_order([first, second, third], fgraph)
    with pytest.raises(AssertionError, match="before one that it needs"):
        check_order([first, third, second], fgraph)
    backwards = SimpleKernel(first.nodes[::-1], first.inputs, first.outputs)
    with pytest.raises(AssertionError, match="node order"):
        check_order([backwards], fgraph)
