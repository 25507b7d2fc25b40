"""Switching features on and off, permanently or for a block.

The switches apply to the process. `enable` and `disable` set them; ``with enabled(...)`` blocks
nest, also across threads: the latest block that is still open decides, and within a block `enable`
and `disable` are effective until its end.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytensor_fuse._accelerators import record_of
from pytensor_fuse._activation import units, withdrawal
from pytensor_fuse._activation.changes import CHANGES
from pytensor_fuse._activation.units import PARTS, UNITS
from pytensor_fuse._forks import hold_in_forks
from pytensor_fuse._startup import waiting
from pytensor_fuse._startup.features import (
    FEATURES,
    checked_math,
    native_math_now,
    note_native_math,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    # A context manager that is a decorator, too, for which typing has no public name.
    from contextlib import _GeneratorContextManager
    from typing import TypedDict, Unpack

    from pytensor_fuse._activation.status import FeatureStatus, Status

    class Selection(TypedDict, total=False):
        """The features by name, as arguments of the switches."""

        exact_constants: bool
        merging: bool
        fusion: bool
        joins: bool
        linalg: bool
        cache: bool
        other_data: bool
        native: bool
        single_runs: bool
        nutpie: bool
        accelerators: bool | Collection[str]


class _Setting:
    """The requested units, and the kind of mathematical functions."""

    def __init__(self, wanted: frozenset[str], native_math: str) -> None:
        self.wanted = wanted
        self.native_math = native_math


# Guards the settings, and the units.
_lock = threading.RLock()
# The setting outside any `with enabled(...)`, then those of the open blocks. The last one decides.
_settings = [_Setting(frozenset(), native_math_now())]

# Another thread must not be halfway through a switch when the process forks.
hold_in_forks(_lock)


def enable(*, native_math: str | None = None, **features: Unpack[Selection]) -> None:
    """Switch on the features of this package, in every mode to which they apply.

    This also affects existing `Mode` objects, models and rewriters. Calling it again
    changes nothing.

    Parameters
    ----------
    native_math : str, optional
        The mathematical functions that machine code calls from now on: ``"vector"`` for
        this package's vector functions, or ``"libm"`` for the functions that Numba calls, with the
        same bits. If omitted, the setting does not change.
    features : bool or collection of str, optional
        Whether each feature is on afterwards, by its name: ``fusion``, ``merging``, ``joins``,
        ``linalg``, ``cache``, ``other_data``, ``native``, ``single_runs``, ``nutpie``,
        ``exact_constants`` and ``accelerators``. Features without an argument are on:
        ``enable(joins=False)`` leaves joins to PyTensor. ``accelerators`` is True or False, or the
        names of the accelerators that are on afterwards; ``status()`` lists them.

    Raises
    ------
    RegistrationError
        If fusion is requested, and PyTensor's fusion pass is not its own, because another package
        has replaced or removed it. Nothing is changed.
    TypeError
        If there is no feature of a given name, or its argument is not True or False; accelerators
        may be names.
    ValueError
        If an accelerator's name is unknown, or `native_math` is neither of the two words.

    Warns
    -----
    RuntimeWarning
        Once for each feature that stays off, because it does not know this PyTensor's code.
    """
    wanted = _given(features)
    word = None if native_math is None else checked_math(native_math)
    with _lock:
        units.prepare(wanted)
        _settings[-1].wanted = wanted
        if word is not None:
            _settings[-1].native_math = word
        _switch()


def disable(**features: Unpack[Selection]) -> None:
    """Restore PyTensor's own passes, exactly as they were.

    This also affects existing `Mode` objects, models and rewriters. Calling it again
    changes nothing.

    Parameters
    ----------
    features : bool or collection of str, optional
        Whether to switch off each feature, by its name as for `enable`. Features without an
        argument are switched off, those whose argument is False do not change. ``accelerators`` is
        True or False, or the names of the accelerators to switch off.

    Raises
    ------
    TypeError
        If there is no feature of a given name, or its argument is not True or False; accelerators
        may be names.
    ValueError
        If an accelerator's name is unknown.
    """
    gone = _given(features)
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
    if feature not in FEATURES and feature not in UNITS:
        raise ValueError(f"no feature is called {feature!r}; there are {', '.join(FEATURES)}")
    names = PARTS[feature].values() if feature in PARTS else (feature,)
    with _lock:
        return any(UNITS[name].holds() for name in names)


def enabled(
    flag: bool = True,
    *,
    native_math: str | None = None,
    **features: Unpack[Selection],
) -> _GeneratorContextManager[None]:
    """Switch features on (or off, if ``flag`` is false) for a block or a function.

    The previous state is restored at the end, also after an exception. The switches apply to the
    whole process: other threads see them.

    Parameters
    ----------
    flag : bool, optional
        Whether to switch features on, like `enable`, or off, like `disable`.
    native_math : str, optional
        As for `enable`, independently of ``flag``.
    features : bool or collection of str, optional
        As for `enable` and `disable`: if ``flag`` is false, they select the features to switch off,
        so ``enabled(False, native=False)`` switches off all but machine code. Use
        ``enabled(native=False)`` to switch off one feature.

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
    given = _given(features)
    return _switched(flag, given, None if native_math is None else checked_math(native_math))


@contextmanager
def _switched(flag: bool, given: frozenset[str], word: str | None) -> Iterator[None]:
    """Switch features on, or off, until the block ends."""
    with _lock:
        if flag:
            units.prepare(given)
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
    from dataclasses import replace

    from pytensor_fuse._activation.status import FeatureStatus

    def status_of(name: str, unit: str, title: str, replaces: tuple[str, ...]) -> FeatureStatus:
        switch = UNITS[unit]
        is_wanted = unit in _settings[-1].wanted
        return FeatureStatus(name, title, is_wanted, switch.holds(), switch.why_off(), replaces)

    replaces = tuple(change.replaces for change in CHANGES if change.feature == feature)
    if feature in UNITS:
        return status_of(feature, feature, FEATURES[feature], replaces)
    parts = {}
    for name, unit in PARTS[feature].items():
        record = record_of(name)
        part = status_of(name, unit, record.title, (record.replaces,))
        parts[name] = replace(part, gain=record.gain)
    is_on = any(part.is_on for part in parts.values())
    reasons = [f"{p.name}: {p.reason}" for p in parts.values() if p.reason is not None]
    reason = None if is_on or not reasons else "; ".join(reasons)
    is_wanted = any(part.is_wanted for part in parts.values())
    return FeatureStatus(feature, FEATURES[feature], is_wanted, is_on, reason, replaces, parts)


def settle(wanted: Iterable[str], native_math: str | None = None) -> None:
    """Switch on exactly these features, with warnings in place of errors, for calls at import.

    A feature of several parts stands for all of them. Without ``native_math``, the kind of
    mathematical functions does not change.
    """
    names = frozenset(
        unit for name in wanted for unit in (PARTS[name].values() if name in PARTS else (name,))
    )
    with _lock:
        units.prepare(names, may_raise=False)
        _settings[-1].wanted = names
        if native_math is not None:
            _settings[-1].native_math = native_math
        _switch()


def wanted_now() -> frozenset[str]:
    """Return the features that the current setting requests."""
    return _settings[-1].wanted


def _given(features: Mapping[str, object]) -> frozenset[str]:
    """Return the names of the units that the arguments of a switch select."""
    given: set[str] = set()
    unknown = features.keys() - FEATURES.keys()
    if unknown:
        raise TypeError(f"no feature is called {min(unknown)!r}; there are {', '.join(FEATURES)}")
    for name, parts in PARTS.items():
        value = features.get(name, True)
        if isinstance(value, bool):
            given.update(parts.values() if value else ())
        elif name in UNITS:
            raise TypeError(f"{name} must be True or False, not {value!r}")
        elif isinstance(value, str) or not isinstance(value, Iterable):
            raise TypeError(
                f"{name} must be True, False or a collection of names, not {value!r}; "
                f"there are {', '.join(parts)}"
            )
        else:
            for part in value:
                if part not in parts:
                    raise ValueError(
                        f"none of the {name} is called {part!r}; there are {', '.join(parts)}"
                    )
                given.add(parts[part])
    return frozenset(given)


def _switch() -> None:
    """Apply the current setting."""
    setting = _settings[-1]
    note_native_math(setting.native_math)
    units.switch(setting.wanted)


def _withdraw(name: str, reason: str) -> None:
    with _lock:
        UNITS[name].reason = reason
        _switch()


withdrawal.on_withdrawal(_withdraw)
waiting.register_switch(waiting.Switch(wanted_now, settle))
settle(waiting.wanted())
