"""Memos by op: one entry for all ops that a question cannot tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from weakref import ref

from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse._pytensor.compat.packages import is_pytensors

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_T = TypeVar("_T")

_MANY_OPS: Final = 1024


class Kinds:
    """The ops that no question about their class, or their equality with given ops, tells apart.

    Parameters
    ----------
    instances
        The ops that others are compared with. They equal ops of their own class alone, and Elemwise
        one of a scalar op of the same class.
    patterns
        The classes of ops of which more is looked at, as `issubclass` takes them.
    told_apart
        Further classes of which ops are not alike. Elemwise are, with scalar ops of one class.
    """

    def __init__(
        self, instances: Collection[Any], patterns: Any, told_apart: Iterable[type] = ()
    ) -> None:
        self._patterns = patterns
        self._compares = bool(instances)
        self._apart = {type(op) for op in instances}.union(told_apart)
        self._apart_scalars = {type(op.scalar_op) for op in instances if type(op) is Elemwise}

    def are_all_alike(self, op: Any) -> bool:
        """Whether all ops of the class are; of Elemwise, all whose scalar ops are of a class."""
        class_: Any = type(op)
        if class_ is Elemwise:
            is_apart = type(op.scalar_op) in self._apart_scalars
        else:
            is_apart = class_ in self._apart
        return (
            not is_apart
            and (not self._compares or is_pytensors(class_.__eq__))
            and not issubclass(class_, self._patterns)
        )


class Memo(Generic[_T]):
    """A memo by op, with one entry for all ops that are alike.

    Parameters
    ----------
    kinds
        Which are alike.
    """

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._of_classes: dict[type, _T] = {}
        # For Elemwise, by the class of the scalar op.
        self._of_scalars: dict[type, _T] = {}
        # By the address of the op, which another may get once that is gone.
        self._of_ops: dict[int, tuple[_T, Any]] = {}

    def get(self, op: Any) -> _T | None:
        """Return the entry of an op; None if there is none."""
        class_ = type(op)
        if class_ is Elemwise:
            found = self._of_scalars.get(type(op.scalar_op))
        else:
            found = self._of_classes.get(class_)
        if found is None:
            known = self._of_ops.get(id(op))
            if known is not None and known[1]() is op:
                return known[0]
        return found

    def remember(self, op: Any, what: _T) -> None:
        """Set the entry of an op and of all ops that are alike."""
        if not self._kinds.are_all_alike(op):
            if len(self._of_ops) >= _MANY_OPS:
                self._of_ops.clear()
            self._of_ops[id(op)] = what, ref(op)
        elif type(op) is Elemwise:
            self._of_scalars[type(op.scalar_op)] = what
        else:
            self._of_classes[type(op)] = what
