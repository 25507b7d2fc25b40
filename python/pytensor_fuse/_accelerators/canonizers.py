"""Canonical forms: products and sums already in theirs are recognized without computing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.tensor.rewriting import math

from pytensor_fuse._pytensor import canonizers
from pytensor_fuse._pytensor.drop_ins import DropIn, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return Together(
        [
            DropIn(math.AlgebraicCanonizer, "transform", canonizers.transform),
            DropIn(math.local_greedy_distributor, "fn", canonizers.distribute),
        ]
    )
