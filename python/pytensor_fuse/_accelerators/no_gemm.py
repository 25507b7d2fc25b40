"""BLAS products: skip the search for GEMM in graphs without products."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.tensor.rewriting import blas
from pytensor.tensor.rewriting.blas import GemmOptimizer

from pytensor_fuse._pytensor import no_gemm
from pytensor_fuse._pytensor.drop_ins import DropIn, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return Together(
        [
            DropIn(GemmOptimizer, "apply", no_gemm.apply),
            DropIn(blas, "_gemm_from_node2", no_gemm.from_node),
        ]
    )
