"""All rules for sparse matrices: importing this module registers them, and needs PyTensor's ops."""

from __future__ import annotations

from pytensor_fuse._native.lowering.sparse import (
    construction,
    merging,
    multiplication,
    product_rules,
    sums,
)

__all__ = ["construction", "merging", "multiplication", "product_rules", "sums"]
