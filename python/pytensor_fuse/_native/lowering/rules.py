"""All rules of this package: importing this module registers them."""

from __future__ import annotations

from pytensor_fuse._native.lowering import (
    branches,
    checks,
    copies,
    creation,
    cumulative,
    diagonals,
    elementwise,
    graph,
    inverses,
    joins,
    products,
    reductions,
    scalar_arithmetic,
    scalar_functions,
    scalar_logic,
    scalar_loops,
    searching,
    shapes,
    triangles,
    views,
)
from pytensor_fuse._native.lowering.indexing import masks, reads, writes

__all__ = [
    "branches",
    "checks",
    "copies",
    "creation",
    "cumulative",
    "diagonals",
    "elementwise",
    "graph",
    "inverses",
    "joins",
    "masks",
    "products",
    "reads",
    "reductions",
    "scalar_arithmetic",
    "scalar_functions",
    "scalar_logic",
    "scalar_loops",
    "searching",
    "shapes",
    "triangles",
    "views",
    "writes",
]
