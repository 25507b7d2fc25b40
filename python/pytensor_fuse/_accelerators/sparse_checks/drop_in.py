"""Sparse data: dense values are recognized without importing `scipy.sparse`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._pytensor.ops.sparse_data import checks_without_import

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patching.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return checks_without_import()
