"""Types of tensors are made without asking NumPy for the name of a dtype that is given by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.tensor.type import TensorType

from pytensor_fuse._pytensor import known_types
from pytensor_fuse._pytensor.drop_ins import DropIn

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return DropIn(TensorType, "__init__", known_types.init_type)
