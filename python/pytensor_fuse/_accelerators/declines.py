"""Declines: skip node rewriters that must fail on a node, judged by the node's inputs.

Only the loops of `rewriter_loops` consult the table; it has no effect on PyTensor's own loops.
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
