"""LU factorization with partial pivoting, shared by many rules.

Pivots are zero-based rows in PyTensor and SciPy, and one-based rows in LAPACK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytensor_fuse._native.lowering.matrices.operands import (
    owned,
    require_square,
    sizes_of,
    transposed,
)
from pytensor_fuse._native.lowering.tensors import Tensor
from pytensor_fuse._native.program.model import Operand

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Context, Value


class LUFactors(NamedTuple):
    """LU factors of a square matrix.

    Attributes
    ----------
    size
        The length of its axes.
    columns
        The factors in column-major order, as for LAPACK: the buffer is the transpose of the matrix
        that holds the upper factor, and below it the lower one, whose unit diagonal is implicit.
        Routines may overwrite it.
    pivots
        The row with which each row was swapped, one-based, as 32-bit integers.
    report
        LAPACK's status, an ``i64`` value: 0, or the one-based number of the first zero pivot.
    """

    size: Value
    columns: Operand
    pivots: Operand
    report: Value


def lu_factors(context: Context, matrix: Tensor, *, may_overwrite: bool = False) -> LUFactors:
    """Return the LU factors of a matrix of floats, with a check that it is square.

    Parameters
    ----------
    context
        The lowering.
    matrix
        The matrix.
    may_overwrite
        Whether the op may overwrite the matrix.
    """
    size = require_square(context, matrix)
    square = Tensor(matrix.dtype, (size, size), matrix.at, layout=matrix.layout)
    columns = owned(context, transposed(square), may_overwrite=may_overwrite)
    pivots = context.array("i32", [size], is_once=False)
    report = context.builder.call("getrf", sizes_of(context, [size]), [columns, pivots])
    return LUFactors(size, columns, pivots, report)


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

    def is_row(at: Value) -> Value:
        pivot = builder.cast(pivots.at((at,)), "i64")
        builder.store(array, (at,), builder.op("add", builder.cast(pivot, "i32"), one))
        return builder.op("and", builder.op("ge", pivot, zero), builder.op("lt", pivot, size))

    # LAPACK would write out of bounds otherwise.
    builder.check(context.all_hold(size, is_row), ValueError, message)
    return Operand(array)
