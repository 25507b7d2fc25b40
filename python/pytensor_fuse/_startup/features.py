"""Features by name, and the settings that the environment selects at import.

The settings are the features that are on, and the mathematical functions that machine code calls.
For the latter, ``"vector"`` stands for this package's vector functions, and ``"libm"`` for those of
the C library and of SciPy, called lane by lane, as Numba does.

Nothing here imports PyTensor, since worker processes receive the settings before they import it.
"""

from __future__ import annotations

import os
import warnings
from typing import Final

VARIABLE: Final = "PYTENSOR_FUSE"
MATH_VARIABLE: Final = "PYTENSOR_FUSE_NATIVE_MATH"

# The features with their descriptions, in the order in which they are switched on.
FEATURES: Final[dict[str, str]] = {
    "exact_constants": "constants are merged only if they are equal bit for bit",
    "merging": "equal apply nodes are merged with a hash-cons table",
    "fusion": "Elemwise nodes are fused by a planner in Rust",
    "joins": "kernels write directly into the result of a join",
    "linalg": "cubic work on matrices is shared or simplified",
    "cache": "rewritten graphs are cached in memory and on disk",
    "other_data": "cached graphs are reused for other data of the same shapes",
    "native": "graphs in Numba mode become machine code without Numba",
    "single_runs": "code that runs once and is not machine code runs in Python, without Numba",
    "nutpie": "nutpie calls machine code without Numba",
    "accelerators": "slow functions of PyTensor are replaced by faster equivalents",
}

# The values of the setting for mathematical functions.
VECTOR: Final = "vector"
LIBM: Final = "libm"
MATH_WORDS: Final = (VECTOR, LIBM)

# The features that are on, in the order above: a copy of the switch's state for readers.
_on_now: tuple[str, ...] = ()

ON: Final = ("1", "true", "on", "yes")
OFF: Final = ("0", "false", "off", "no")


def wanted_by_environment() -> frozenset[str]:
    """Return the features that ``PYTENSOR_FUSE`` leaves on: all if it is unset or empty.

    Warns
    -----
    RuntimeWarning
        If the value is neither on nor off and names no feature; all features are then on. If it
        names an unknown feature among known ones; only the known ones are then on.
    """
    value = os.environ.get(VARIABLE, "")
    words = [word for word in value.lower().replace(",", " ").split() if word]
    if not words or (len(words) == 1 and words[0] in ON):
        return frozenset(FEATURES)
    if len(words) == 1 and words[0] in OFF:
        return frozenset()
    known = frozenset(word for word in words if word in FEATURES)
    unknown = [word for word in words if word not in FEATURES]
    if not known:
        warnings.warn(
            f"{VARIABLE}={value!r} is neither on ({', '.join(ON)}) nor off ({', '.join(OFF)}) "
            f"nor names features ({', '.join(FEATURES)}); all features of pytensor_fuse are on",
            RuntimeWarning,
            stacklevel=2,
        )
        return frozenset(FEATURES)
    if unknown:
        warnings.warn(
            f"{VARIABLE}={value!r} names no feature of pytensor_fuse by {', '.join(unknown)}; "
            f"there are {', '.join(FEATURES)}",
            RuntimeWarning,
            stacklevel=2,
        )
    return known


def note_on(names: tuple[str, ...]) -> None:
    """Record the features that are switched on."""
    global _on_now
    _on_now = names


def on_now() -> tuple[str, ...]:
    """Return the features that are switched on."""
    return _on_now


def _math_by_environment() -> str:
    value = os.environ.get(MATH_VARIABLE, "").strip().lower()
    if not value or value in MATH_WORDS:
        return value or VECTOR
    warnings.warn(
        f"{MATH_VARIABLE}={value!r} is none of {', '.join(MATH_WORDS)}; {VECTOR} is used instead",
        RuntimeWarning,
        stacklevel=2,
    )
    return VECTOR


_math_now: str = _math_by_environment()


def checked_math(word: object) -> str:
    """Return ``word`` if it is one of `MATH_WORDS`.

    Raises
    ------
    ValueError
        If it is not.
    """
    if isinstance(word, str) and word in MATH_WORDS:
        return word
    raise ValueError(f"native_math must be one of {', '.join(MATH_WORDS)}, not {word!r}")


def note_native_math(word: str) -> None:
    """Set the kind of mathematical functions for graphs that are compiled from now on."""
    global _math_now
    _math_now = word


def native_math_now() -> str:
    """Return the kind of mathematical functions for graphs that are compiled now."""
    return _math_now
