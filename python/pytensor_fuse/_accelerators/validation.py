"""Validation: the destroyers of a variable are looked up once for all protected variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.compile.aliasing import Supervisor
from pytensor.graph import destroyhandler

from pytensor_fuse._pytensor import validation
from pytensor_fuse._pytensor.drop_ins import DropIn, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return Together(
        [
            DropIn(Supervisor, "on_validate", validation.on_validate),
            DropIn(destroyhandler, "_contains_cycle", validation.contains_cycle),
        ]
    )
