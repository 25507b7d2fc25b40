"""Numbering of ops and constants by equality, for one table of merging."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from pytensor.graph.basic import AtomicVariable, Constant, NominalVariable
from pytensor.tensor.type import TensorType

from pytensor_fuse._identity.contents import content, data_content
from pytensor_fuse._pytensor.graphs.comparison import compared

if TYPE_CHECKING:
    from pytensor.graph.basic import Variable
    from pytensor.graph.op import Op
    from pytensor.graph.type import Type

    Key = tuple[Any, ...]


class Numbers:
    """Numbers of ops and constants; equal ones share a number.

    Ops are kept alive, and so are data that are compared by identity, so that no other object can
    get the id of one of them.
    """

    def __init__(self) -> None:
        self._classes: dict[type[Op] | None, int] = {}
        self._ops: dict[Op, int] = {}
        self._unhashable: list[tuple[Op, int]] = []
        self._n_ops = 0
        self._constants: dict[Key, int] = {}
        # Data that keys of constants identify by id.
        self._held: list[object] = []

    @property
    def n_constants(self) -> int:
        """The number of different constants so far."""
        return len(self._constants)

    def of_class(self, class_: type[Op]) -> int:
        """Return the number of a class of ops; all classes with an unknown comparison share one.

        An op of a class with a known comparison is equal only to ops of the same class.
        """
        is_known = class_.__eq__ is object.__eq__ or compared(class_) is not None
        return self._classes.setdefault(class_ if is_known else None, len(self._classes))

    def of_op(self, op: Op) -> int:
        """Return the number of ``op`` and of its equals."""
        try:
            number = self._ops.setdefault(op, self._n_ops)
        except TypeError:
            found = (number for other, number in self._unhashable if op == other)
            number = next(found, self._n_ops)
            if number == self._n_ops:
                self._unhashable.append((op, number))
        self._n_ops = max(self._n_ops, number + 1)
        return number

    def of_constant(self, variable: Variable[Any, Any]) -> int | None:
        """Return the number of a constant and of its equals; None if it is not a constant."""
        key = self._key(variable)
        return None if key is None else self._constants.setdefault(key, len(self._constants))

    def find_constant(self, type_: Type[Any], data: object) -> int | None:
        """Return the number of plain constants with this type and data; None if there is none."""
        return self._constants.get(_plain_key(type_, data, data_content(data)))

    def _key(self, variable: Variable[Any, Any]) -> Key | None:
        is_atomic, is_constant = _is_atomic(type(variable))
        if not is_atomic:
            return None
        atom = cast("Constant[Any]", variable)
        class_ = type(atom)
        if not is_constant:
            return class_, atom.merge_signature()
        encoded = content(atom)
        data = None
        if encoded is None:
            data = atom.data
            self._held.append(data)
        key = _plain_key(atom.type, data, encoded)
        if class_ is not atom.type.constant_type:
            key = (*key, class_)
        if class_.merge_signature is not AtomicVariable.merge_signature:
            # A class can only refine the comparison.
            key = (*key, atom.merge_signature())
        return key


@lru_cache(maxsize=256)
def _is_atomic(class_: type[Variable[Any, Any]]) -> tuple[bool, bool]:
    """Return whether variables of a class can be equal to others, and whether they are constants.

    Nominal variables are interned by PyTensor, so none is equal to another.
    """
    is_atomic = issubclass(class_, AtomicVariable) and not issubclass(class_, NominalVariable)
    return is_atomic, issubclass(class_, Constant)


def _plain_key(type_: Type[Any], data: object, encoded: bytes | None) -> Key:
    """Return the key of a plain constant; ``encoded`` is the content of its data.

    Without content, the key is valid only as long as the data are kept alive.
    """
    # The attributes that `TensorType` compares; hashing them takes less time than hashing the type.
    type_key = (type_.dtype, type_.shape) if type(type_) is TensorType else type_
    return type_key, id(data) if encoded is None else encoded
