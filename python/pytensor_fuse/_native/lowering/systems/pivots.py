"""Pivots: zero-based rows in PyTensor and SciPy, one-based rows in LAPACK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._native.lowering.tensors import Tensor
from pytensor_fuse._native.program.model import Operand

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.annotations import Context, Value


def pivots_from_zero(context: Context, pivots: Operand) -> Tensor:
    """Return LAPACK's pivots as zero-based ones."""
    builder, held = context.builder, context.held(pivots)
    one = builder.constant("i32", 1)
    return Tensor("i32", held.lengths, lambda index: builder.op("sub", held.at(index), one))


def pivots_from_one(context: Context, pivots: Tensor, size: Value, message: str) -> Operand:
    """Return pivots as one-based ones for LAPACK, with a check that they are rows of a matrix."""
    builder = context.builder
    zero, one = builder.index(0), builder.constant("i32", 1)
    array = context.temporary("i32", (size,))
    with builder.loop(size) as loop:
        pivot = builder.cast(pivots.at((loop.index,)), "i64")
        is_row = builder.op("and", builder.op("ge", pivot, zero), builder.op("lt", pivot, size))
        are_rows = builder.reduce(loop, "and", builder.constant("bool", True), is_row)
        builder.store(array, (loop.index,), builder.op("add", builder.cast(pivot, "i32"), one))
    # LAPACK would write out of bounds otherwise.
    builder.check(are_rows, ValueError, message)
    return Operand(array)
