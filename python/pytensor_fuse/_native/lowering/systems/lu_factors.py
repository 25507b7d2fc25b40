"""LU factorization with partial pivoting, shared by many rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytensor_fuse._native.lowering.matrices.operands import (
    owned,
    require_square,
    sizes_of,
    transposed,
)
from pytensor_fuse._native.lowering.tensors import Tensor

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.annotations import Context, Operand, Value


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
