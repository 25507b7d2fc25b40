"""The cache level: ``PYTENSOR_FUSE_CACHE``, or off with the feature."""

from __future__ import annotations

import os
import warnings
from enum import Enum
from typing import Final

from pytensor_fuse._startup.features import OFF, ON, on_now

VARIABLE: Final = "PYTENSOR_FUSE_CACHE"


class Level(Enum):
    """Where rewritten graphs are cached."""

    OFF = "off"
    MEMORY = "memory"
    DISK = "disk"
    # In memory, and each hit is compared with a new rewriting of the graph.
    VERIFY = "verify"


DEFAULT: Final = Level.DISK

# Words for all or nothing, as for every feature.
_WORDS: Final = {**dict.fromkeys(ON, DEFAULT), **dict.fromkeys(OFF, Level.OFF)}


def _level_by_environment() -> Level:
    value = os.environ.get(VARIABLE, "").strip().lower()
    if not value:
        return DEFAULT
    try:
        return _WORDS.get(value) or Level(value)
    except ValueError:
        names = ", ".join(level.value for level in Level)
        warnings.warn(
            f"{VARIABLE}={value!r} is none of {names}; it is taken for {DEFAULT.value}",
            RuntimeWarning,
            stacklevel=2,
        )
        return DEFAULT


_level: Final = _level_by_environment()


def level() -> Level:
    """Return the current level."""
    return _level if "cache" in on_now() else Level.OFF
