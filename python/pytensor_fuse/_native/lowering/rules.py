"""Imports of all rules of this package, which register them."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

from pytensor_fuse._imports import after_import
from pytensor_fuse._native.lowering import blockwise, branches, copies, graph
from pytensor_fuse._native.lowering.arrays import (
    argmax,
    checks,
    convolution,
    creation,
    cumulative,
    diagonals,
    elementwise,
    flat_indices,
    joins,
    reductions,
    repeats,
    shapes,
    splines,
    views,
)
from pytensor_fuse._native.lowering.indexing import masks, reads, writes
from pytensor_fuse._native.lowering.matrices import block_diagonals, eigen, expm, qr, svd
from pytensor_fuse._native.lowering.products import rules as products
from pytensor_fuse._native.lowering.random import rules as random
from pytensor_fuse._native.lowering.scalars import arithmetic, functions, logic, loops, polygamma
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
    "arithmetic",
    "banded",
    "binary_search",
    "block_diagonals",
    "blockwise",
    "branches",
    "checks",
    "convolution",
    "copies",
    "creation",
    "cumulative",
    "determinants",
    "diagonals",
    "eigen",
    "elementwise",
    "expm",
    "flat_indices",
    "functions",
    "graph",
    "inverses",
    "joins",
    "logic",
    "loops",
    "lu",
    "masks",
    "polygamma",
    "products",
    "qr",
    "random",
    "reads",
    "reductions",
    "repeats",
    "scans",
    "shapes",
    "solving",
    "sorting",
    "splines",
    "svd",
    "toeplitz",
    "triangles",
    "tridiagonal",
    "views",
    "writes",
]


def _register_sparse() -> None:
    # An internal error must not break the import of PyTensor's sparse ops. Without these rules,
    # Numba compiles them.
    with suppress(Exception):
        import_module("pytensor_fuse._native.lowering.sparse.rules")


after_import("pytensor.sparse", _register_sparse)
