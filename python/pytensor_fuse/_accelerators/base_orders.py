"""Trackers of rewriters: the method resolution order of a class of ops is computed once.

PyTensor makes the passes anew for each compilation, and each pass asks for each class of ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.graph.rewriting import basic

from pytensor_fuse._pytensor.base_orders import compose_mro
from pytensor_fuse._pytensor.drop_ins import DropIn

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return DropIn(basic, "_compose_mro", compose_mro)
