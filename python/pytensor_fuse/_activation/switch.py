"""Switching features on and off, permanently or for a block.

The switches apply to the process, since PyTensor's passes and databases do. `enable` and `disable`
set them, within a block until its end: see `pytensor_fuse._activation.settings`.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from pytensor_fuse._accelerators import record_of
from pytensor_fuse._activation import units, withdrawal
from pytensor_fuse._activation.changes import CHANGES
from pytensor_fuse._activation.settings import (
    Layer,
    changed_units,
    layers,
    own_layer,
    requested,
    requested_math,
)
from pytensor_fuse._activation.units import PARTS, UNITS
from pytensor_fuse._forks import hold_in_forks
from pytensor_fuse._startup import waiting
from pytensor_fuse._startup.features import FEATURES, checked_math, note_native_math

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    # A context manager that is a decorator, too, for which typing has no public name.
    from contextlib import _GeneratorContextManager

    from pytensor_fuse._activation.status import FeatureStatus, Status

# Guards the settings, and the units.
_lock = threading.RLock()

# Another thread must not be halfway through a switch when the process forks.
hold_in_forks(_lock)


def enable(*features: str, native_math: str | None = None, **keywords: Any) -> None:
    """Switch on features of this package, in every mode to which they apply.

    This also affects existing `Mode` objects, models and rewriters. Calling it again
    changes nothing.

    Parameters
    ----------
    features : str, optional
        The features to switch on, such as ``"joins"``, or ``"accelerators:clones"`` for one
        accelerator; `status` lists the names. The others do not change. Without a name, all
        features are switched on.
    native_math : str, optional
        The mathematical functions that machine code calls from now on: ``"vector"`` for
        this package's vector functions, or ``"libm"`` for the functions that Numba calls, with the
        same bits. If omitted, the setting does not change.
    keywords : bool or collection of str, optional
        Deprecated: ``enable(joins=False)`` switches on all features but one.

    Raises
    ------
    RegistrationError
        If fusion is requested, and PyTensor's fusion pass is not its own, because another package
        has replaced or removed it. Nothing is changed.
    TypeError
        If the name of a feature is no string.
    ValueError
        If there is no such feature, or `native_math` is neither of the two words.

    Warns
    -----
    RuntimeWarning
        Once for each feature that stays off, because it does not know this PyTensor's code.

    Examples
    --------
    >>> import pytensor_fuse
    >>> pytensor_fuse.enable("joins", "linalg")
    """
    changed = changed_units(True, features, keywords)
    word = None if native_math is None else checked_math(native_math)
    with _lock:
        units.prepare(_switched_on(changed))
        own_layer().update(changed, word)
        _switch()


def disable(*features: str, **keywords: Any) -> None:
    """Restore PyTensor's own passes, exactly as they were.

    This also affects existing `Mode` objects, models and rewriters. Calling it again
    changes nothing.

    Parameters
    ----------
    features : str, optional
        The features to switch off, as for `enable`. The others do not change. Without a name, all
        features are switched off.
    keywords : bool or collection of str, optional
        Deprecated: ``disable(joins=False)`` switches off all features but one.

    Raises
    ------
    TypeError
        If the name of a feature is no string.
    ValueError
        If there is no such feature.

    Examples
    --------
    >>> import pytensor_fuse
    >>> pytensor_fuse.disable("joins")
    >>> pytensor_fuse.status()["joins"].is_on
    False
    >>> pytensor_fuse.enable("joins")
    """
    changed = changed_units(False, features, keywords)
    with _lock:
        own_layer().update(changed, None)
        _switch()


def enabled(
    flag: bool | str = True, *features: str, native_math: str | None = None, **keywords: Any
) -> _GeneratorContextManager[None]:
    """Switch features on (or off, if ``flag`` is False) for a block or a function.

    The previous state is restored at the end, also after an exception. The switches are the
    process's: other threads see them. Blocks nest, also across threads: for each feature, the
    latest open block that names it decides.

    Parameters
    ----------
    flag : bool or str, optional
        Whether to switch features on, like `enable`, or off, like `disable`. If it is
        the name of a feature, features are switched on.
    features : str, optional
        The names of the features; without a name, all features.
    native_math : str, optional
        As for `enable`, independently of ``flag``.
    keywords : bool or collection of str, optional
        Deprecated: ``enabled(joins=False)`` switches on all features but one, and
        ``enabled(False, joins=False)`` switches off all but one.

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
    ...     any(feature.is_on for feature in pytensor_fuse.status().values())
    False
    >>> with pytensor_fuse.enabled(False, "joins"):
    ...     [pytensor_fuse.status()[name].is_on for name in ("fusion", "joins")]
    [True, False]
    """
    named = (flag, *features) if isinstance(flag, str) else features
    is_on = isinstance(flag, str) or flag
    if not isinstance(is_on, bool):
        raise TypeError(f"flag must be True or False, or the name of a feature, not {flag!r}")
    changed = changed_units(is_on, named, keywords)
    word = None if native_math is None else checked_math(native_math)
    return _switched(changed, word)


@contextmanager
def _switched(changed: dict[str, bool], word: str | None) -> Iterator[None]:
    """Change features until the block ends."""
    layer = Layer(dict(changed), word, threading.get_ident())
    with ExitStack() as at_end:
        # A process that is forked in between would have other features than its layers say.
        with _lock:
            units.prepare(_switched_on(changed))
            at_end.callback(_remove, layer)
            layers.append(layer)
            _switch()
        yield


def _remove(layer: Layer) -> None:
    with _lock:
        # By identity: layers of other blocks may be equal.
        layers[:] = [other for other in layers if other is not layer]
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

    wanted = requested()

    def status_of(name: str, unit: str, title: str, replaces: tuple[str, ...]) -> FeatureStatus:
        switch = UNITS[unit]
        is_wanted = unit in wanted
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
        unit
        for name in wanted
        for unit in (PARTS[name].values() if name in PARTS else (name,))
        if unit in UNITS
    )
    with _lock:
        units.prepare(names, may_raise=False)
        layers[0].update({unit: unit in names for unit in UNITS}, native_math)
        _switch()


def _switched_on(changed: dict[str, bool]) -> frozenset[str]:
    return frozenset(unit for unit, is_on in changed.items() if is_on)


def _switch() -> None:
    """Apply the current settings."""
    note_native_math(requested_math())
    units.switch(requested())


def _withdraw(name: str, reason: str) -> None:
    with _lock:
        UNITS[name].reason = reason
        _switch()


withdrawal.on_withdrawal(_withdraw)
waiting.register_switch(waiting.Switch(requested, settle))
settle(waiting.wanted())
