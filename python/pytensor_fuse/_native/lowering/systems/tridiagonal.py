"""Tridiagonal matrices: LU factorization with partial pivoting, and solution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pytensor.tensor.linalg.solvers.tridiagonal import LUFactorTridiagonal, SolveLUFactorTridiagonal

from pytensor_fuse._native.lowering.matrices import operands
from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.systems.right_sides import (
    columns_of,
    n_columns,
    solution_of,
    solved_if,
)
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor
from pytensor_fuse._native.program.model import Operand

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Context, Index, Node, Tensors, Value


_WRONG_DIAGONALS: Final = (
    "the diagonals next to the main one of {0} elements must have one element less, not {1}"
)
_WRONG_FACTORS: Final = "the factors of a tridiagonal matrix and the right-hand side do not fit"
_WRONG_PIVOTS: Final = "the pivots are not those of a tridiagonal matrix"


class _Factors(NamedTuple):
    """The LU factors of a tridiagonal matrix, in LAPACK's form.

    Attributes
    ----------
    lower, main, upper, second
        The multipliers of the elimination, and the three diagonals of the upper factor.
    pivots
        The row with which each row was swapped, one-based.
    """

    lower: Operand
    main: Operand
    upper: Operand
    second: Operand
    pivots: Operand


def _less(context: Context, size: Value, number: int) -> Value:
    builder = context.builder
    less = builder.op("sub", size, builder.index(number))
    return context.length(builder.op("maximum", less, builder.index(0)))


def _sizes(context: Context, size: Value) -> list[Value]:
    return operands.sizes_of(context, [size, _less(context, size, 1), _less(context, size, 2)])


def _factorize(
    context: Context, lower: Operand, main: Operand, upper: Operand, size: Value
) -> tuple[_Factors, Value]:
    """Factorize a matrix in place, and return the factors with LAPACK's status."""
    dtype = context.builder.program.buffers[main.buffer].dtype
    second = context.array(dtype, [_less(context, size, 2)])
    pivots = context.array("i32", [size])
    factors = _Factors(lower, main, upper, second, pivots)
    return factors, context.builder.call("gttrf", _sizes(context, size), factors)


def solve_tridiagonal(context: Context, matrix: Tensor, columns: Operand, n_columns: Value) -> None:
    """Solve with a tridiagonal matrix in place; the columns become NaN if it is singular."""
    builder, size = context.builder, matrix.lengths[0]
    less, one = _less(context, size, 1), builder.index(1)

    def diagonal(length: Value, down: bool, right: bool) -> Operand:
        def at(index: Index) -> Value:
            [place] = index
            after = builder.op("add", place, one)
            return matrix.at((after if down else place, after if right else place))

        return context.copy_of(Tensor(matrix.dtype, (length,), at))

    factors, report = _factorize(
        context,
        diagonal(less, True, False),
        diagonal(size, False, False),
        diagonal(less, False, True),
        size,
    )
    sizes = [*_sizes(context, size), n_columns]

    def solve() -> None:
        builder.call("gttrs_n", sizes, [columns, *factors])

    solved_if(context, operands.has_succeeded(context, report), columns, solve)


@lower.register(LUFactorTridiagonal, refuses=operands.refuses_not_real)
def _lu_factor(op: LUFactorTridiagonal, node: Node, context: Context, inputs: Tensors) -> Tensors:
    dtype = DTYPES[node.outputs[0].type.dtype]
    given = [context.of_dtype(one, dtype) for one in inputs]
    size = context.length(given[1].lengths[0])
    less = _less(context, size, 1)
    overwrites = op.overwrite_dl, op.overwrite_d, op.overwrite_du
    arrays = []
    for one, length, may_overwrite in zip(given, (less, size, less), overwrites, strict=True):
        _require_length(context, one, length, size)
        array = Tensor(dtype, (length,), one.at, layout=one.layout)
        arrays.append(operands.owned(context, array, may_overwrite=may_overwrite))
    # A singular matrix has a zero on the diagonal of its factor, so the status is redundant.
    factors, _ = _factorize(context, arrays[0], arrays[1], arrays[2], size)
    return [context.held(one) for one in factors]


def _require_length(context: Context, diagonal: Tensor, length: Value, size: Value) -> None:
    builder, own = context.builder, context.length(diagonal.lengths[0])
    builder.check(builder.op("eq", own, length), ValueError, _WRONG_DIAGONALS, size, own)


@lower.register(SolveLUFactorTridiagonal, refuses=operands.refuses_not_real)
def _solve_factorized(
    op: SolveLUFactorTridiagonal, node: Node, context: Context, inputs: Tensors
) -> Tensors:
    builder, dtype = context.builder, DTYPES[node.outputs[0].type.dtype]
    *diagonals, pivots, right = inputs
    size = context.length(inputs[1].lengths[0])
    sizes = _sizes(context, size)
    for one, length in zip(
        (*inputs[:5], right), (sizes[1], size, *sizes[1:], size, size), strict=True
    ):
        fits = builder.op("eq", context.length(one.lengths[0]), length)
        builder.check(fits, ValueError, _WRONG_FACTORS)
    swapped = context.of_dtype(pivots, "i32")
    _require_pivots(context, swapped, size)
    held = [
        operands.in_memory(context, one)[0]
        for one in (*[context.of_dtype(one, dtype) for one in diagonals], swapped)
    ]
    right = context.of_dtype(right, dtype)
    right = Tensor(dtype, (size, *right.lengths[1:]), right.at, layout=right.layout)
    columns = columns_of(context, right, may_overwrite=op.overwrite_b)
    name = "gttrs_t" if op.transposed else "gttrs_n"
    # The status only reports invalid arguments.
    builder.call(name, [*sizes, n_columns(context, right)], [columns, *held])
    return [solution_of(context, columns)]


def _require_pivots(context: Context, pivots: Tensor, size: Value) -> None:
    """Check that each row is swapped with itself or the next one, or that there are no rows.

    LAPACK would access memory out of bounds otherwise.
    """
    builder, one = context.builder, context.builder.index(1)

    def is_pivot(at: Value) -> Value:
        pivot = builder.cast(pivots.at((at,)), "i64")
        own = builder.op("add", at, one)
        after = builder.op("minimum", builder.op("add", own, one), size)
        return builder.op("or", builder.op("eq", pivot, own), builder.op("eq", pivot, after))

    builder.check(context.all_hold(size, is_pivot), ValueError, _WRONG_PIVOTS)
