"""Underlying constants: most variables are recognized at once as not constant."""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import Does, Has

ACCELERATOR: Final = Accelerator(
    title="variables that cannot be constants are not searched for constants",
    replaces="the code of _get_underlying_scalar_constant_value",
    skips=(
        "three imports and a dozen instance checks for each variable in question whose node "
        "computes no constant; the import of `pytensor.sparse`, and so of `scipy.sparse`, for "
        "the class of one op"
    ),
    ground=(
        Does("pytensor.tensor.basic:_get_underlying_scalar_constant_value"),
        Has("pytensor.tensor.basic", "_scalar_constant_value_elemwise_ops"),
        Does("pytensor.tensor.variable:TensorConstant.unique_value.fget"),
    ),
    gain=Gain(1.04, "student-t(40)"),
)
