"""Ops that are plainly the same: by which attributes walks and merging tell ops of a class apart.

Graphs hold many equal ops, each a separate object. A comparison in the core unifies those that any
reader would call the same, so that Python makes one term for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pytensor.graph.op import Op
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Sum

from pytensor_fuse._pytensor.graphs.comparison import compared

if TYPE_CHECKING:
    from collections.abc import Mapping


class _AttributesByClass(dict[type[Op], tuple[str, ...]]):
    """Names of attributes by class: given ones, else all that an op has, if it compares by value.

    Two ops whose attributes are all the same are the same even to those who read what the ops do
    not compare.
    """

    def __init__(self, given: Mapping[type[Op], tuple[str, ...]]) -> None:
        super().__init__(given)
        self._chosen: WeakKeyDictionary[type[Op], tuple[str, ...] | None] = WeakKeyDictionary()

    def __missing__(self, class_: type[Op]) -> tuple[str, ...]:
        try:
            names = self._chosen[class_]
        except KeyError:
            names = self._chosen[class_] = _choose(class_)
        if names is None:
            raise KeyError(class_)
        return names


def _choose(class_: type[Op]) -> tuple[str, ...] | None:
    names = compared(class_)
    if names is None or class_.__getattribute__ is not object.__getattribute__:
        return None
    if hasattr(class_, "__getattr__"):
        return None
    # A property, a slot or an attribute of the class is not in the dictionary of the op.
    return ("__dict__", *(name for name in names if hasattr(class_, name)))


# Of the most frequent classes, the attributes that decide all others. The `destroy_map` of an
# Elemwise and its `inplace_pattern` determine each other.
PLAIN_OPS: dict[type[Op], tuple[str, ...]] = _AttributesByClass(
    {
        Elemwise: ("scalar_op", "destroy_map"),
        DimShuffle: ("input_ndim", "new_order"),
        Sum: ("scalar_op", "axis", "dtype", "acc_dtype", "upcast_discrete_output"),
    }
)
