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


def _modules(**folders: str) -> tuple[str, ...]:
    return tuple([f"{folder}.{name}" for folder in folders for name in folders[folder].split()])


COMMON: Final = (
    *("blockwise", "copies", "graph"),
    *_modules(
        arrays="creation diagonals elementwise joins reductions shapes views",
        indexing="masks reads writes",
        products="rules",
        scalars="arithmetic functions logic loops polygamma",
    ),
)
RARER: Final = (
    "branches",
    *_modules(
        arrays="argmax convolution cumulative repeats splines write_joins",
        matrices="block_diagonals eigen expm qr svd",
        random="rules",
        scans="rules",
        sorting="binary_search rules",
        systems="banded determinants inverses lu solving toeplitz triangles tridiagonal",
    ),
)
_SPARSE: Final = _modules(
    sparse="arguments construction merging elementwise product_rules stacking"
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
