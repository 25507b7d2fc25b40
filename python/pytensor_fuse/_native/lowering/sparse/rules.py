"""Imports of all rules for sparse matrices, which register them and need PyTensor's sparse ops."""

from __future__ import annotations

from pytensor_fuse._native.lowering.sparse import (
    arguments,
    construction,
    merging,
    multiplication,
    product_rules,
    stacking,
    sums,
)

__all__ = [
    "arguments",
    "construction",
    "merging",
    "multiplication",
    "product_rules",
    "stacking",
    "sums",
]
