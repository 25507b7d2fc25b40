"""Serialized increments: the pass that chains increments of one array, with one graph edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._pytensor import serialized_increments
from pytensor_fuse._pytensor.drop_ins import BoundDropIn

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return BoundDropIn(serialized_increments.the_pass(), "apply", serialized_increments.apply)
