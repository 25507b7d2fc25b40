"""Factors of sums and products: ops are compared once, and futile simplifications are skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.tensor.rewriting import math

from pytensor_fuse._pytensor import sum_factors
from pytensor_fuse._pytensor.drop_ins import DropIn, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return Together(
        [
            DropIn(math.AlgebraicCanonizer, "get_num_denum", sum_factors.get_num_denum),
            DropIn(math, "attempt_distribution", sum_factors.attempt_distribution),
        ]
    )
