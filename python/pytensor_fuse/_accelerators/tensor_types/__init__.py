"""Tensor types: a dtype given by name is not looked up in NumPy."""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import Does

ACCELERATOR: Final = Accelerator(
    title="types of tensors are made without parsing a dtype",
    replaces="TensorType.__init__",
    skips="NumPy's look-up of a dtype that is given by name",
    ground=(Does("pytensor.tensor.type:TensorType.__init__"),),
    gain=Gain(1.06, "large(100)"),
)
