"""Ops that walks take for one: those that are the same to everyone who reads them."""

from __future__ import annotations

import gc
import itertools
import weakref
from typing import TYPE_CHECKING, Any, ClassVar

import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.op import Op
from pytensor.raise_op import Assert
from pytensor.tensor.math import All, Max
from pytensor.tensor.type import TensorType

from pytensor_fuse import _core
from pytensor_fuse._identity.plain_ops import PLAIN_OPS
from pytensor_fuse._identity.terms import term

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Unary(Op):
    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = inputs[0]


class _ByValue(_Unary):
    __props__ = ("scale",)

    def __init__(self, scale: object, note: object = None) -> None:
        self.scale = scale
        self.note = note


class _ByProperty(_Unary):
    __props__ = ("scale",)
    scales: ClassVar[dict[int, object]] = {}

    @property
    def scale(self) -> object:
        return self.scales[id(self)]


class _Slotted(_Unary):
    __slots__ = ("scale",)
    __props__ = ("scale",)

    def __init__(self, scale: object) -> None:
        self.scale = scale


class _ByIdentity(_Unary):
    pass


class _ByOwnRule(_Unary):
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return 1


class _Computing(_Unary):
    __props__ = ("scale",)
    last = 0

    def __getattr__(self, name: str) -> object:
        if name != "scale":
            raise AttributeError(name)
        type(self).last += 1
        return self.last


def _distinct(ops: Sequence[Op]) -> int:
    x = pt.vector("x")
    outputs = [Apply(op, [x], [x.type()]).outputs[0] for op in ops]
    return len(_core.walk([x], outputs, Constant, TensorType, PLAIN_OPS)[1])


SAME = {
    "assertions": lambda: Assert("sigma > 0"),
    "reductions": lambda: All(axis=(0,)),
    "props": lambda: _ByValue((1, slice(None, 2), "a", None)),
    "long strings": lambda: _ByValue("".join(["scale"] * 3)),
    "slots": lambda: _Slotted(7),
}


@pytest.mark.parametrize("make", SAME.values(), ids=SAME)
def test_ops_with_the_same_attributes_are_one(make: Any) -> None:
    a, b = make(), make()
    assert a is not b
    assert _distinct([a, b]) == 1
    assert a == b
    assert term(a) == term(b)


def _with_map() -> Op:
    op = _ByValue(1)
    op.view_map = {0: [0]}
    return op


def _of_property(scale: object) -> Op:
    op = _ByProperty()
    op.scales[id(op)] = scale
    return op


DIFFERENT: dict[str, list[Op]] = {
    "props": [_ByValue(1), _ByValue(2), _ByValue("1"), _ByValue((1,)), _ByValue(None)],
    "slices": [_ByValue(slice(*parts)) for parts in itertools.permutations((0, 1, None), 3)],
    "nested": [_ByValue(((1,), 2)), _ByValue(((1, 2),)), _ByValue((1, 2)), _ByValue((1, (2,)))],
    "strings that cannot be written": [_ByValue("\ud800"), _ByValue("\ud801")],
    "what is not compared": [_ByValue(1, "a"), _ByValue(1, "b")],
    "maps": [_ByValue(1), _with_map()],
    "properties": [_of_property(1), _of_property(2)],
    "slots": [_Slotted(1), _Slotted(2)],
    "classes": [All(axis=(0,)), Max(axis=(0,)), Assert("0")],
    "by identity": [_ByIdentity(), _ByIdentity()],
    "by a rule of the class": [_ByOwnRule(), _ByOwnRule()],
    "computed attributes": [_Computing(), _Computing()],
}


@pytest.mark.parametrize("ops", DIFFERENT.values(), ids=DIFFERENT)
def test_other_ops_stay_apart(ops: list[Op]) -> None:
    assert _distinct(ops) == len(ops)


def test_subtensors_of_a_graph_are_one_op_each() -> None:
    x = pt.matrix("x")
    columns = [x[:, i] for i in range(5)] + [x[1:, 0] for _ in range(3)]
    ops = _core.walk([x], columns, Constant, TensorType, PLAIN_OPS)[1]
    assert len(ops) == 2
    assert len({column.owner.op for column in columns}) == 2


def test_many_messages_take_linear_time() -> None:
    assert _distinct([Assert(f"x{i} > 0") for i in range(2000)]) == 2000


def test_classes_can_be_collected() -> None:
    class Temporary(_Unary):
        __props__ = ()

    assert _distinct([Temporary(), Temporary()]) == 1
    alive = weakref.ref(Temporary)
    del Temporary
    gc.collect()
    assert alive() is None
