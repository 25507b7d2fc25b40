"""The parts of a graph that one walk reads: those that a walk in Python finds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.op import Op
from pytensor.graph.utils import Scratchpad
from pytensor.tensor.type import TensorType

from pytensor_fuse._core import walk, walk_parts
from pytensor_fuse._identity.plain_ops import PLAIN_OPS

HARMLESS = ("trace", "imported_by")
NOTES = st.sets(st.sampled_from(["trace", "imported_by", "used"]))


class Many(Op):
    """An op of some outputs."""

    __props__ = ("n_outputs",)

    def __init__(self, n_outputs):
        self.n_outputs = n_outputs

    def make_node(self, *inputs):
        return Apply(self, list(inputs), [pt.scalar() for _ in range(self.n_outputs)])

    def perform(self, node, inputs, outputs):
        raise NotImplementedError


def note(thing, names):
    thing.tag = Scratchpad()
    for name in names:
        setattr(thing.tag, name, 1)


@st.composite
def graphs(draw):
    inputs = [pt.scalar() for _ in range(draw(st.integers(0, 2)))]
    known = inputs + [pt.constant(value) for value in draw(st.lists(st.integers(0, 3), min_size=1))]
    for _ in range(draw(st.integers(0, 6))):
        reads = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
        node = Many(draw(st.integers(1, 2))).make_node(*reads)
        note(node, draw(NOTES))
        known = [*known, *node.outputs]
    for variable in known:
        note(variable, draw(NOTES))
        variable.name = draw(st.sampled_from([None, "a", "b"]))
    return inputs, draw(st.lists(st.sampled_from(known), max_size=3))


def reference(inputs, outputs):
    nodes, variables, constants = [], list(inputs), []
    pending = outputs[::-1]
    while pending:
        variable = pending.pop()
        node = variable.owner
        if node is None:
            if isinstance(variable, Constant):
                constants.append(variable)
        elif node not in nodes:
            nodes.append(node)
            variables += node.outputs
            pending += node.inputs
    return nodes, variables, constants


def parts_of(inputs, outputs) -> Any:
    return walk_parts(inputs, outputs, Constant, TensorType, PLAIN_OPS, HARMLESS)


def ids(things):
    return [id(thing) for thing in things]


@given(graphs())
def test_parts(graph):
    walked, parts = parts_of(*graph)
    nodes, variables, constants = reference(*graph)
    assert ids(parts.nodes) == ids(nodes)
    assert ids(parts.variables) == ids(variables)
    assert ids(parts.constants) == ids(constants)
    names = enumerate(variable.name for variable in variables)
    assert parts.names == [(place, name) for place, name in names if name is not None]
    noted = [one for one in (*variables, *constants) if vars(one.tag).keys() - {"trace"}]
    assert ids(parts.noted_variables) == ids(noted)
    noted = [node for node in nodes if vars(node.tag).keys() - {"imported_by"}]
    assert ids(parts.noted_nodes) == ids(noted)
    rows, *objects = walk(*graph, Constant, TensorType, PLAIN_OPS)
    assert walked[0].parts() == rows.parts()
    assert [ids(each) for each in walked[1:]] == [ids(each) for each in objects]


def test_a_constant_among_the_inputs():
    constant = pt.constant(1.0)
    _, parts = parts_of([constant], [constant])
    assert parts.constants == [constant]
    assert parts.variables == [constant]


class Slots:
    __slots__ = ("used",)


@pytest.mark.parametrize("tag", [3, Slots()])
def test_a_tag_of_no_attributes(tag):
    x = pt.scalar()
    x.tag = tag
    with pytest.raises(AttributeError):
        parts_of([x], [x])


def test_what_has_no_tag():
    x = SimpleNamespace(owner=None, type=pt.scalar().type, name=None)
    with pytest.raises(AttributeError):
        parts_of([x], [x])


def test_a_tag_that_hides_its_attributes():
    class Odd:
        __dict__: Any = {}

    x = pt.scalar()
    x.tag = Odd()
    x.tag.used = 1
    _, parts = parts_of([x], [x])
    assert parts.noted_variables == [x]


@pytest.mark.parametrize("cycle", [1, 2, 1000])
def test_a_variable_that_depends_on_itself(cycle):
    nodes = [Many(1).make_node(pt.scalar()) for _ in range(cycle)]
    for index, node in enumerate(nodes):
        node.inputs = [nodes[index - 1].outputs[0]]
    with pytest.raises(ValueError, match="depends on its own output"):
        parts_of([], [nodes[0].outputs[0]])
