"""The setting ``PYTENSOR_FUSE_NATIVE``, and the choice of mathematical functions."""

from __future__ import annotations

import os
import warnings
from enum import Enum
from typing import Final

from pytensor_fuse._startup.features import LIBM, OFF, ON, native_math_now, on_now

VARIABLE: Final = "PYTENSOR_FUSE_NATIVE"


class Use(Enum):
    """The treatment of graphs in Numba mode."""

    OFF = "off"
    ON = "on"
    # Numba's function runs as well, and a difference between the results is an error.
    VERIFY = "verify"


_WORDS: Final = {**dict.fromkeys(ON, Use.ON), **dict.fromkeys(OFF, Use.OFF)}


def _by_environment() -> Use:
    value = os.environ.get(VARIABLE, "").strip().lower()
    if not value:
        return Use.ON
    try:
        return _WORDS.get(value) or Use(value)
    except ValueError:
        names = ", ".join(use.value for use in Use)
        warnings.warn(
            f"{VARIABLE}={value!r} is none of {names}; assuming on", RuntimeWarning, stacklevel=2
        )
        return Use.ON


_use: Final = _by_environment()


def use() -> Use:
    """Return the treatment of graphs that are linked now."""
    return _use if "native" in on_now() else Use.OFF


def calls_libm() -> bool:
    """Whether graphs that are linked now call the mathematical functions of Numba's back end."""
    return native_math_now() == LIBM
