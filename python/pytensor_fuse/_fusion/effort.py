"""Effort levels of the planner: their names, and the search limits behind them."""

from __future__ import annotations

import os
import warnings
from typing import Final

VARIABLE: Final = "PYTENSOR_FUSE_EFFORT"

# The limit on the sets and states that the planner's search visits; None for no search. It is not
# a time, so that the same graph has the same plan on every machine.
EFFORTS: Final[dict[str, int | None]] = {"fast": None, "optimal": 4_000_000}

DEFAULT: Final = "fast"

_NAMES: Final = " or ".join(repr(name) for name in EFFORTS)


def resolve_effort(effort: str) -> int | None:
    """Return the search limit of an effort level, or None for no search.

    Raises
    ------
    TypeError
        If ``effort`` is not a string.
    ValueError
        If ``effort`` is not in ``EFFORTS``.
    """
    if not isinstance(effort, str):
        raise TypeError(f"effort must be {_NAMES}, not {type(effort).__name__}")
    if effort not in EFFORTS:
        raise ValueError(f"unknown effort {effort!r}; use {_NAMES}")
    return EFFORTS[effort]


def effort_of_compiles() -> int | None:
    """Return the search limit that ``PYTENSOR_FUSE_EFFORT`` now selects; see `resolve_effort`.

    Warns
    -----
    RuntimeWarning
        If its value is not in ``EFFORTS``; the default is then used.
    """
    value = os.environ.get(VARIABLE, "").strip().lower() or DEFAULT
    if value not in EFFORTS:
        warnings.warn(
            f"{VARIABLE}={os.environ[VARIABLE]!r} is not {_NAMES}; {DEFAULT!r} is used instead",
            RuntimeWarning,
            stacklevel=2,
        )
        value = DEFAULT
    return EFFORTS[value]
