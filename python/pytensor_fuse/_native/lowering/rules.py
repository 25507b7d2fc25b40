"""Imports of the modules of rules, which register them.

Rules that few graphs need are imported with the first op that has no rule, and those for sparse
matrices after PyTensor's sparse ops.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Final

from pytensor_fuse._imports import after_import
from pytensor_fuse._native.lowering.registry import lower

COMMON: Final = (
    "blockwise",
    "copies",
    "graph",
    "arrays.creation",
    "arrays.diagonals",
    "arrays.elementwise",
    "arrays.joins",
    "arrays.reductions",
    "arrays.shapes",
    "arrays.views",
    "indexing.masks",
    "indexing.reads",
    "indexing.writes",
    "products.rules",
    "scalars.arithmetic",
    "scalars.functions",
    "scalars.logic",
    "scalars.loops",
    "scalars.polygamma",
)
RARER: Final = (
    "branches",
    "arrays.argmax",
    "arrays.convolution",
    "arrays.cumulative",
    "arrays.repeats",
    "arrays.splines",
    "arrays.write_joins",
    "matrices.block_diagonals",
    "matrices.eigen",
    "matrices.expm",
    "matrices.qr",
    "matrices.svd",
    "random.rules",
    "scans.rules",
    "sorting.binary_search",
    "sorting.rules",
    "systems.banded",
    "systems.determinants",
    "systems.inverses",
    "systems.lu",
    "systems.solving",
    "systems.toeplitz",
    "systems.triangles",
    "systems.tridiagonal",
)
_SPARSE: Final = (
    "sparse.arguments",
    "sparse.construction",
    "sparse.merging",
    "sparse.elementwise",
    "sparse.product_rules",
    "sparse.stacking",
)


def _register(names: tuple[str, ...]) -> None:
    for name in names:
        import_module(f"pytensor_fuse._native.lowering.{name}")


def _register_sparse() -> None:
    # An internal error must not break the import of PyTensor's sparse ops. Without these rules,
    # Numba compiles them.
    with suppress(Exception):
        _register(_SPARSE)


_register(COMMON)
lower.register_rest(lambda: _register(RARER))
after_import("pytensor.sparse", _register_sparse)
