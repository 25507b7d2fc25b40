"""Factors of sums and products: ops are compared once, and futile simplifications are skipped."""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import does

ACCELERATOR: Final = Accelerator(
    title="attempts to simplify sums and products are skipped where they would fail",
    replaces="AlgebraicCanonizer.get_num_denum and attempt_distribution",
    skips=(
        "comparisons of each op with three others; simplifications of products that can save "
        "nothing, or too little"
    ),
    ground=(
        *does(
            "pytensor.tensor.rewriting.math:AlgebraicCanonizer",
            "get_num_denum simplify simplify_constants simplify_factors",
        ),
        *does(
            "pytensor.tensor.rewriting.math",
            "distribute_greedy attempt_distribution check_for_x_over_absX",
        ),
    ),
    since=(3, 3),
    gain=Gain(1.43, "student-t(40)"),
)
