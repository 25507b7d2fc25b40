"""Shape updates: the clients of a variable are searched without a call for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.tensor.rewriting.shape import ShapeFeature

from pytensor_fuse._pytensor import shape_changes
from pytensor_fuse._pytensor.drop_ins import DropIn

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return DropIn(ShapeFeature, "on_change_input", shape_changes.on_change_input)
