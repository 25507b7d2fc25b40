"""Checks of lengths at run time, in the place of ops that compared them.

``A * I`` raises an exception unless ``A`` is as large as ``I``; the diagonal of ``A`` does not.
Lengths that are not statically known to agree are compared when the graph runs.
"""

from __future__ import annotations

from typing import Any, Final

import pytensor.tensor as pt
from pytensor.graph.basic import Constant
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar.basic import Cast
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.subtensor import Subtensor

from pytensor_fuse._linalg.ops.cholesky_inverse import CholeskyInverse
from pytensor_fuse._linalg.ops.lu_inverse import LUInverse
from pytensor_fuse._linalg.structure.diagonal import is_identity, is_of_known_size
from pytensor_fuse._linalg.structure.matrices import (
    are_real_matrices,
    core_of,
    same,
    scalar_op,
    transpose_of,
)
from pytensor_fuse._linalg.structure.symmetry import Symmetry

_DIFFERENT: Final = "the lengths of matrices that belong together differ"

# The depth of sums and products of matrices that is searched.
_DEPTH: Final = 6

# They raise exceptions for matrices that are not square.
_SQUARE_ONLY: Final = (MatrixInverse, Cholesky, CholeskyInverse, LUInverse)


def diagonal_of_square(matrix: Any) -> Any:
    """Return the diagonal of a matrix, checked to be square."""
    diagonal: Any = pt.diagonal(matrix)
    return diagonal if _is_square(matrix) else if_equal(diagonal, *matrix.shape)


def diagonal_of_length(matrix: Any, rows: Any) -> Any:
    """Return the diagonal of a matrix, checked to be square with a number of rows."""
    diagonal: Any = pt.diagonal(matrix)
    is_known = isinstance(rows, Constant) and matrix.type.shape == 2 * (int(rows.data),)
    return diagonal if is_known else if_equal(diagonal, rows, *matrix.shape)


def of_length(matrix: Any, rows: Any) -> Any:
    """Return square matrices, checked to have a number of rows."""
    if is_length_of(rows, matrix):
        return matrix
    return if_equal(matrix, matrix.shape[-2], matrix.shape[-1], rows)


def with_rows_of(right: Any, matrix: Any, b_ndim: int) -> Any:
    """Return right-hand sides, checked to be as long as a matrix.

    A solve from packed factors permutes them and ignores further rows.
    """
    axis = right.type.ndim - b_ndim
    known = right.type.shape[axis]
    if known is not None and known in matrix.type.shape[-2:]:
        return right
    return if_equal(right, right.shape[axis], matrix.shape[-2])


def rows_of_length(variable: Any, length: Any) -> Any:
    """Return a vector or matrix, checked to have a number of rows."""
    if not isinstance(length, int):
        return if_equal(variable, variable.shape[0], length)
    if variable.type.shape[0] == length:
        return variable
    seen = if_equal(variable, variable.shape[0], length)
    # For the static shape of the results.
    return pt.specify_shape(seen, (length, *([None] * (variable.type.ndim - 1))))


def if_equal(variable: Any, first: Any, *others: Any) -> Any:
    """Return a variable, checked that some lengths are equal."""
    check: Any = CheckAndRaise(ValueError, _DIFFERENT)
    return check(variable, *(pt.eq(first, one) for one in others))


def _is_square(matrix: Any) -> bool:
    if is_of_known_size(matrix):
        return True
    if isinstance(core_of(matrix.owner), _SQUARE_ONLY) or Symmetry().of(matrix):
        return True
    inner = transpose_of(matrix)
    return inner is not None and _is_square(inner)


def is_length_of(rows: Any, matrix: Any) -> bool:
    """Whether a number is known to be the number of rows of square matrices."""
    known = matrix.type.shape[-2]
    if isinstance(rows, Constant):
        return known is not None and int(rows.data) == known
    if isinstance(core_of(matrix.owner), _SQUARE_ONLY) and is_length_of(
        rows, matrix.owner.inputs[0]
    ):
        return True
    if _is_length_by_form(rows, matrix, _DEPTH):
        return True
    while isinstance(scalar_op(rows), Cast):
        [rows] = rows.owner.inputs
    if rows.owner is None:
        return False
    op, inputs = rows.owner.op, rows.owner.inputs
    if isinstance(op, Shape_i):
        [whole] = inputs
        is_it = whole.type.ndim >= 2 and op.i >= whole.type.ndim - 2
    elif isinstance(op, Subtensor) and isinstance(core_of(inputs[0].owner), Shape):
        [whole] = inputs[0].owner.inputs
        is_it = whole.type.ndim == 2
    else:
        return False
    return is_it and same(whole, matrix)


def _is_length_by_form(rows: Any, matrix: Any, depth: int) -> bool:
    """Whether an identity with so many rows is among the terms and factors of matrices.

    The terms of inverted and factorized matrices count, too.
    """
    if is_identity(matrix):
        return same(matrix.owner.inputs[0], rows)
    if depth == 0:
        return False
    if isinstance(core_of(matrix.owner), _SQUARE_ONLY):
        return _is_length_by_form(rows, matrix.owner.inputs[0], depth - 1)
    # Operands with an axis of length 1 are broadcast.
    return scalar_op(matrix) is not None and any(
        _is_length_by_form(rows, one, depth - 1)
        for one in matrix.owner.inputs
        if are_real_matrices(one)
    )
