"""Whether the sides compute the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# Differences of this size, relative to the largest element, come from the order of additions.
ROUNDING = 1e-9
# XLA sums in another order, and its functions are its own.
ROUNDING_OF_JAX = 1e-8


def largest_difference(ours: Sequence[Any], stock: Sequence[Any]) -> float:
    """The largest difference between results, relative to each result's largest element."""
    return max(_difference(np.asarray(a), np.asarray(b)) for a, b in zip(ours, stock, strict=True))


def assert_same(
    ours: Sequence[Any], stock: Sequence[Any], *, allowed: float = ROUNDING, what: str = "ours"
) -> None:
    """Fail if results differ by more than rounding."""
    difference = largest_difference(ours, stock)
    assert difference <= allowed, f"results of {what} differ by {difference:.1e}"


def assert_same_reported(
    results: Mapping[str, Sequence[Mapping[str, Any]]], *, allowed: float = ROUNDING
) -> None:
    """Fail unless all processes of all sides have reported the same "results"."""
    expected, *_ = results.get("stock") or next(iter(results.values()))
    for side, of_side in results.items():
        most = max(allowed, ROUNDING_OF_JAX) if side == "jax" else allowed
        for result in of_side:
            assert_same(result["results"], expected["results"], allowed=most, what=side)


def _difference(a: np.ndarray, b: np.ndarray) -> float:
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return float("inf")
    finite = np.isfinite(a)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    scale = max(1.0, float(np.max(np.abs(b[finite]), initial=0.0)))
    return float(np.max(np.abs(a[finite] - b[finite]), initial=0.0)) / scale
