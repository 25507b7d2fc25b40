"""Which mathematical functions machine code calls, and what ``PYTENSOR_FUSE_NATIVE_MATH`` says.

``"vector"`` stands for our own functions of vectors, ``"libm"`` for those of the C library and of
SciPy, lane by lane, as Numba calls them. Nothing here imports PyTensor: workers are told of it
before they do.
"""

from __future__ import annotations

import os
import warnings
from typing import Final

VARIABLE: Final = "PYTENSOR_FUSE_NATIVE_MATH"

VECTOR: Final = "vector"
LIBM: Final = "libm"
WORDS: Final = (VECTOR, LIBM)


def _by_environment() -> str:
    value = os.environ.get(VARIABLE, "").strip().lower()
    if not value or value in WORDS:
        return value or VECTOR
    warnings.warn(
        f"{VARIABLE}={value!r} is none of {', '.join(WORDS)}; it is taken for {VECTOR}",
        RuntimeWarning,
        stacklevel=2,
    )
    return VECTOR


_now: str = _by_environment()


def checked(word: object) -> str:
    """Return a word that somebody gives, or say which there are.

    Raises
    ------
    ValueError
        If it is none of them.
    """
    if isinstance(word, str) and word in WORDS:
        return word
    raise ValueError(f"native_math must be one of {', '.join(WORDS)}, not {word!r}")


def note_native_math(word: str) -> None:
    """Note which functions graphs call that are compiled from now on."""
    global _now
    _now = word


def native_math_now() -> str:
    """Return which functions graphs call that are compiled now."""
    return _now
