"""Units: the features, and parts of features, that are switched by themselves.

The registered rewriters stay the same objects; their classes change. PyTensor's rewrite databases
hold those objects, and so does every stored query result (a `SequentialGraphRewriter`, however
nested). All of them follow the switch, whether they were made before or after it. Undoing
it leaves nothing behind: names, tags, their order and the position of PyTensor's own passes are
never changed. Between the assignments, another thread may compile with some passes switched; its
result is correct, since PyTensor's passes and ours work in any combination. The passes
over joins are added and removed: a query in another thread at that moment may raise a KeyError.

The alternatives fall short. `register(..., overwrite_existing=True)` does not affect stored
queries, moves the entry to the end of each of its tags (whose order determines the order of
rewriters in a database without positions), and takes several steps, between which another thread's
query finds no fusion at all. Patching `FusionOptimizer.apply` would also change user-made rewriters
and subclasses.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pytensor_fuse._accelerators import NAMES
from pytensor_fuse._activation import withdrawal
from pytensor_fuse._activation.changes import CHANGES
from pytensor_fuse._errors import RegistrationError
from pytensor_fuse._pytensor.compat.checks import OtherGroundError, mismatches, release
from pytensor_fuse._startup.features import FEATURES, note_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._activation.changes import Change
    from pytensor_fuse._pytensor.patching.patches import Patch


class Unit:
    """The changes of a feature, or of a part of one: all of them are applied, or none.

    Attributes
    ----------
    is_on
        Whether the changes are applied.
    reason
        Why it cannot be on, if a reason is known.
    is_by_design
        Whether the reason needs no warning.
    """

    def __init__(self, changes: Sequence[Change]) -> None:
        self.is_on = False
        self.reason: str | None = None
        self.is_by_design = False
        self._changes = changes
        self._patches: list[Patch] | None = None

    def prepare(self) -> None:
        """Check the required facts, and prepare the patches; nothing is changed.

        Raises
        ------
        RegistrationError
            If another package has replaced the code that the feature would replace.
        """
        self.reason = None
        since = max(change.since for change in self._changes)
        if since > release():
            self.reason = f"it is for PyTensor {since[0]}.{since[1]} and later"
            self.is_by_design = True
            return
        if self._patches is None:
            facts = dict.fromkeys(fact for change in self._changes for fact in change.ground)
            found = mismatches(facts)
            if found:
                self.reason = "; ".join(found)
                return
        try:
            if self._patches is None:
                self._patches = [change.make() for change in self._changes]
            for patch in self._patches:
                patch.prepare()
        except RegistrationError as error:
            self.reason = str(error)
            raise
        except Exception as error:  # A future PyTensor may fail in any way.
            self._fail(error)

    def switch(self, on: bool) -> None:
        """Apply all changes, or undo all of them, also if one fails."""
        patches = self._patches or ()
        on = on and self.reason is None and bool(patches)
        if not on:
            for patch in reversed(patches):
                patch.undo()
            self.is_on = False
            return
        try:
            for patch in patches:
                patch.apply()
            self.is_on = True
        except Exception as error:
            self._fail(error)
            self.is_on = False
            for patch in reversed(patches):
                with suppress(Exception):
                    patch.undo()

    def holds(self) -> bool:
        """Whether the changes are applied, and no other code has replaced them since."""
        return self.is_on and all(patch.holds() for patch in self._patches or ())

    def why_off(self) -> str | None:
        """Return why it is off although it was switched on; None if there is no such reason."""
        if self.reason is not None or not self.is_on or self.holds():
            return self.reason
        made = zip(self._changes, self._patches or (), strict=True)
        gone = [change.replaces for change, patch in made if not patch.holds()]
        return (
            f"its replacement of {'; '.join(gone)} is not there any more: another "
            "package has replaced or wrapped it, or the module has been loaded again"
        )

    def _fail(self, error: Exception) -> None:
        is_told = isinstance(error, OtherGroundError)
        self.reason = str(error) if is_told else f"{type(error).__name__}: {error}"


def _units_of(feature: str) -> dict[str, str]:
    if feature != "accelerators":
        return {feature: feature}
    return {name: f"{feature}:{name}" for name in NAMES}


# By feature, the names of its units by the names of its parts: most features are one unit.
PARTS: Final = {feature: _units_of(feature) for feature in FEATURES}

_changes_of: defaultdict[str, list[Change]] = defaultdict(list)
for _change in CHANGES:
    _changes_of[_change.unit].append(_change)
UNITS: Final = {
    unit: Unit(_changes_of[unit]) for parts in PARTS.values() for unit in parts.values()
}


def prepare(wanted: frozenset[str], *, may_raise: bool = True) -> None:
    """Prepare units, and warn about those that do not fit, once for each reason."""
    why: dict[str, list[str]] = {}
    replaced: RegistrationError | None = None
    for name, unit in UNITS.items():
        if name not in wanted:
            continue
        try:
            unit.prepare()
        except RegistrationError as error:
            replaced = error
            continue
        if unit.reason is not None and not unit.is_by_design:
            why.setdefault(unit.reason, []).append(name)
    if replaced is not None:
        if may_raise:
            raise replaced
        withdrawal.say_replaced(str(replaced))
    for reason, names in why.items():
        withdrawal.say(names, reason)


def switch(wanted: frozenset[str]) -> None:
    """Switch on the units of these names, and switch off the others."""
    for name, unit in UNITS.items():
        could = unit.reason is None
        unit.switch(name in wanted)
        if could and unit.reason is not None:
            withdrawal.say([name], unit.reason)
    note_on(tuple(name for name, unit in UNITS.items() if unit.is_on))
