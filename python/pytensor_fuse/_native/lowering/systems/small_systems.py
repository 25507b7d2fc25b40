"""Small linear systems, fully unrolled: Gaussian elimination with partial pivoting.

As in `small_triangles`, a call of LAPACK would take longer than the work. There are no branches:
rows are swapped by selections, so that a loop over a batch of systems can be vectorized.

As in LAPACK, the pivot of a column is its largest element below the finished rows, the first of
several. Comparisons with one row after the other move the larger element up each time. The rows
below may then be in another order than LAPACK's, which only affects the choice between equal
elements in later columns.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytensor_fuse._native.lowering.systems.small_triangles import of_rows

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.annotations import Context, Tensor, Value


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
