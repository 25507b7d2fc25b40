"""Inverses of matrices, from an LU factorization or a Cholesky factor.

`MatrixInverse` raises the same exceptions as Numba's inverse. Inverses from factors are NaN
instead, unless the op has the matrix itself as an operand, which is then inverted if its factors
are not finite.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from numpy.linalg import LinAlgError
from pytensor.tensor.linalg.inverse import MatrixInverse

from pytensor_fuse._linalg.ops.cholesky_inverse import CholeskyInverse
from pytensor_fuse._linalg.ops.lapack import NOT_SQUARE
from pytensor_fuse._linalg.ops.lu_inverse import WRONG_PIVOTS, LUInverse
from pytensor_fuse._linalg.ops.symmetric_lu import LEAST_ROWS_COMPILED
from pytensor_fuse._native.lowering.matrices import operands
from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.systems.lu_factors import lu_factors, pivots_from_one
from pytensor_fuse._native.lowering.systems.triangle_loops import mirror_triangle
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor_fuse._native.lowering.types import Context, Node, Operand, Tensors, Value


# Messages of Numba's inverse.
_NOT_SQUARE: Final = "Last 2 dimensions of the array must be square."
_NOT_FINITE: Final = "Array must not contain infs or NaNs."
_SINGULAR: Final = "Matrix is singular to machine precision."


@lower.register(MatrixInverse, refuses=operands.refuses_not_real)
def _matrix_inverse(op: MatrixInverse, node: Node, context: Context, inputs: Tensors) -> Tensors:
    return [_inverse(context, context.of_dtype(inputs[0], DTYPES[node.outputs[0].type.dtype]))]


def _inverse(context: Context, matrix: Tensor) -> Tensor:
    """Return the inverse of a matrix, with a check that it exists."""
    builder = context.builder
    rows, columns = matrix.lengths
    size = context.require_equal(rows, columns, LinAlgError, _NOT_SQUARE)
    matrix = Tensor(matrix.dtype, (size, size), matrix.at, layout=matrix.layout)
    builder.check(operands.all_finite(context, matrix), LinAlgError, _NOT_FINITE)
    factors = lu_factors(context, matrix)
    builder.check(operands.has_succeeded(context, factors.report), LinAlgError, _SINGULAR)
    _invert(context, factors.columns, factors.pivots, size)
    return operands.transposed(context.held(factors.columns))


def _invert(context: Context, columns: Operand, pivots: Operand, size: Value) -> Value:
    """Replace LU factors by the inverse of their product in place; return LAPACK's status."""
    builder = context.builder
    dtype = builder.program.buffers[columns.buffer].dtype
    length, room = operands.work(context, dtype, (operands.BLOCK, size))
    return builder.call(
        "getri", [*operands.sizes_of(context, [size]), length], [columns, pivots, room]
    )


def _finite_diagonal(context: Context, tensor: Tensor) -> Value:
    """Return a condition that is true if the diagonal of a square matrix is finite."""
    return context.all_hold(
        tensor.lengths[0], lambda at: operands.is_finite(context, tensor.at((at, at)))
    )


def _or_inverse_of(
    context: Context, matrix: Tensor, are_finite: Value, into: Operand, invert: Callable[[], None]
) -> None:
    """Invert the factors in ``into`` if they are finite, and the matrix itself otherwise."""
    context.branch(are_finite, invert, lambda: context.fill(into, _inverse(context, matrix).at))


@lower.register(CholeskyInverse, refuses=operands.refuses_not_real)
def _cholesky_inverse(
    op: CholeskyInverse, node: Node, context: Context, inputs: Tensors
) -> Tensors:
    factor, is_transposed = operands.as_it_lies(inputs[0])
    is_lower = op.lower != is_transposed
    size = _require_square(context, factor)
    factor = Tensor(factor.dtype, (size, size), factor.at, layout=factor.layout)
    # Computed before the factor is overwritten.
    are_finite = _finite_diagonal(context, factor) if op.checked else None
    inverse = operands.owned(context, factor, may_overwrite=op.overwrite_a)

    def invert() -> None:
        name = "potri_l" if is_lower else "potri_u"
        report = context.builder.call(name, operands.sizes_of(context, [size]), [inverse])
        context.branch(
            operands.has_succeeded(context, report),
            lambda: mirror_triangle(context, inverse, lower=is_lower),
            lambda: context.fill_with(inverse, math.nan),
        )

    if are_finite is None:
        invert()
        return [context.held(inverse)]
    # The array is symmetric, or holds the transpose of the inverse.
    matrix = operands.transposed(inputs[1]) if is_transposed else inputs[1]
    _or_inverse_of(context, matrix, are_finite, inverse, invert)
    held = context.held(inverse)
    return [operands.transposed(held) if is_transposed else held]


def _require_square(context: Context, factor: Tensor) -> Value:
    rows, columns = factor.lengths
    return context.require_equal(rows, columns, LinAlgError, NOT_SQUARE)


def _lu_refuses(op: LUInverse, node: Node) -> str | None:
    # For long axes, the op computes half of the inverse by blocks, for which there is no routine.
    length = node.inputs[0].type.shape[0]
    if op.symmetric and (length is None or length >= LEAST_ROWS_COMPILED):
        return "the symmetric inverse of a matrix that may be large"
    return operands.real_refusal(node)


@lower.register(LUInverse, refuses=_lu_refuses)
def _lu_inverse(op: LUInverse, node: Node, context: Context, inputs: Tensors) -> Tensors:
    packed, given_pivots = inputs[:2]
    size = _require_square(context, packed)
    packed = Tensor(packed.dtype, (size, size), packed.at, layout=packed.layout)
    context.require_equal(given_pivots.lengths[0], size, ValueError, WRONG_PIVOTS)
    pivots = pivots_from_one(context, given_pivots, size, WRONG_PIVOTS)
    are_finite = operands.all_finite(context, packed) if op.checked else None
    columns = operands.owned(context, operands.transposed(packed), may_overwrite=op.overwrite_a)

    def invert() -> None:
        report = _invert(context, columns, pivots, size)
        context.fill_unless(operands.has_succeeded(context, report), columns)

    if are_finite is None:
        invert()
    else:
        # The array holds the transpose.
        _or_inverse_of(context, operands.transposed(inputs[2]), are_finite, columns, invert)
    return [operands.transposed(context.held(columns))]
