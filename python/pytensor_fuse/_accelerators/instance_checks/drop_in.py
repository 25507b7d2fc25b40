"""Instance checks: ``isinstance`` with PyTensor's classes looks at the object's class only."""

from __future__ import annotations

from abc import ABCMeta
from typing import TYPE_CHECKING, Any

from pytensor.graph.utils import MetaObject, MetaType

from pytensor_fuse._accelerators.instance_checks.virtual_bases import has_virtual_subclasses
from pytensor_fuse._pytensor.patching.drop_ins import DropIn, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patching.patches import Patch


class _PlainChecks:
    """`type`'s instance checks on `MetaType`, as long as there are no virtual bases."""

    def __init__(self) -> None:
        self._has_virtual_bases = False
        self._is_wanted = False

    def prepare(self) -> None:
        if "__instancecheck__" in vars(MetaType) and not self._is_there():
            raise AttributeError("MetaType has an __instancecheck__ of its own")

    def apply(self) -> None:
        self._is_wanted = True
        if self._is_there():
            return
        if not self._has_virtual_bases:
            # Classes may have been registered before the first switch. Later ones are noticed,
            # also while this is off.
            self._has_virtual_bases = has_virtual_subclasses(MetaObject)
        if not self._has_virtual_bases:
            MetaType.__instancecheck__ = type.__instancecheck__  # type: ignore[method-assign]

    def undo(self) -> None:
        self._is_wanted = False
        if self._is_there():
            del MetaType.__instancecheck__

    def holds(self) -> bool:
        return self._is_wanted and (self._is_there() or self._has_virtual_bases)

    def give_up(self) -> None:
        """Leave the checks to `abc.ABCMeta`, since there is a virtual base now."""
        self._has_virtual_bases = True
        if self._is_there():
            del MetaType.__instancecheck__

    @staticmethod
    def _is_there() -> bool:
        return vars(MetaType).get("__instancecheck__") is type.__instancecheck__


_checks = _PlainChecks()


def _register(cls: Any, subclass: Any) -> Any:
    _checks.give_up()
    return ABCMeta.register(cls, subclass)


_make: Any = MetaType.__new__


def _new(cls: Any, name: str, bases: tuple[type, ...], dct: dict[str, Any]) -> Any:
    if "__subclasshook__" in dct:
        _checks.give_up()
    return _make(cls, name, bases, dct)


def patch() -> Patch:
    """Return the patch."""
    return Together(
        _checks, DropIn(MetaType, "register", _register), DropIn(MetaType, "__new__", _new)
    )
