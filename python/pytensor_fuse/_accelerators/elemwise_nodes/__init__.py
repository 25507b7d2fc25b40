"""Elemwise nodes: an op's output types are cached by its input types.

The DimShuffle ops that align inputs are cached, too: one for each order of the dimensions.
"""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import Does, does, keeps

ACCELERATOR: Final = Accelerator(
    title="the output types of an Elemwise are cached by its input types",
    replaces="Elemwise.make_node and dimshuffle of variables",
    skips=(
        "a node of scalars, made to learn a dtype; lengths of the result computed again; a "
        "new DimShuffle op for each variable whose dimensions are reordered. Equal ops share "
        "an entry, since gradients make theirs anew; kernels are known by their dtypes"
    ),
    ground=(
        *does("pytensor.tensor.elemwise:Elemwise", "make_node get_output_info make_scalar_node"),
        Does("pytensor.scalar.basic:ScalarOp.make_node"),
        *does("pytensor.scalar.basic:Composite", "make_node output_types"),
        Does("pytensor.tensor.variable:_tensor_py_operators.dimshuffle"),
        *keeps("pytensor.tensor.elemwise:DimShuffle", "input_ndim new_order"),
        Does("pytensor.scalar.basic:upcast"),
    ),
    gain=Gain(1.12, "student-t(40)"),
)
