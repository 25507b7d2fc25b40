"""Arithmetic on lengths and sizes, some of which are unknown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# The lengths of the dimensions of a tensor; None where one is unknown.
Lengths = tuple[int | None, ...]


def total(numbers: Iterable[int | None]) -> int | None:
    """Return the sum of some numbers, or None if one is unknown."""
    known = list(numbers)
    return None if None in known else sum(n for n in known if n is not None)


def product(numbers: Iterable[int | None]) -> int | None:
    """Return the product of some numbers, or None if one is unknown."""
    known = list(numbers)
    return None if None in known else math.prod(n for n in known if n is not None)
