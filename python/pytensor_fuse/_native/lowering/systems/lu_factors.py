"""LU factors with partial pivoting, which many rules start from."""

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
    from pytensor_fuse._native.lowering.context import Context
    from pytensor_fuse._native.program.model import Operand, Value


class LUFactors(NamedTuple):
    """LU factors of a square matrix.

    Attributes
    ----------
    size
        The length of its axes.
    columns
        The factors by columns, as LAPACK has them: the transpose of the matrix that holds the lower
        factor, whose diagonal is all ones, below the upper one. Routines may change it.
    pivots
        The row that each row was swapped with, counted from 1, as 32-bit integers.
    report
        What LAPACK reports, an ``i64`` value: 0, or the number of the first pivot that is zero,
        counted from 1.
    """

    size: Value
    columns: Operand
    pivots: Operand
    report: Value


def lu_factors(context: Context, matrix: Tensor, *, may_overwrite: bool = False) -> LUFactors:
    """Return the LU factors of a matrix of floats; let the call fail unless it is square.

    Parameters
    ----------
    context
        The lowering.
    matrix
        The matrix.
    may_overwrite
        Whether the op may overwrite it.
    """
    size = require_square(context, matrix)
    square = Tensor(matrix.dtype, (size, size), matrix.at, layout=matrix.layout)
    columns = owned(context, transposed(square), may_overwrite=may_overwrite)
    pivots = context.array("i32", [size], is_once=False)
    report = context.builder.call("getrf", sizes_of(context, [size]), [columns, pivots])
    return LUFactors(size, columns, pivots, report)
