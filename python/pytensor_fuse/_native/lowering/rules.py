"""Imports of the rules that most graphs need, which register them.

Those in `rarer_rules` wait for an op without a rule.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

from pytensor_fuse._imports import after_import
from pytensor_fuse._native.lowering import blockwise, copies, graph
from pytensor_fuse._native.lowering.arrays import (
    checks,
    creation,
    diagonals,
    elementwise,
    joins,
    reductions,
    shapes,
    views,
)
from pytensor_fuse._native.lowering.indexing import masks, reads, writes
from pytensor_fuse._native.lowering.products import rules as products
from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.scalars import arithmetic, functions, logic, loops, polygamma

__all__ = [
    "arithmetic",
    "blockwise",
    "checks",
    "copies",
    "creation",
    "diagonals",
    "elementwise",
    "functions",
    "graph",
    "joins",
    "logic",
    "loops",
    "masks",
    "polygamma",
    "products",
    "reads",
    "reductions",
    "shapes",
    "views",
    "writes",
]


def _register_rest() -> None:
    from pytensor_fuse._native.lowering import rarer_rules  # noqa: F401  registers them


def _register_sparse() -> None:
    # An internal error must not break the import of PyTensor's sparse ops. Without these rules,
    # Numba compiles them.
    with suppress(Exception):
        import_module("pytensor_fuse._native.lowering.sparse.rules")


lower.register_rest(_register_rest)
after_import("pytensor.sparse", _register_sparse)
