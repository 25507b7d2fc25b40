"""Switching features on and off, permanently or for a block.

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

The switches apply to the process. `enable` and `disable` set them; ``with enabled(...)`` blocks
nest, also across threads: the latest block that is still open decides, and within a block `enable`
and `disable` are effective until its end.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from pytensor_fuse._accelerators import NAMES, record_of
from pytensor_fuse._activation import withdrawal
from pytensor_fuse._activation.changes import CHANGES, unit_of
from pytensor_fuse._errors import RegistrationError
from pytensor_fuse._forks import hold_in_forks
from pytensor_fuse._pytensor.compat.checks import OtherGroundError, mismatches, release
from pytensor_fuse._startup import waiting
from pytensor_fuse._startup.features import (
    FEATURES,
    checked_math,
    native_math_now,
    note_native_math,
    note_on,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    # A context manager that is a decorator, too, for which typing has no public name.
    from contextlib import _GeneratorContextManager

    from pytensor_fuse._activation.status import FeatureStatus, Status
    from pytensor_fuse._pytensor.patching.patches import Patch


class _Setting:
    """The requested features and parts of features, and the kind of mathematical functions."""

    def __init__(self, wanted: frozenset[str], native_math: str) -> None:
        self.wanted = wanted
        self.native_math = native_math


class _Feature:
    """The changes of a feature, or of a part of one, and whether they are applied."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_on = False
        # Why it cannot be on, if a reason is known.
        self.reason: str | None = None
        # Whether that is by design, and needs no warning.
        self.is_by_design = False
        self._changes = [change for change in CHANGES if change.unit == name]
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


# Guards the state below.
_lock = threading.RLock()
# The setting outside any `with enabled(...)`, then those of the open blocks. The last one decides.
_settings = [_Setting(frozenset(), native_math_now())]
# By feature, the parts that are switched: most features have one part, the whole feature.
_PARTS: Final = {name: NAMES if name == "accelerators" else ("",) for name in FEATURES}
_features: Final = {
    unit_of(name, part): _Feature(unit_of(name, part))
    for name, parts in _PARTS.items()
    for part in parts
}

# Another thread must not be halfway through a switch when the process forks.
hold_in_forks(_lock)


def enable(
    *,
    fusion: bool = True,
    merging: bool = True,
    joins: bool = True,
    linalg: bool = True,
    cache: bool = True,
    other_data: bool = True,
    native: bool = True,
    single_runs: bool = True,
    nutpie: bool = True,
    exact_constants: bool = True,
    accelerators: bool | Collection[str] = True,
    native_math: str | None = None,
) -> None:
    """Switch on the features of this package, in every mode to which they apply.

    This also affects existing `Mode` objects, models and rewriters. Calling it again
    changes nothing.

    Parameters
    ----------
    fusion, merging, joins, linalg, cache, other_data : bool, optional
        The features that are on afterwards. The others are switched off: ``enable(joins=False)``
        leaves joins to PyTensor.
    native, single_runs, nutpie, exact_constants : bool, optional
        Likewise.
    accelerators : bool or collection of str, optional
        True or False, or the names of the accelerators that are on afterwards; ``status()`` lists
        the names.
    native_math : str, optional
        The mathematical functions that machine code calls from now on: ``"vector"`` for
        this package's vector functions, or ``"libm"`` for the functions that Numba calls, with the
        same bits. If omitted, the setting does not change.

    Raises
    ------
    RegistrationError
        If fusion is requested, and PyTensor's fusion pass is not its own, because another package
        has replaced or removed it. Nothing is changed.
    TypeError
        If a feature's argument is not True or False; accelerators may be names.
    ValueError
        If an accelerator's name is unknown, or `native_math` is neither of the two words.

    Warns
    -----
    RuntimeWarning
        Once for each feature that stays off, because it does not know this PyTensor's code.
    """
    wanted = _given(
        fusion=fusion,
        merging=merging,
        joins=joins,
        linalg=linalg,
        cache=cache,
        other_data=other_data,
        native=native,
        single_runs=single_runs,
        nutpie=nutpie,
        exact_constants=exact_constants,
        accelerators=accelerators,
    )
    word = None if native_math is None else checked_math(native_math)
    with _lock:
        _prepare(wanted)
        _settings[-1].wanted = wanted
        if word is not None:
            _settings[-1].native_math = word
        _switch()


def disable(
    *,
    fusion: bool = True,
    merging: bool = True,
    joins: bool = True,
    linalg: bool = True,
    cache: bool = True,
    other_data: bool = True,
    native: bool = True,
    single_runs: bool = True,
    nutpie: bool = True,
    exact_constants: bool = True,
    accelerators: bool | Collection[str] = True,
) -> None:
    """Restore PyTensor's own passes, exactly as they were.

    This also affects existing `Mode` objects, models and rewriters. Calling it again
    changes nothing.

    Parameters
    ----------
    fusion, merging, joins, linalg, cache, other_data : bool, optional
        The features to switch off. The others do not change.
    native, single_runs, nutpie, exact_constants : bool, optional
        Likewise.
    accelerators : bool or collection of str, optional
        True or False, or the names of the accelerators to switch off.

    Raises
    ------
    TypeError
        If a feature's argument is not True or False; accelerators may be names.
    ValueError
        If an accelerator's name is unknown.
    """
    gone = _given(
        fusion=fusion,
        merging=merging,
        joins=joins,
        linalg=linalg,
        cache=cache,
        other_data=other_data,
        native=native,
        single_runs=single_runs,
        nutpie=nutpie,
        exact_constants=exact_constants,
        accelerators=accelerators,
    )
    with _lock:
        _settings[-1].wanted -= gone
        _switch()


def is_enabled(feature: str = "fusion") -> bool:
    """Whether a feature of this package is on.

    Parameters
    ----------
    feature : str, optional
        ``"fusion"``, ``"merging"``, ``"joins"``, ``"linalg"``, ``"cache"``,
        ``"other_data"``, ``"native"``, ``"single_runs"``, ``"nutpie"``,
        ``"exact_constants"``, ``"accelerators"`` (whether any is on), or one accelerator, such as
        ``"accelerators:instance_checks"``.

    Returns
    -------
    bool
        Also False if another package has replaced the feature's changes since.

    Raises
    ------
    ValueError
        If there is no such feature.
    """
    if feature not in FEATURES and feature not in _features:
        raise ValueError(f"no feature is called {feature!r}; there are {', '.join(FEATURES)}")
    with _lock:
        if feature in _features:
            return _features[feature].holds()
        return any(_features[unit].holds() for unit in _units_of(feature))


def enabled(
    flag: bool = True,
    *,
    fusion: bool = True,
    merging: bool = True,
    joins: bool = True,
    linalg: bool = True,
    cache: bool = True,
    other_data: bool = True,
    native: bool = True,
    single_runs: bool = True,
    nutpie: bool = True,
    exact_constants: bool = True,
    accelerators: bool | Collection[str] = True,
    native_math: str | None = None,
) -> _GeneratorContextManager[None]:
    """Switch features on (or off, if ``flag`` is false) for a block or a function.

    The previous state is restored at the end, also after an exception. The switches apply to the
    whole process: other threads see them.

    Parameters
    ----------
    flag : bool, optional
        Whether to switch features on, like `enable`, or off, like `disable`.
    fusion, merging, joins, linalg, cache, other_data : bool, optional
        As for `enable` and `disable`: if ``flag`` is false, they select the features to switch off,
        so ``enabled(False, native=False)`` switches off all but machine code. Use
        ``enabled(native=False)`` to switch off one feature.
    native, single_runs, nutpie, exact_constants : bool, optional
        Likewise.
    accelerators : bool or collection of str, optional
        Likewise.
    native_math : str, optional
        As for `enable`, independently of ``flag``.

    Returns
    -------
    context manager
        It can be used as a decorator, too.

    Raises
    ------
    TypeError, ValueError
        As for `enable`, immediately.
    RegistrationError
        As for `enable`, when the block is entered.

    Examples
    --------
    >>> import pytensor_fuse
    >>> with pytensor_fuse.enabled(False):
    ...     pytensor_fuse.is_enabled()
    False
    >>> with pytensor_fuse.enabled(joins=False):
    ...     pytensor_fuse.is_enabled(), pytensor_fuse.is_enabled("joins")
    (True, False)
    """
    if not isinstance(flag, bool):
        raise TypeError(f"flag must be True or False, not {flag!r}")
    given = _given(
        fusion=fusion,
        merging=merging,
        joins=joins,
        linalg=linalg,
        cache=cache,
        other_data=other_data,
        native=native,
        single_runs=single_runs,
        nutpie=nutpie,
        exact_constants=exact_constants,
        accelerators=accelerators,
    )
    return _switched(flag, given, None if native_math is None else checked_math(native_math))


@contextmanager
def _switched(flag: bool, given: frozenset[str], word: str | None) -> Iterator[None]:
    """Switch features on, or off, until the block ends."""
    with _lock:
        if flag:
            _prepare(given)
        before = _settings[-1]
        setting = _Setting(given if flag else before.wanted - given, word or before.native_math)
        _settings.append(setting)
    try:
        with _lock:
            _switch()
        yield
    finally:
        with _lock:
            # Not always the last one: blocks in different threads may overlap.
            _settings.remove(setting)
            _switch()


def status() -> Status:
    """Return the features with their states, and the reasons why some are off.

    Returns
    -------
    Status
        A mapping from the name of each feature to its `FeatureStatus`; prints as a table.

    Examples
    --------
    >>> import pytensor_fuse
    >>> pytensor_fuse.status()["fusion"].is_on
    True
    """
    # Imported on demand, to keep the import of PyTensor fast.
    from pytensor_fuse._activation.status import Status

    with _lock:
        return Status(_status_of(name) for name in FEATURES)


def _status_of(feature: str) -> FeatureStatus:
    from pytensor_fuse._activation.status import FeatureStatus

    wanted = _settings[-1].wanted
    units = _units_of(feature)
    replaces = tuple(change.replaces for change in CHANGES if change.feature == feature)
    if feature in _features:
        switch = _features[feature]
        is_on = switch.holds()
        return FeatureStatus(
            feature, FEATURES[feature], feature in wanted, is_on, switch.why_off(), replaces
        )
    parts = {}
    for part in _PARTS[feature]:
        unit = unit_of(feature, part)
        accelerator = record_of(part)
        parts[part] = FeatureStatus(
            part,
            accelerator.title,
            unit in wanted,
            _features[unit].holds(),
            _features[unit].why_off(),
            (accelerator.replaces,),
            gain=accelerator.gain,
        )
    is_on = any(part.is_on for part in parts.values())
    reasons = [f"{p.name}: {p.reason}" for p in parts.values() if p.reason is not None]
    reason = None if is_on or not reasons else "; ".join(reasons)
    is_wanted = any(unit in wanted for unit in units)
    return FeatureStatus(feature, FEATURES[feature], is_wanted, is_on, reason, replaces, parts)


def _units_of(feature: str) -> list[str]:
    """Return the units of a feature that are switched: its parts, or the feature itself."""
    return [unit_of(feature, part) for part in _PARTS[feature]]


def settle(wanted: Iterable[str], native_math: str | None = None) -> None:
    """Switch on exactly these features, with warnings in place of errors, for calls at import.

    A feature of several parts stands for all of them. Without ``native_math``, the kind of
    mathematical functions does not change.
    """
    asked = frozenset(wanted)
    names = asked & frozenset(_features)
    names |= {unit for feature in asked & frozenset(_PARTS) for unit in _units_of(feature)}
    with _lock:
        _prepare(names, may_raise=False)
        _settings[-1].wanted = names
        if native_math is not None:
            _settings[-1].native_math = native_math
        _switch()


def wanted_now() -> frozenset[str]:
    """Return the features that the current setting requests."""
    return _settings[-1].wanted


def _given(**features: bool | Collection[str]) -> frozenset[str]:
    given: set[str] = set()
    for name, value in features.items():
        if isinstance(value, bool):
            if value:
                given.update(_units_of(name))
        elif _PARTS[name] == ("",):
            raise TypeError(f"{name} must be True or False, not {value!r}")
        else:
            given.update(unit_of(name, part) for part in _named(name, value))
    return frozenset(given)


def _named(feature: str, value: Collection[str]) -> list[str]:
    """Return the named parts of a feature, or raise an error that lists the known names."""
    parts = _PARTS[feature]
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(
            f"{feature} must be True, False or a collection of names, not {value!r}; "
            f"there are {', '.join(parts)}"
        )
    names = list(value)
    for name in names:
        if name not in parts:
            raise ValueError(
                f"none of the {feature} is called {name!r}; there are {', '.join(parts)}"
            )
    return names


def _prepare(wanted: frozenset[str], *, may_raise: bool = True) -> None:
    """Prepare features, and warn about those that do not fit, once for each reason."""
    why: dict[str, list[str]] = {}
    replaced: RegistrationError | None = None
    for name, feature in _features.items():
        if name not in wanted:
            continue
        try:
            feature.prepare()
        except RegistrationError as error:
            replaced = error
            continue
        if feature.reason is not None and not feature.is_by_design:
            why.setdefault(feature.reason, []).append(name)
    if replaced is not None:
        if may_raise:
            raise replaced
        withdrawal.say_replaced(str(replaced))
    for reason, names in why.items():
        withdrawal.say(names, reason)


def _switch() -> None:
    """Apply the current setting."""
    wanted = _settings[-1].wanted
    note_native_math(_settings[-1].native_math)
    for name, feature in _features.items():
        could = feature.reason is None
        feature.switch(name in wanted)
        if could and feature.reason is not None:
            withdrawal.say([name], feature.reason)
    note_on(tuple(name for name, feature in _features.items() if feature.is_on))


def _withdraw(name: str, reason: str) -> None:
    with _lock:
        _features[name].reason = reason
        _switch()


withdrawal.on_withdrawal(_withdraw)
waiting.register_switch(waiting.Switch(wanted_now, settle))
settle(waiting.wanted())
