"""Assumptions: rules are looked up once for each class of ops, not for each node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.assumptions.core import AssumptionFeature, AssumptionKey

from pytensor_fuse._pytensor import quick_assumptions
from pytensor_fuse._pytensor.drop_ins import DropIn, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return Together(
        [
            DropIn(AssumptionFeature, "_compute", quick_assumptions.compute),
            DropIn(AssumptionKey, "__hash__", quick_assumptions.hash_key),
        ]
    )
