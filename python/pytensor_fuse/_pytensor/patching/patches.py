"""Patches: the few forms of reversible changes of PyTensor.

A patch has no effect until it is applied, and leaves nothing behind once it is undone. Both may be
called again without effect. All patches are listed in `pytensor_fuse._activation.changes`.
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
        """Find what is to change, and change nothing.

        Raises
        ------
        Exception
            If it is not there, or not PyTensor's own.
        """

    def apply(self) -> None:
        """Change it, if it is not changed."""

    def undo(self) -> None:
        """Put back what was there, if it is changed."""

    def holds(self) -> bool:
        """Whether it is changed: nobody else has replaced it since."""


class SwitchedClass:
    """Objects that are PyTensor's get another class, and its own back.

    One assignment for each object does it, which is atomic for other threads and for `fork`: those
    who hold the object follow, whenever they got it. The classes must have the same layout.

    Parameters
    ----------
    find
        Returns the objects there are: found anew at each `prepare`, remembered for good, so that
        what has been changed can be changed back.
    classes
        PyTensor's classes, and for each the one to take its place.
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
        """Give them the other class."""
        self._switch(self._ours)

    def undo(self) -> None:
        """Give them the class back that they came with."""
        self._switch(self._stock)

    def holds(self) -> bool:
        """Whether all objects there are now have the other class."""
        try:
            return all(type(found) in self._stock for found in self._find())
        except Exception:  # What cannot be found is not changed.
            return False

    def _switch(self, classes: Mapping[type, type]) -> None:
        for found in self._objects:
            if type(found) in classes:
                found.__class__ = classes[type(found)]


class ReplacedAttributes:
    """An attribute of some classes or modules gets another value, and its own back.

    Parameters
    ----------
    owners
        The classes or modules; each must have the attribute itself, not inherit it.
    name
        The attribute.
    value
        What takes its place, the same for all.
    """

    def __init__(self, owners: Iterable[Any], name: str, value: object) -> None:
        self._owners = tuple(owners)
        self._name = name
        self._value = value
        self._stock: dict[int, object] = {}

    def prepare(self) -> None:
        """Look whether each owner has the attribute itself."""
        for owner in self._owners:
            if self._name not in vars(owner):
                raise AttributeError(f"{owner!r} has no {self._name} of its own")

    def apply(self) -> None:
        """Put the other value there."""
        for number, owner in enumerate(self._owners):
            if number not in self._stock:
                self._stock[number] = vars(owner)[self._name]
                setattr(owner, self._name, self._value)

    def undo(self) -> None:
        """Put back what was there, but where somebody has put something else in the place of ours.

        That is theirs to undo, and may call ours.
        """
        for number, owner in enumerate(self._owners):
            if number in self._stock and vars(owner).get(self._name) is self._value:
                setattr(owner, self._name, self._stock.pop(number))

    def holds(self) -> bool:
        """Whether the other value is there."""
        return all(vars(owner).get(self._name) is self._value for owner in self._owners)


class PatchOnceImported:
    """A patch of a module that the program may import later, or never.

    What the patch stands on is asked once the module is there.

    Parameters
    ----------
    module
        The module.
    ground
        What must be as it is known.
    make
        Makes the patch.
    on_failure
        Is told why the patch could not be applied when the module was imported.
    known
        The versions of the module that are as it is known.

    Attributes
    ----------
    is_applied
        Whether the patch is in effect, or will be: others may hold what it has put into the module,
        which then asks this.
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
        """Look whether the module is as it is known, if it has been imported.

        Raises
        ------
        OtherGroundError
            If it is not.
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
            If the module has been imported since `prepare`, and is not as it is known.
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
        """Undo the patch, or do not wait for the module any more."""
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
        """Return what is not as it is known, in a line."""
        more = f", and {len(found) - 1} more differ" if len(found) > 1 else ""
        known = f"; known are {self._known}" if self._known else ""
        return f"{found[0]}{more}{known}"

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say of an exception which module it is about."""
        try:
            yield
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise OtherGroundError(f"{self._module} cannot be changed: {what}") from error

    def _apply_late(self) -> None:
        self._end_wait = None
        # Importing the module must not fail because of this package.
        try:
            self.prepare()
            self.apply()
        except OtherGroundError as error:
            self._on_failure(str(error))
