"""The pass that makes products and sums of matrices one call of BLAS, where there is no product."""

from __future__ import annotations

from typing import Any

from pytensor.tensor.blas import Dot22
from pytensor.tensor.rewriting.blas import GemmOptimizer

_stock_apply: Any = GemmOptimizer.apply


def apply(self: Any, fgraph: Any) -> Any:
    """Do as `GemmOptimizer.apply`, which looks for a sum with a term that a `Dot22` computes.

    Without one it takes each sum of the graph apart, makes constants for the factors of its terms,
    and finds nothing.
    """
    if fgraph.profile:
        return _stock_apply(self, fgraph)
    for node in fgraph.apply_nodes:
        if isinstance(node.op, Dot22):
            return _stock_apply(self, fgraph)
    return self, 1, 0, 0, 0, 0, 0, 0, 0, 0.0, None, None, {}
