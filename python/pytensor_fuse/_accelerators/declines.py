"""Node rewriters are not tried on nodes whose inputs show that it would be in vain.

The loops of `rewriter_loops` ask for that; with those of PyTensor's it changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._pytensor import declines
from pytensor_fuse._pytensor.drop_ins import DropIn

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return DropIn(declines, "in_use", declines.table())
