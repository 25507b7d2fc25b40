"""Frozen graphs are equal when they should be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pytensor.graph.basic import Constant, equal_computations
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.type import TensorType

import pytensor_fuse
from pytensor_fuse import freeze
from pytensor_fuse._identity.frozen import same_graph
from support.frozen import Other, applied
from support.random_graphs.building import build
from support.random_graphs.strategies import any_programs

# Perturbed graphs -------------------------------------------------------------------------------


def rebuilt(fgraph, changed=None, *, op=None, inputs=None, types=None, constants=()):
    """A copy of the graph by hand, in which a node has another op, inputs or types."""
    new = {variable: variable for variable in fgraph.inputs} | dict(constants)
    for node in fgraph.toposort():
        kinds = [output.type for output in node.outputs]
        if node is changed:
            parts = op or node.op, inputs or node.inputs, types or kinds
        else:
            parts = node.op, node.inputs, kinds
        copied = applied(parts[0], [new.get(v, v) for v in parts[1]], parts[2])
        new.update(zip(node.outputs, copied.outputs, strict=True))
    outputs = [new.get(output, output) for output in fgraph.outputs]
    return FunctionGraph(fgraph.inputs, outputs, clone=False)


def with_another_op(fgraph, number):
    nodes = fgraph.toposort()
    node = nodes[number % len(nodes)]
    return rebuilt(fgraph, node, op=Other(node.op))


def with_another_type(fgraph, number):
    nodes = fgraph.toposort()
    node = nodes[number % len(nodes)]
    types = [output.type for output in node.outputs]
    kind = types[number % len(types)]
    if kind.shape:
        shape = tuple(None if length == 7 else 7 for length in kind.shape)
        kind = TensorType(kind.dtype, shape)
    else:
        kind = TensorType("int8" if kind.dtype != "int8" else "int16", ())
    types[number % len(types)] = kind
    return rebuilt(fgraph, node, types=types)


def with_another_bit(fgraph, number):
    constants = [v for node in fgraph.toposort() for v in node.inputs if isinstance(v, Constant)]
    assume(constants)
    constant = constants[number % len(constants)]
    data = np.array(constant.data)
    assume(data.nbytes > 0 and data.dtype != bool)
    flat = data.reshape(-1).view("uint8")
    flat[number % len(flat)] ^= 1 << number % 8
    changed = type(constant)(constant.type, data)
    return rebuilt(fgraph, constants={constant: changed})


def with_inputs_of_a_node_swapped(fgraph, number):
    nodes = [node for node in fgraph.toposort() if len(set(node.inputs)) > 1]
    assume(nodes)
    node = nodes[number % len(nodes)]
    return rebuilt(fgraph, node, inputs=[*node.inputs[1:], node.inputs[0]])


def with_outputs_swapped(fgraph, number):
    assume(len(fgraph.outputs) > 1)
    outputs = [*fgraph.outputs[1:], fgraph.outputs[0]]
    return FunctionGraph(fgraph.inputs, outputs, clone=False)


def with_inputs_swapped(fgraph, number):
    assume(len(fgraph.inputs) > 1)
    inputs = [*fgraph.inputs[1:], fgraph.inputs[0]]
    return FunctionGraph(inputs, fgraph.outputs, clone=False)


PERTURBATIONS: tuple[Callable, ...] = (
    with_another_op,
    with_another_type,
    with_another_bit,
    with_inputs_of_a_node_swapped,
    with_outputs_swapped,
    with_inputs_swapped,
)


class WrittenOut:
    """What graphs compute, by comparing each node with all that there were: an oracle."""

    def __init__(self):
        self.ops = []
        self.ids = {}

    def op(self, op):
        if op not in self.ops:
            self.ops.append(op)
        return self.ops.index(op)

    def graph(self, fgraph):
        known = {}
        for position, variable in enumerate(fgraph.inputs):
            known[variable] = self.id("input", position, repr(variable.type))

        def leaf(variable):
            if isinstance(variable, Constant):
                data = np.asarray(variable.data)
                return self.id("constant", repr(variable.type), data.tobytes())
            return known[variable]

        for node in fgraph.toposort():
            types = tuple(repr(output.type) for output in node.outputs)
            node_id = self.id("node", self.op(node.op), *map(leaf, node.inputs), types)
            for index, output in enumerate(node.outputs):
                known.setdefault(output, self.id("output", node_id, index))
        types = [repr(variable.type) for variable in fgraph.inputs]
        return types, [leaf(output) for output in fgraph.outputs]

    def id(self, *key):
        return self.ids.setdefault(key, len(self.ids))


@given(any_programs())
def test_graphs_that_are_built_alike_are_equal(program):
    a, b = (build(program).fgraph for _ in range(2))
    frozen, again = freeze(a), freeze(b)
    assert frozen == again
    assert hash(frozen) == hash(again)
    assert frozen.digest == again.digest
    assert {frozen: "value"}[again] == "value"
    assert same_graph(a, (b.inputs, b.outputs))
    assert len(frozen) <= len(a.apply_nodes)


@given(
    any_programs(),
    st.lists(st.tuples(st.sampled_from(PERTURBATIONS), st.integers(0, 1000)), max_size=2),
)
def test_graphs_are_equal_exactly_if_they_are_when_written_out(program, perturbations):
    a, b = (build(program).fgraph for _ in range(2))
    assume(a.apply_nodes)
    for perturb, number in perturbations:
        b = perturb(b, number)
    written = WrittenOut()
    expected = written.graph(a) == written.graph(b)
    if not perturbations:
        assert expected
    frozen, other = freeze(a), freeze(b)
    assert (frozen == other) == expected
    assert (frozen != other) == (not expected)
    assert (frozen.digest == other.digest) == expected
    assert same_graph(a, b) == same_graph(b, frozen) == expected


@pytest.mark.parametrize("perturb", PERTURBATIONS[:3], ids=lambda f: f.__name__)
@given(program=any_programs(), number=st.integers(0, 1000))
def test_one_difference_makes_a_difference(perturb, program, number):
    fgraph = build(program).fgraph
    assume(fgraph.apply_nodes)
    assert not same_graph(fgraph, perturb(fgraph, number))


@given(
    any_programs(),
    st.lists(
        st.tuples(
            st.sampled_from([p for p in PERTURBATIONS if p is not with_another_type]),
            st.integers(0, 1000),
        ),
        max_size=2,
    ),
)
def test_agrees_with_equal_computations(program, perturbations):
    a, b = (build(program).fgraph for _ in range(2))
    assume(a.apply_nodes)
    for perturb, number in perturbations:
        b = perturb(b, number)
    # It does not compare static shapes of inputs; an input that is an output besides is odd.
    assume([v.type for v in a.inputs] == [v.type for v in b.inputs])
    assert same_graph(a, b) == equal_computations(a.outputs, b.outputs, a.inputs, b.inputs)


def test_where_equal_computations_answers_otherwise():
    x, y = pt.vectors("xy")
    # The package's own change to how PyTensor compares constants is off.
    with pytensor_fuse.enabled(False):
        assert equal_computations([x / 0.0], [y / -0.0], [x], [y])
    assert not same_graph(([x], [x / 0.0]), ([y], [y / -0.0]))

    long = TensorType("float64", (3,))("long")
    assert equal_computations([pt.exp(x)], [pt.exp(long)], [x], [long])
    assert not same_graph(([x], [pt.exp(x)]), ([long], [pt.exp(long)]))

    with pytest.raises(ValueError, match="number of graphs"):
        equal_computations([x], [y, y], [x], [y])
    assert not same_graph(([x], [x]), ([y], [y, y]))
