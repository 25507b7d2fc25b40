"""How much effort a plan is worth: the names that users give it, and what the planner is told."""

from __future__ import annotations

import os
import warnings
from typing import Final

VARIABLE: Final = "PYTENSOR_FUSE_EFFORT"

# Sets and states that the planner's search may look at; None for no search. Not seconds: the same
# graph has the same plan on every machine.
EFFORTS: Final[dict[str, int | None]] = {"fast": None, "optimal": 4_000_000}

DEFAULT: Final = "fast"

_NAMES: Final = " or ".join(repr(name) for name in EFFORTS)


def resolve_effort(effort: str) -> int | None:
    """Return how much the search may look at, None if there is to be none.

    Raises
    ------
    TypeError
        If ``effort`` is not a string.
    ValueError
        If it is not a name of ``EFFORTS``.
    """
    if not isinstance(effort, str):
        raise TypeError(f"effort must be {_NAMES}, not {type(effort).__name__}")
    if effort not in EFFORTS:
        raise ValueError(f"unknown effort {effort!r}; use {_NAMES}")
    return EFFORTS[effort]


def effort_of_compiles() -> int | None:
    """Return what ``PYTENSOR_FUSE_EFFORT`` says at this moment, as `resolve_effort` does.

    Warns
    -----
    RuntimeWarning
        If it is no name of ``EFFORTS``; it is then the default.
    """
    value = os.environ.get(VARIABLE, "").strip().lower() or DEFAULT
    if value not in EFFORTS:
        warnings.warn(
            f"{VARIABLE}={os.environ[VARIABLE]!r} is not {_NAMES}; plans are made by {DEFAULT!r}",
            RuntimeWarning,
            stacklevel=2,
        )
        value = DEFAULT
    return EFFORTS[value]
