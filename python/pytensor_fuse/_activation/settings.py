"""Settings: which features are requested, by the process and by the blocks that are open.

Each layer of the settings names some features and says whether they are on. The lowest layer is
the process's own; ``with enabled(...)`` adds a layer and removes it at its end. For each feature,
the latest open block that names it decides. Blocks of different threads may overlap, so the layer
that goes is not always the last one.
"""

from __future__ import annotations

import os
import threading
import warnings
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pytensor_fuse._activation.units import PARTS, UNITS
from pytensor_fuse._startup.features import FEATURES, native_math_now

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


@dataclass
class Layer:
    """A layer of the settings; what it leaves out, lower layers decide."""

    units: dict[str, bool] = field(default_factory=dict)
    native_math: str | None = None
    # The thread that opened the block; None for the process's own, and in a forked process for
    # those of the threads that it lacks, which nobody can close.
    thread: int | None = None

    def update(self, units: dict[str, bool], native_math: str | None) -> None:
        """Change the settings of this layer."""
        self.units.update(units)
        self.native_math = native_math or self.native_math


# The process's layer, then those of the open blocks, the latest one last.
layers: Final = [Layer(native_math=native_math_now())]


def own_layer() -> Layer:
    """Return this thread's latest open block, or the latest layer of the process if it has none."""
    own = threading.get_ident()
    return next(layer for layer in reversed(layers) if layer.thread in (own, None))


def _adopt_orphans() -> None:
    """In a forked process, make the layers of its parent's other threads the process's own.

    They move below this thread's blocks, so that switches within those have an effect. The
    features are as before, now and after each of the blocks: a block takes what later ones of
    other threads say.
    """
    process: list[Layer] = []
    blocks: list[Layer] = []
    for layer in layers:
        if layer.thread == threading.get_ident():
            blocks.append(layer)
            continue
        layer.thread = None
        process.append(layer)
        for block in blocks:
            block.update(layer.units, layer.native_math)
    layers[:] = process + blocks


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_adopt_orphans)


def requested() -> frozenset[str]:
    """Return the units that should be on."""
    units: dict[str, bool] = {}
    # A copy: a parent of workers reads its settings without the lock.
    for layer in tuple(layers):
        units |= layer.units
    return frozenset(unit for unit, is_on in units.items() if is_on)


def requested_math() -> str:
    """Return the kind of mathematical functions that machine code should call."""
    return next(layer.native_math for layer in reversed(layers) if layer.native_math is not None)


def changed_units(
    is_on: bool, features: Collection[str], keywords: dict[str, Any]
) -> dict[str, bool]:
    """Return the units that a call of `enable`, `disable` or `enabled` changes.

    Raises
    ------
    TypeError
        If a feature's name is no string, or a keyword is unknown or has a value of another type.
    ValueError
        If there is no feature of a name.
    """
    if not keywords:
        return dict.fromkeys(units_named(features), is_on)
    if features:
        raise TypeError("give the names of features as strings, without the old keywords")
    given = _units_by_keywords(keywords)
    _warn_of_keywords()
    return {unit: unit in given for unit in UNITS} if is_on else dict.fromkeys(given, False)


def units_named(features: Iterable[str]) -> tuple[str, ...]:
    """Return the units of named features, and all units if there is no name."""
    names = tuple(features)
    found: list[str] = []
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"a feature is named by a string, such as 'joins', not {name!r}")
        if name not in PARTS and name not in UNITS:
            accelerators = ", ".join(PARTS["accelerators"])
            raise ValueError(
                f"no feature is called {name!r}; there are {', '.join(FEATURES)}, and "
                f"'accelerators:NAME' for one accelerator, where NAME is one of {accelerators}"
            )
        found += PARTS[name].values() if name in PARTS else (name,)
    return tuple(found) if names else tuple(UNITS)


@cache
def _warn_of_keywords() -> None:
    """Warn once that keywords are deprecated."""
    warnings.warn(
        "features as keywords will be removed in the next version of pytensor_fuse; name them: "
        'enable("joins"), disable("joins"), enabled(False, "joins")',
        FutureWarning,
        stacklevel=4,
    )


def _units_by_keywords(keywords: dict[str, Any]) -> frozenset[str]:
    """Return the units that keywords name: ``joins=False`` means all features but one."""
    given: set[str] = set()
    unknown = [name for name in keywords if name not in FEATURES]
    if unknown:
        raise TypeError(
            f"unexpected keyword argument {unknown[0]!r}; features are named by strings, as in "
            'enable("joins"), and status() lists them'
        )
    for name in FEATURES:
        value = keywords.get(name, True)
        if isinstance(value, bool):
            given.update(PARTS[name].values() if value else ())
        elif name != "accelerators" or not isinstance(value, list | tuple | set | frozenset):
            also = ", or a list of names" if name == "accelerators" else ""
            raise TypeError(f"{name} must be True or False{also}, not {value!r}")
        else:
            given.update(units_named([f"{name}:{part}" for part in value]) if value else ())
    return frozenset(given)
