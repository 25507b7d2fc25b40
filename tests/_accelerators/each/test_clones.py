"""Copies of nodes are as PyTensor makes them."""

from __future__ import annotations

import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.scalar import float64
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

import pytensor_fuse
from pytensor_fuse._accelerators.clones import drop_in as clones
from support.random_graphs.building import build
from support.random_graphs.strategies import any_programs
from support.switching import switched

with pytensor_fuse.enabled(False):
    stock = Apply.clone_with_new_inputs


def ours(node, *args, **kwargs):
    return clones.clone_with_new_inputs(node, *args, **kwargs)


def described(variable):
    parts = dict(vars(variable))
    parts["tag"] = dict(vars(parts["tag"]))
    # How many variables there have been.
    parts.pop("auto_name")
    return type(variable), parts


def assert_same_copies(node, inputs, **options):
    expected, made = stock(node, inputs, **options), ours(node, inputs, **options)
    assert type(made) is type(expected)
    assert list(vars(made)) == list(vars(expected))
    assert made.op is expected.op
    assert type(made.inputs) is list
    assert made.inputs == expected.inputs
    assert made.inputs is not node.inputs
    assert type(made.tag) is type(expected.tag)
    assert vars(made.tag) == vars(expected.tag)
    assert made.tag is not node.tag
    assert len(made.outputs) == len(expected.outputs) == len(node.outputs)
    for new, other, old in zip(made.outputs, expected.outputs, node.outputs, strict=True):
        assert list(vars(new)) == list(vars(other))
        class_, parts = described(new)
        expected_class, expected_parts = described(other)
        assert (parts.pop("owner"), expected_parts.pop("owner")) == (made, expected)
        assert (class_, parts) == (expected_class, expected_parts)
        assert new.type is old.type or new.type == other.type
        assert new.tag is not old.tag
        assert new.auto_name not in (old.auto_name, other.auto_name)
        number = int(new.auto_name.removeprefix("auto_"))
        assert number > int(old.auto_name.removeprefix("auto_"))


@given(any_programs())
def test_random_graphs(program):
    for number, node in enumerate(build(program).fgraph.toposort()):
        node.tag.note = ["of", "a", "test"]
        node.outputs[0].name = f"n{number}" if number % 2 else None
        assert_same_copies(node, node.inputs)
        assert_same_copies(node, tuple(one.clone() for one in node.inputs))
        assert_same_copies(node, node.inputs, strict=False)


def test_inputs_of_other_types():
    x = pt.matrix("x")
    y = TensorType("float64", shape=(3, 4))("y")
    node = pt.exp(x).owner
    for strict in (True, False):
        copies = [copied(node, [y], strict=strict) for copied in (stock, ours)]
        assert [copied.inputs for copied in copies] == [[y], [y]]
        assert [copied.outputs[0].type.shape for copied in copies] == [(3, 4), (3, 4)]
    for copied in (stock, ours):
        with pytest.raises(TypeError):
            copied(node, [pt.vector("z", dtype="int64")])


def test_ops_whose_types_depend_on_values():
    n = pt.scalar("n", dtype="int64")
    node = pt.alloc(0.0, n).owner
    assert node.op._output_type_depends_on_input_value
    five = pt.constant(5)
    for copied in (stock, ours):
        assert copied(node, [node.inputs[0], five], strict=False).outputs[0].type.shape == (5,)


@pytest.mark.parametrize("inputs", [[], ["x", "x"]], ids=["none", "two"])
def test_other_numbers_of_inputs(inputs):
    x = pt.vector("x")
    node = pt.exp(x).owner
    for copied in (stock, ours):
        with pytest.raises(ValueError, match="zip"):
            copied(node, [x for _ in inputs])


def test_classes_of_others():
    class Named(TensorVariable):
        def clone(self, **kwargs):
            made = super().clone(**kwargs)
            made.name = "cloned"
            return made

    x = pt.vector("x")
    node = Apply(pt.exp, [x], [Named(x.type, None)])
    assert ours(node, [x]).outputs[0].name == stock(node, [x]).outputs[0].name == "cloned"

    class Node(Apply):
        pass

    other = Node(pt.exp, [x], [x.type()])
    assert type(ours(other, [x])) is Node
    scalar = float64("s")
    node = (scalar + scalar).owner
    assert_same_copies(node, node.inputs)
    assert isinstance(node.outputs[0], Variable)
    assert not isinstance(node.outputs[0], Constant)


def test_a_setting_that_asks_to_be_told():
    x = pt.vector("x")
    node = pt.exp(x).owner
    with pytensor.config.change_flags(warn_float64="raise"):
        for copied in (stock, ours):
            with pytest.raises(Exception, match="float64"):
                copied(node, [x])
    assert_same_copies(node, [x])


def test_what_it_is_there_for():
    with switched(accelerators=["clones"]):
        assert Apply.clone_with_new_inputs is not stock
    with switched(accelerators=False):
        assert Apply.clone_with_new_inputs is stock
