"""Tensor types: a dtype given by name is not looked up in NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.tensor.type import TensorType

from pytensor_fuse._pytensor.ops import known_types
from pytensor_fuse._pytensor.patching.drop_ins import DropIn

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patching.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return DropIn(TensorType, "__init__", known_types.init_type)
