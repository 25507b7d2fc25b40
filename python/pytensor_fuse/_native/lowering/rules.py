"""All rules of this package: importing this module registers them."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

from pytensor_fuse._imports import after_import
from pytensor_fuse._native.lowering import (
    banded,
    binary_search,
    block_diagonals,
    blockwise,
    branches,
    checks,
    convolution,
    copies,
    creation,
    cumulative,
    determinants,
    diagonals,
    eigen,
    elementwise,
    expm,
    flat_indices,
    graph,
    inverses,
    joins,
    lu,
    products,
    qr,
    random,
    reductions,
    repeats,
    scalar_arithmetic,
    scalar_functions,
    scalar_logic,
    scalar_loops,
    scalar_polygamma,
    scans,
    searching,
    shapes,
    solving,
    sorting,
    splines,
    svd,
    toeplitz,
    triangles,
    tridiagonal,
    views,
)
from pytensor_fuse._native.lowering.indexing import masks, reads, writes

__all__ = [
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
    "graph",
    "inverses",
    "joins",
    "lu",
    "masks",
    "products",
    "qr",
    "random",
    "reads",
    "reductions",
    "repeats",
    "scalar_arithmetic",
    "scalar_functions",
    "scalar_logic",
    "scalar_loops",
    "scalar_polygamma",
    "scans",
    "searching",
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
    # Importing PyTensor's sparse ops must not fail because of us. Without our rules, Numba compiles
    # them.
    with suppress(Exception):
        import_module("pytensor_fuse._native.lowering.sparse.rules")


after_import("pytensor.sparse", _register_sparse)
