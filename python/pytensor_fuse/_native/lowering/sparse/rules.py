"""All rules for sparse matrices: importing this module registers them, and needs PyTensor's ops."""

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
