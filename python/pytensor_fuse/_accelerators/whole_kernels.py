"""Whole kernels: skip the search for unused inputs and outputs in kernels without any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._pytensor import whole_kernels
from pytensor_fuse._pytensor.drop_ins import DropIn

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return DropIn(whole_kernels.the_rewriter(), "fn", whole_kernels.remove_useless)
