"""Features that turn out not to work in this PyTensor: each is said once, and stays off."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Final

from pytensor_fuse._startup.warning import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

# Packages besides PyTensor in which something is changed. A reason begins with the place.
_OTHERS: Final = ("nutpie", "pymc")

_said: set[tuple[str, str]] = set()
_listeners: list[Callable[[str, str], object]] = []


def on_withdrawal(listener: Callable[[str, str], object]) -> None:
    """Have ``listener`` called with the name of each feature that is withdrawn, and the reason."""
    _listeners.append(listener)


def load(feature: str, module: str) -> ModuleType | None:
    """Import what a feature does its work with, when it first has any.

    A program that compiles nothing does not pay for that. Where it cannot be imported, because
    PyTensor has moved something, the feature is withdrawn.

    Returns
    -------
    module or None
        None if it cannot be imported: PyTensor's own is to do the work.
    """
    try:
        return import_module(module)
    except Exception as error:  # Whatever a future PyTensor makes of what we import.
        withdraw(feature, f"{module} cannot be loaded: {type(error).__name__}: {error}")
        return None


def withdraw(feature: str, reason: str) -> None:
    """Switch a feature off for good, with one warning."""
    for listener in _listeners:
        listener(feature, reason)
    say([feature], reason)


def say(features: Iterable[str], reason: str) -> None:
    """Warn that features are off, unless that was said before."""
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
    """Warn that another package has replaced what a feature would, unless that was said before."""
    if ("", reason) not in _said:
        _said.add(("", reason))
        warn(reason)


def _changed(reason: str) -> tuple[str, str]:
    """Return the package that is not as it is known, by its name, and a blank and its version."""
    package = next(
        (one for one in _OTHERS if reason.startswith((f"{one}.", f"{one} "))), "PyTensor"
    )
    version = getattr(sys.modules.get(package.lower()), "__version__", None)
    if version is None:  # While a package is being imported, it may not have come to that.
        from importlib import metadata

        with suppress(metadata.PackageNotFoundError):
            version = metadata.version(package)
    return package, "" if version is None else f" {version}"
