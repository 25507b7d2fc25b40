"""Patches: the few forms of reversible changes of PyTensor.

A patch has no effect until it is applied, and leaves nothing behind when it is undone. Both calls
are idempotent. All patches are listed in `pytensor_fuse._activation.changes`.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from pytensor_fuse._imports import after_import
from pytensor_fuse._pytensor.compat.checks import OtherGroundError, mismatches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pytensor_fuse._pytensor.compat.checks import Fact


class Patch(Protocol):
    """A change that can be applied and undone."""

    def prepare(self) -> None:
        """Find the objects to change, and change nothing.

        Raises
        ------
        Exception
            If they are missing, or not PyTensor's own.
        """

    def apply(self) -> None:
        """Apply the change, unless it is applied."""

    def undo(self) -> None:
        """Restore the original, if the change is applied."""

    def holds(self) -> bool:
        """Whether the change is in effect: nothing else has replaced it since."""


class SwitchedClass:
    """Changes the class of PyTensor's objects, reversibly.

    Each object takes one assignment, which is atomic for other threads and for `fork`, and affects
    all who hold the object, whenever they got it. The classes must have the same layout.

    Parameters
    ----------
    find
        Returns the existing objects. It is called at each `prepare`, and the objects are remembered
        forever, so that each change can be reverted.
    classes
        A replacement for each of PyTensor's classes.
    """

    def __init__(self, find: Callable[[], Iterable[object]], classes: Mapping[type, type]) -> None:
        self._find = find
        self._ours = dict(classes)
        self._stock = {ours: stock for stock, ours in classes.items()}
        self._objects: list[Any] = []

    def prepare(self) -> None:
        """Find the objects."""
        known = {id(found) for found in self._objects}
        self._objects.extend(found for found in self._find() if id(found) not in known)

    def apply(self) -> None:
        """Assign the other class."""
        self._switch(self._ours)

    def undo(self) -> None:
        """Restore the original class of each object."""
        self._switch(self._stock)

    def holds(self) -> bool:
        """Whether all existing objects have the other class."""
        try:
            return all(type(found) in self._stock for found in self._find())
        except Exception:  # An object that cannot be found is not changed.
            return False

    def _switch(self, classes: Mapping[type, type]) -> None:
        for found in self._objects:
            if type(found) in classes:
                found.__class__ = classes[type(found)]


class ReplacedAttributes:
    """Replaces an attribute of some classes or modules, reversibly.

    Parameters
    ----------
    owners
        The classes or modules; each must define the attribute, not inherit it.
    name
        The attribute.
    value
        The replacement, the same for all owners.
    """

    def __init__(self, owners: Iterable[Any], name: str, value: object) -> None:
        self._owners = tuple(owners)
        self._name = name
        self._value = value
        self._stock: dict[int, object] = {}

    def prepare(self) -> None:
        """Check that each owner defines the attribute."""
        for owner in self._owners:
            if self._name not in vars(owner):
                raise AttributeError(f"{owner!r} has no {self._name} of its own")

    def apply(self) -> None:
        """Set the other value."""
        for number, owner in enumerate(self._owners):
            if number not in self._stock:
                self._stock[number] = vars(owner)[self._name]
                setattr(owner, self._name, self._value)

    def undo(self) -> None:
        """Restore the original, except where something else has replaced ours.

        Such a replacement may call ours, and its author has to undo it.
        """
        for number, owner in enumerate(self._owners):
            if number in self._stock and vars(owner).get(self._name) is self._value:
                setattr(owner, self._name, self._stock.pop(number))

    def holds(self) -> bool:
        """Whether the other value is in place."""
        return all(vars(owner).get(self._name) is self._value for owner in self._owners)


class PatchOnceImported:
    """A patch of a module that the program may import later, or never.

    The facts that the patch requires are checked once the module is loaded.

    Parameters
    ----------
    module
        The module.
    ground
        The facts that the patch requires.
    make
        Creates the patch.
    on_failure
        Called with the reason if the patch cannot be applied when the module is imported.
    known
        The known versions of the module.

    Attributes
    ----------
    is_applied
        Whether the patch is in effect, or will be. Callers may have kept functions that it put into
        the module; these functions check this attribute.
    """

    def __init__(
        self,
        module: str,
        ground: Iterable[Fact],
        make: Callable[[], Patch],
        on_failure: Callable[[str], object],
        known: str = "",
    ) -> None:
        self._module = module
        self._ground = tuple(ground)
        self._make = make
        self._on_failure = on_failure
        self._known = known
        self.is_applied = False
        self._patch: Patch | None = None
        self._end_wait: Callable[[], object] | None = None

    def prepare(self) -> None:
        """Check the facts, if the module has been imported.

        Raises
        ------
        OtherGroundError
            If one does not hold.
        """
        if self._module not in sys.modules:
            return
        if self._patch is None:
            found = mismatches(self._ground)
            if found:
                raise OtherGroundError(self._summary(found))
        elif self.is_applied and not self._patch.holds() and not mismatches(self._ground):
            # The module has been loaded again.
            self._patch = None
        with self._told():
            if self._patch is None:
                self._patch = self._make()
            self._patch.prepare()

    def apply(self) -> None:
        """Apply the patch, now or once the module has been imported.

        Raises
        ------
        OtherGroundError
            If the module has been imported since `prepare`, and a fact does not hold.
        """
        if self._patch is None and self._module in sys.modules:
            self.prepare()
        if self._patch is not None:
            with self._told():
                self._patch.apply()
        elif self._end_wait is None:
            self._end_wait = after_import(self._module, self._apply_late)
        self.is_applied = True

    def undo(self) -> None:
        """Undo the patch, or stop waiting for the module."""
        self.is_applied = False
        if self._end_wait is not None:
            self._end_wait()
            self._end_wait = None
        if self._patch is not None:
            self._patch.undo()

    def holds(self) -> bool:
        """Whether the patch is applied, or will be."""
        return self._end_wait is not None if self._patch is None else self._patch.holds()

    def _summary(self, found: list[str]) -> str:
        """Return the facts that do not hold, in one line."""
        more = f", and {len(found) - 1} more differ" if len(found) > 1 else ""
        known = f"; known are {self._known}" if self._known else ""
        return f"{found[0]}{more}{known}"

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Name the module in the message of an exception."""
        try:
            yield
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise OtherGroundError(f"{self._module} cannot be changed: {what}") from error

    def _apply_late(self) -> None:
        self._end_wait = None
        # The import of the module must not fail because of this package.
        try:
            self.prepare()
            self.apply()
        except OtherGroundError as error:
            self._on_failure(str(error))
