"""Special functions: constant folding does not import `scipy.special`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._pytensor.special_functions import direct_imports

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return direct_imports()
