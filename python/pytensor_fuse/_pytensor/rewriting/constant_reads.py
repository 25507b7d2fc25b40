"""Reads of the data of constants, and the constants that folding computes from them.

While a thread has a watcher, the watcher is notified of each read of the data of a tensor constant,
with the code that reads, and the rewriters that compute constants from constants report to it.
Other threads, and constants of other classes, are not affected.
"""

from __future__ import annotations

import operator
import sys
import threading
from contextlib import contextmanager
from functools import reduce
from types import CodeType
from typing import TYPE_CHECKING, Any, Final

from pytensor.assumptions.core import CONSTANT_INFER_REGISTRY
from pytensor.graph.basic import Apply, Constant
from pytensor.tensor.basic import constant as tensor_constant
from pytensor.tensor.rewriting import basic, elemwise
from pytensor.tensor.subtensor import _is_provably_positive
from pytensor.tensor.variable import TensorConstant

from pytensor_fuse._pytensor.patching.drop_ins import DropIn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytensor.graph.op import Op
    from pytensor.graph.type import Type

    from pytensor_fuse._pytensor.patching.patches import Patch

# Where PyTensor stores its findings about the data of a constant, in the constant itself and in its
# tag; with the question that a finding answers (see `questions`), if there is one.
_REMEMBERED: Final = {"_unique_value": "for its only value"}
_REMEMBERED_IN_TAGS: Final = {
    **dict.fromkeys(("unique_value", "unique_indices", "jointly_unique_indices", "is_arange")),
    **{
        f"is_{kind}": f"whether it is {kind}"
        for kind in ("permutation", "selection", "diagonal", "tridiagonal", "positive")
    },
    "is_non_negative": "whether it is not negative",
}


class Watcher:
    """Is notified of reads and of new constants; this base class ignores both."""

    def read(self, constant: TensorConstant[Any], reader: CodeType) -> None:
        """Note that the code of a function reads the data of a constant."""

    def must_be_same(self, constants: Iterable[object], reader: str) -> None:
        """Note that code may decide by the data of constants."""

    def is_watched(self, constant: object) -> bool:
        """Return whether new constants computed from this one are to be reported."""
        return False

    def folded(
        self, op: Op, operands: Sequence[Constant[Any]], types: Sequence[Type[Any]], made: Any
    ) -> None:
        """Note that an op computed constants from others; ``types`` are those of its outputs."""

    def converted(self, constant: TensorConstant[Any], made: TensorConstant[Any]) -> None:
        """Note that the data of a constant was converted to another dtype."""

    def combined(
        self, sign: str, operands: Sequence[TensorConstant[Any]], made: TensorConstant[Any]
    ) -> None:
        """Note that the data of constants was added or multiplied from left to right."""


class _Watched(threading.local):
    watcher: Watcher | None = None


_here: Final = _Watched()


@contextmanager
def watching(watcher: Watcher | None) -> Iterator[None]:
    """Notify a watcher of all reads of this thread in a block; of none, if it is None."""
    outer = _here.watcher
    _here.watcher = watcher
    try:
        yield
    finally:
        _here.watcher = outer


def read_all(constants: Iterable[Constant[Any]]) -> None:
    """Notify the watcher of this thread that all of these are read."""
    watcher = _here.watcher
    if watcher is not None:
        watcher.must_be_same(constants, "it is part of a graph that was compiled")


def are_reads_told() -> bool:
    """Whether watchers are notified of reads."""
    return isinstance(vars(TensorConstant).get("data"), property)


def forget_findings(constant: TensorConstant[Any]) -> None:
    """Remove PyTensor's findings about the data of a constant, so that it reads the data again."""
    for name in _REMEMBERED:
        vars(constant).pop(name, None)
    for name in _REMEMBERED_IN_TAGS:
        vars(constant.tag).pop(name, None)


def remembered_findings(constant: TensorConstant[Any]) -> list[str | None]:
    """Return the questions whose answers a constant has; None for a finding without a question."""
    found = [_REMEMBERED[name] for name in vars(constant).keys() & _REMEMBERED.keys()]
    in_tag = vars(constant.tag).keys() & _REMEMBERED_IN_TAGS.keys()
    return [*found, *(_REMEMBERED_IN_TAGS[name] for name in in_tag)]


def _read(self: TensorConstant[Any]) -> Any:
    try:
        data = self.__dict__["data"]
    except KeyError:
        raise AttributeError("the constant has no data yet") from None
    watcher = _here.watcher
    if watcher is not None:
        watcher.read(self, sys._getframe(1).f_code)
    return data


def _unwatched(constant: TensorConstant[Any]) -> Any:
    return vars(constant)["data"]


def _write(self: TensorConstant[Any], data: object) -> None:
    self.__dict__["data"] = data


def _delete(self: TensorConstant[Any]) -> None:
    del self.__dict__["data"]


class _WatchedData:
    """A property through which the data of tensor constants is read; the data is unchanged."""

    def __init__(self) -> None:
        self._owner: Any = TensorConstant
        self._value = property(_read, _write, _delete, "The data of the constant.")

    def prepare(self) -> None:
        """Check that the class does not define the name."""
        if vars(TensorConstant).get("data", self._value) is not self._value:
            raise AttributeError("TensorConstant has an attribute data of its own")

    def apply(self) -> None:
        """Install the property."""
        self._owner.data = self._value

    def undo(self) -> None:
        """Remove the property."""
        if self.holds():
            del self._owner.data

    def holds(self) -> bool:
        """Whether the property is installed."""
        return vars(TensorConstant).get("data") is self._value


_stock_fold: Final = basic.unconditional_constant_folding.fn
_stock_upcast: Final = elemwise.local_upcast_elemwise_constant_inputs.fn
_stock_branches: Final = elemwise.constant_fold_branches_of_add_mul.fn


def codes_of(function: Any) -> Iterator[CodeType]:
    """Yield the code of a function, and of all functions and comprehensions in it."""
    pending: list[CodeType] = [function.__code__]
    while pending:
        code = pending.pop()
        yield code
        pending += [one for one in code.co_consts if isinstance(one, CodeType)]


_unique_value: Any = TensorConstant.unique_value

# Functions that read data only to report to their watcher, or to describe a constant for people.
HARMLESS_READERS: Final[frozenset[CodeType]] = frozenset(
    code
    for function in (_stock_fold, _stock_upcast, Constant.__repr__, Constant.__str__)
    for code in codes_of(function)
)


def questions() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return functions of constants that have short answers, by names for people.

    Each comes with its further arguments.
    """
    asked: dict[str, tuple[Any, dict[str, Any]]] = {
        "for its only value": (_unique_value.fget, {}),
        "whether it is positive": (_is_provably_positive, {"strict": True}),
        "whether it is not negative": (_is_provably_positive, {"strict": False}),
    }
    for key, function in CONSTANT_INFER_REGISTRY.items():
        if hasattr(function, "__code__"):
            asked[f"whether it is {key}"] = function, {}
    return asked


def fold(op: Op, operands: Sequence[Constant[Any]], types: Sequence[Type[Any]]) -> Any:
    """Return the constants that PyTensor folds a node into; None if the op computes none here."""
    node: Apply[Any] = Apply(op, list(operands), [type_.make_variable() for type_ in types])
    return _stock_fold(None, node) or None


def convert(constant: TensorConstant[Any], dtype: str) -> TensorConstant[Any]:
    """Return PyTensor's conversion of a constant in an elementwise node."""
    made: TensorConstant[Any] = tensor_constant(_unwatched(constant).astype(dtype))
    return made


def combine(sign: str, operands: Sequence[TensorConstant[Any]]) -> TensorConstant[Any]:
    """Return PyTensor's constant for the operands of a sum or product."""
    python_op = operator.mul if sign == "*" else operator.add
    made: TensorConstant[Any] = tensor_constant(reduce(python_op, map(_unwatched, operands)))
    return made


def _fold(fgraph: Any, node: Any) -> Any:
    watcher = _here.watcher
    made = _stock_fold(fgraph, node)
    if made and watcher is not None and any(map(watcher.is_watched, node.inputs)):
        watcher.folded(node.op, node.inputs, [out.type for out in node.outputs], made)
    return made


def _upcast(fgraph: Any, node: Any) -> Any:
    watcher = _here.watcher
    replaced = _stock_upcast(fgraph, node)
    if replaced and watcher is not None:
        for old, new in zip(node.inputs, replaced[0].owner.inputs, strict=True):
            if new is not old and watcher.is_watched(old):
                watcher.converted(old, new)
    return replaced


def _fold_branches(fgraph: Any, node: Any) -> Any:
    watcher = _here.watcher
    constants = [one for one in node.inputs if isinstance(one, TensorConstant)]
    if watcher is None or not any(map(watcher.is_watched, constants)):
        return _stock_branches(fgraph, node)
    sign = "*" if node.op == elemwise.mul else "+"
    left = list(constants)
    while (group := _larger_than_others(left)) is not None:
        made = combine(sign, group)
        watcher.combined(sign, group, made)
        left = [made, *(one for one in left if one not in group)]
    if len(left) == len(constants):
        return None
    others = [one for one in node.inputs if not isinstance(one, TensorConstant)]
    out = node.op(*left, *others)
    elemwise.copy_stack_trace(node.outputs[0], out)
    return [out]


def _larger_than_others(
    constants: Sequence[TensorConstant[Any]],
) -> list[TensorConstant[Any]] | None:
    """Return the first of several constants, to which the others are broadcast, and the others."""
    if len(constants) > 1:
        for at, first in enumerate(constants):
            others = [
                one
                for place, one in enumerate(constants)
                if place != at and not elemwise.broadcasted_by(first, one)
            ]
            if others:
                return [first, *others]
    return None


def watched_data() -> Patch:
    """Return the patch that reports reads."""
    return _WatchedData()


def watched_folding() -> Patch:
    """Return the patch that reports folded nodes."""
    return DropIn(basic.unconditional_constant_folding, "fn", _fold)


def watched_conversions() -> Patch:
    """Return the patch that reports constants in other dtypes."""
    return DropIn(elemwise.local_upcast_elemwise_constant_inputs, "fn", _upcast)


def watched_branches() -> Patch:
    """Return the patch that reports sums and products of constants."""
    return DropIn(elemwise.constant_fold_branches_of_add_mul, "fn", _fold_branches)
