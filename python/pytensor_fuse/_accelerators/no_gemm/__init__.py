"""BLAS products: skip the search for GEMM in graphs without products."""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import Does, does

ACCELERATOR: Final = Accelerator(
    title="sums without products of matrices are not searched for them",
    replaces="GemmOptimizer.apply and _gemm_from_node2",
    skips="the search for products of matrices in sums where the graph, or the sum, has none",
    ground=(
        Does("pytensor.tensor.rewriting.blas:GemmOptimizer.apply"),
        *does(
            "pytensor.tensor.rewriting.blas",
            "_beta_L_plus_alpha_M _gemm_from_node2 _gemm_canonicalize _gemm_from_factored_list",
        ),
    ),
    gain=Gain(1.38, "deep(400)"),
)
