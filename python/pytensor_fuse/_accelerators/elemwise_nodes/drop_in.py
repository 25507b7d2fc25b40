"""Elemwise nodes: an op's output types are cached by its input types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse._pytensor.ops import known_types
from pytensor_fuse._pytensor.patching.drop_ins import DropIn, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patching.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return Together(
        DropIn(Elemwise, "make_node", known_types.make_node),
        DropIn(known_types.OPERATORS, "dimshuffle", known_types.dimshuffle),
    )
