"""Small Cholesky factors, triangular and general systems, fully unrolled.

A call of LAPACK takes longer than the work on a matrix of two or three rows. If the work is
unrolled, a loop over a batch of matrices has no inner loops and can be vectorized, with a different
matrix in each lane.

General systems are solved by Gaussian elimination with partial pivoting. There are no branches:
rows are swapped by selections. As in LAPACK, the pivot of a column is its largest element below the
finished rows, the first of several. Comparisons with one row after the other move the larger
element up each time. The rows below may then be in another order than LAPACK's, which only affects
the choice between equal elements in later columns.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from pytensor_fuse._native.lowering.matrices.operands import transposed
from pytensor_fuse._native.lowering.tensors import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.types import Context, Value

# The largest numbers of rows and right-hand sides for unrolling.
_MOST_ROWS: Final = 4
_MOST_COLUMNS: Final = 4


def is_small(context: Context, size: Value, right: Sequence[Value] = ()) -> bool:
    """Whether a matrix and its right-hand sides are small enough for unrolling.

    Parameters
    ----------
    context
        The lowering.
    size
        The number of rows.
    right
        The lengths of the right-hand sides, that of the rows first.
    """
    number = context.builder.number(size)
    if number is None or not 0 < number <= _MOST_ROWS:
        return False
    columns = [context.builder.number(length) for length in right[1:]]
    return all(one is not None and 0 < one <= _MOST_COLUMNS for one in columns)


def small_factor(context: Context, matrix: Tensor, length: Value, *, lower: bool) -> Tensor:
    """Return the Cholesky factor of a small matrix; only one triangle is read.

    All of it is NaN if a pivot is not positive. As in OpenBLAS, a NaN pivot does not count: it only
    propagates to the elements that depend on it.

    Parameters
    ----------
    context
        The lowering.
    matrix
        The matrix.
    length
        The length of its axes.
    lower
        Whether to compute the lower factor, from the lower triangle.
    """
    builder, dtype = context.builder, matrix.dtype
    size = int(builder.number(length) or 0)
    zero, nan = builder.constant(dtype, 0.0), builder.constant(dtype, math.nan)
    is_failure = builder.constant("bool", False)
    factor: dict[tuple[int, int], Value] = {}
    for column in range(size):
        for row in range(column, size):
            place = (row, column) if lower else (column, row)
            left = matrix.at(tuple([builder.index(one) for one in place]))
            for before in range(column):
                term = builder.op("mul", factor[row, before], factor[column, before])
                left = builder.op("sub", left, term)
            if row == column:
                is_failure = builder.op("or", is_failure, builder.op("le", left, zero))
                factor[row, column] = builder.op("sqrt", left)
            else:
                factor[row, column] = builder.op("div", left, factor[column, column])
    rows = [
        [
            builder.op(
                "select", is_failure, nan, factor.get((one, other) if lower else (other, one), zero)
            )
            for other in range(size)
        ]
        for one in range(size)
    ]
    return of_rows(context, (length, length), rows, dtype)


def small_solution(
    context: Context, matrix: Tensor, right: Tensor, length: Value, *, lower: bool, unit: bool
) -> Tensor:
    """Return the solution of a small triangular system; NaN if the matrix is singular.

    Parameters
    ----------
    context
        The lowering.
    matrix, right
        The matrix, of which only one triangle is read, and the right-hand sides.
    length
        The number of their rows.
    lower
        Whether the lower triangle is read.
    unit
        Whether to assume a unit diagonal, whatever the matrix contains.
    """
    builder, dtype = context.builder, right.dtype
    size = int(builder.number(length) or 0)
    zero, nan = builder.constant(dtype, 0.0), builder.constant(dtype, math.nan)
    place = [builder.index(one) for one in range(size)]
    order = range(size) if lower else range(size)[::-1]
    is_singular = builder.constant("bool", False)
    if not unit:
        for row in place:
            is_zero = builder.op("eq", matrix.at((row, row)), zero)
            is_singular = builder.op("or", is_singular, is_zero)
    n_columns = int(builder.number(right.lengths[1]) or 0) if right.ndim == 2 else 1
    rows: list[list[Value]] = [[] for _ in range(size)]
    for column in range(n_columns):
        solved: dict[int, Value] = {}
        for row in order:
            left = right.at((place[row], builder.index(column))[: right.ndim])
            for before, value in solved.items():
                term = builder.op("mul", matrix.at((place[row], place[before])), value)
                left = builder.op("sub", left, term)
            pivot = matrix.at((place[row], place[row]))
            solved[row] = left if unit else builder.op("div", left, pivot)
        for row in range(size):
            rows[row].append(builder.op("select", is_singular, nan, solved[row]))
    return of_rows(context, (length, *right.lengths[1:]), rows, dtype)


def small_solution_by_factor(
    context: Context, factor: Tensor, right: Tensor, *, lower: bool
) -> Tensor:
    """Return the solution of a small system, given the lower or upper Cholesky factor."""
    length = right.lengths[0]
    for matrix in (factor, transposed(factor))[:: 1 if lower else -1]:
        is_lower = (matrix is factor) == lower
        right = small_solution(context, matrix, right, length, lower=is_lower, unit=False)
    return right


def of_rows(
    context: Context, lengths: Sequence[Value], rows: Sequence[Sequence[Value]], dtype: str
) -> Tensor:
    """Return a new matrix, or a vector with one element in each row."""
    builder = context.builder
    buffer, prefix = array = context.array(dtype, lengths)
    for row, values in enumerate(rows):
        for column, value in enumerate(values):
            index = (builder.index(row), builder.index(column))[: len(lengths)]
            builder.store(buffer, (*prefix, *index), value)
    return context.held(array)


def small_system(context: Context, matrix: Tensor, right: Tensor, length: Value) -> Tensor:
    """Return the solution of a small system; NaN if its matrix is singular.

    Parameters
    ----------
    context
        The lowering.
    matrix, right
        The matrix, and the right-hand sides: a vector, or the columns of a matrix.
    length
        The number of their rows.
    """
    builder, dtype = context.builder, right.dtype
    op = builder.op
    size = int(builder.number(length) or 0)
    n_right = int(builder.number(right.lengths[1]) or 0) if right.ndim == 2 else 1
    place = [builder.index(one) for one in range(max(size, n_right))]
    # The equations: each is a row of the matrix and of the right-hand sides.
    rows = [
        [matrix.at((place[row], place[column])) for column in range(size)]
        + [right.at((place[row], place[column])[: right.ndim]) for column in range(n_right)]
        for row in range(size)
    ]
    width = size + n_right
    is_singular = builder.constant("bool", False)
    for column in range(size):
        for row in range(column + 1, size):
            above, below = rows[column], rows[row]
            is_larger = op("gt", op("abs", below[column]), op("abs", above[column]))
            for k in range(column, width):
                one, other = above[k], below[k]
                above[k] = op("select", is_larger, other, one)
                below[k] = op("select", is_larger, one, other)
        pivot = rows[column][column]
        is_zero = op("eq", pivot, builder.constant(dtype, 0.0))
        is_singular = op("or", is_singular, is_zero)
        for row in range(column + 1, size):
            factor = op("div", rows[row][column], pivot)
            for k in range(column + 1, width):
                rows[row][k] = op("sub", rows[row][k], op("mul", factor, rows[column][k]))
    for row in range(size)[::-1]:
        for k in range(size, width):
            left = rows[row][k]
            for column in range(row + 1, size):
                left = op("sub", left, op("mul", rows[row][column], rows[column][k]))
            rows[row][k] = op("div", left, rows[row][row])
    nan = builder.constant(dtype, math.nan)
    solution = [[op("select", is_singular, nan, one) for one in row[size:]] for row in rows]
    return of_rows(context, (length, *right.lengths[1:]), solution, dtype)
