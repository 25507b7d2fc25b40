"""Withdrawal of features that do not work with this PyTensor: one warning, then they stay off."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Final

from pytensor_fuse._startup.warning import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

# Packages besides PyTensor that are patched. A reason begins with the name of the package.
_OTHERS: Final = ("nutpie", "pymc")

_said: set[tuple[str, str]] = set()
_listeners: list[Callable[[str, str], object]] = []


def on_withdrawal(listener: Callable[[str, str], object]) -> None:
    """Register a listener that is called with the name of each withdrawn feature and the reason."""
    _listeners.append(listener)


def load(feature: str, module: str) -> ModuleType | None:
    """Import the module that implements a feature, on its first use.

    A program that compiles nothing does not pay for the import. If it fails, because
    PyTensor has moved something, the feature is withdrawn.

    Returns
    -------
    module or None
        None if the import failed: PyTensor's own code then does the work.
    """
    try:
        return import_module(module)
    except Exception as error:  # A future PyTensor may fail in any way.
        withdraw(feature, f"{module} cannot be loaded: {type(error).__name__}: {error}")
        return None


def withdraw(feature: str, reason: str) -> None:
    """Switch a feature off permanently, with one warning."""
    for listener in _listeners:
        listener(feature, reason)
    say([feature], reason)


def say(features: Iterable[str], reason: str) -> None:
    """Warn that features are off, once for each feature and reason."""
    new = [feature for feature in features if (feature, reason) not in _said]
    if not new:
        return
    _said.update((feature, reason) for feature in new)
    package, version = _changed(reason)
    warn(
        f"pytensor_fuse leaves {' and '.join(new)} to {package}{version}, which is not "
        f"as it knows it: {reason}. Everything else works; pytensor_fuse.status() shows what is "
        f"on, and a newer pytensor_fuse may know this {package}"
    )


def say_replaced(reason: str) -> None:
    """Warn, once, that another package has replaced the code that a feature would replace."""
    if ("", reason) not in _said:
        _said.add(("", reason))
        warn(reason)


def _changed(reason: str) -> tuple[str, str]:
    """Return the name of the unknown package, and its version after a blank."""
    package = next(
        (one for one in _OTHERS if reason.startswith((f"{one}.", f"{one} "))), "PyTensor"
    )
    version = getattr(sys.modules.get(package.lower()), "__version__", None)
    if version is None:  # A package that is being imported may not have set it yet.
        from importlib import metadata

        with suppress(metadata.PackageNotFoundError):
            version = metadata.version(package)
    return package, "" if version is None else f" {version}"
