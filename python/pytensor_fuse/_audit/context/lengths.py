"""Arithmetic of lengths and sizes of which some are not known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# Lengths of the dimensions of a tensor; None where one is not known.
Lengths = tuple[int | None, ...]


def total(numbers: Iterable[int | None]) -> int | None:
    """Return the sum of some numbers; None if one is not known."""
    known = list(numbers)
    return None if None in known else sum(n for n in known if n is not None)


def product(numbers: Iterable[int | None]) -> int | None:
    """Return the product of some numbers; None if one is not known."""
    known = list(numbers)
    return None if None in known else math.prod(n for n in known if n is not None)
