"""Who reads the data of constants, and what constant folding makes of them.

While a thread watches, each read of the data of a tensor constant is told to its watcher with the
code that reads; and the rewriters that compute new constants from constants tell what they did.
Other threads, and constants of other classes, are not concerned.
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

# Where PyTensor remembers what it found out about the data of a constant: in the constant itself,
# and in its tag; with the question that this answers (see `questions`), if that is one.
_REMEMBERED: Final = {"_unique_value": "for its only value"}
_REMEMBERED_IN_TAGS: Final = {
    "unique_value": None,
    "unique_indices": None,
    "jointly_unique_indices": None,
    "is_arange": None,
    "is_permutation": "whether it is permutation",
    "is_selection": "whether it is selection",
    "is_diagonal": "whether it is diagonal",
    "is_tridiagonal": "whether it is tridiagonal",
    "is_positive": "whether it is positive",
    "is_non_negative": "whether it is not negative",
}


class Watcher:
    """Is told of reads, and of new constants; by itself, it does not care."""

    def read(self, constant: TensorConstant[Any], reader: CodeType) -> None:
        """Note that the code of a function reads the data of a constant."""

    def must_be_same(self, constants: Iterable[object], reader: str) -> None:
        """Note that somebody may decide by the data of constants."""

    def is_watched(self, constant: object) -> bool:
        """Return whether what is made of a constant is to be told."""
        return False

    def folded(
        self, op: Op, operands: Sequence[Constant[Any]], types: Sequence[Type[Any]], made: Any
    ) -> None:
        """Note that an op made constants of others; ``types`` are of what it computes."""

    def converted(self, constant: TensorConstant[Any], made: TensorConstant[Any]) -> None:
        """Note that a constant was made of another's data in another dtype."""

    def combined(
        self, sign: str, operands: Sequence[TensorConstant[Any]], made: TensorConstant[Any]
    ) -> None:
        """Note that the data of constants were added or multiplied from left to right."""


class _Watched(threading.local):
    watcher: Watcher | None = None


_here: Final = _Watched()


@contextmanager
def watching(watcher: Watcher | None) -> Iterator[None]:
    """Tell a watcher of all reads of this thread in a block; of none, if it is None."""
    outer = _here.watcher
    _here.watcher = watcher
    try:
        yield
    finally:
        _here.watcher = outer


def read_all(constants: Iterable[Constant[Any]]) -> None:
    """Tell whoever watches this thread that all these are read."""
    watcher = _here.watcher
    if watcher is not None:
        watcher.must_be_same(constants, "it is part of a graph that was compiled")


def are_reads_told() -> bool:
    """Whether those who watch are told of reads."""
    return isinstance(vars(TensorConstant).get("data"), property)


def forget_findings(constant: TensorConstant[Any]) -> None:
    """Let PyTensor look at the data of a constant again, before it tells anything of them."""
    for name in _REMEMBERED:
        vars(constant).pop(name, None)
    for name in _REMEMBERED_IN_TAGS:
        vars(constant.tag).pop(name, None)


def remembered_findings(constant: TensorConstant[Any]) -> list[str | None]:
    """Return the questions whose answers a constant has by now; None for what is no question."""
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
    """The data of tensor constants are read through a property, where they are all the same."""

    def __init__(self) -> None:
        self._owner: Any = TensorConstant
        self._value = property(_read, _write, _delete, "The data of the constant.")

    def prepare(self) -> None:
        """Look whether the class has nothing of that name itself."""
        if vars(TensorConstant).get("data", self._value) is not self._value:
            raise AttributeError("TensorConstant has an attribute data of its own")

    def apply(self) -> None:
        """Put the property there."""
        self._owner.data = self._value

    def undo(self) -> None:
        """Remove it."""
        if self.holds():
            del self._owner.data

    def holds(self) -> bool:
        """Whether it is there."""
        return vars(TensorConstant).get("data") is self._value


_stock_fold: Final = basic.unconditional_constant_folding.fn
_stock_upcast: Final = elemwise.local_upcast_elemwise_constant_inputs.fn
_stock_branches: Final = elemwise.constant_fold_branches_of_add_mul.fn


def codes_of(function: Any) -> Iterator[CodeType]:
    """Yield the code of a function, and of all that is defined in it: comprehensions, too."""
    pending: list[CodeType] = [function.__code__]
    while pending:
        code = pending.pop()
        yield code
        pending += [one for one in code.co_consts if isinstance(one, CodeType)]


_unique_value: Any = TensorConstant.unique_value

# Of functions that read data for nothing else than what they tell their watcher, or to describe a
# constant for people.
HARMLESS_READERS: Final[frozenset[CodeType]] = frozenset(
    code
    for function in (_stock_fold, _stock_upcast, Constant.__repr__, Constant.__str__)
    for code in codes_of(function)
)


def questions() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return functions of constants whose answers are short, by names for people.

    Each comes with what it is called with beside a constant.
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
    """Return what PyTensor folds a node into; None if its op does not compute it here."""
    node: Apply[Any] = Apply(op, list(operands), [type_.make_variable() for type_ in types])
    return _stock_fold(None, node) or None


def convert(constant: TensorConstant[Any], dtype: str) -> TensorConstant[Any]:
    """Return the constant that PyTensor makes of another in an elementwise node."""
    made: TensorConstant[Any] = tensor_constant(_unwatched(constant).astype(dtype))
    return made


def combine(sign: str, operands: Sequence[TensorConstant[Any]]) -> TensorConstant[Any]:
    """Return the constant that PyTensor makes of the operands of a sum or product."""
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
    """Return the first constant, of two or more, to which others are broadcast, and these."""
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
    """Return the patch that tells of reads."""
    return _WatchedData()


def watched_folding() -> Patch:
    """Return the patch that tells of folded nodes."""
    return DropIn(basic.unconditional_constant_folding, "fn", _fold)


def watched_conversions() -> Patch:
    """Return the patch that tells of constants in other dtypes."""
    return DropIn(elemwise.local_upcast_elemwise_constant_inputs, "fn", _upcast)


def watched_branches() -> Patch:
    """Return the patch that tells of sums and products of constants."""
    return DropIn(elemwise.constant_fold_branches_of_add_mul, "fn", _fold_branches)
