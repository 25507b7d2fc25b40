"""Imports of the rules that most graphs do without, which register them."""

from __future__ import annotations

from pytensor_fuse._native.lowering import branches
from pytensor_fuse._native.lowering.arrays import (
    argmax,
    convolution,
    cumulative,
    flat_indices,
    repeats,
    splines,
    write_joins,
)
from pytensor_fuse._native.lowering.matrices import block_diagonals, eigen, expm, qr, svd
from pytensor_fuse._native.lowering.random import rules as random
from pytensor_fuse._native.lowering.scans import rules as scans
from pytensor_fuse._native.lowering.sorting import binary_search
from pytensor_fuse._native.lowering.sorting import rules as sorting
from pytensor_fuse._native.lowering.systems import (
    banded,
    determinants,
    inverses,
    lu,
    solving,
    toeplitz,
    triangles,
    tridiagonal,
)

__all__ = [
    "argmax",
    "banded",
    "binary_search",
    "block_diagonals",
    "branches",
    "convolution",
    "cumulative",
    "determinants",
    "eigen",
    "expm",
    "flat_indices",
    "inverses",
    "lu",
    "qr",
    "random",
    "repeats",
    "scans",
    "solving",
    "sorting",
    "splines",
    "svd",
    "toeplitz",
    "triangles",
    "tridiagonal",
    "write_joins",
]
