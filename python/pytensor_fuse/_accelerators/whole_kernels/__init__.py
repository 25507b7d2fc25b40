"""Whole kernels: skip the search for unused inputs and outputs in kernels without any."""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import Does

ACCELERATOR: Final = Accelerator(
    title="kernels whose outputs are all read are not searched for unused parts",
    replaces="the function of local_useless_composite_outputs",
    skips="a `FunctionGraph` for each kernel, made to learn that all of its inputs are read",
    ground=(Does("pytensor.tensor.rewriting.elemwise:local_useless_composite_outputs.fn"),),
    gain=Gain(1.11, "deep(400)"),
)
