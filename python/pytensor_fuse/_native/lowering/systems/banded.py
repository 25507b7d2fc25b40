"""Banded matrices: LU factorization and solution, for this package's own ops."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pytensor_fuse._linalg.ops.banded_lu import (
    WRONG_BAND,
    WRONG_FACTORS,
    WRONG_PIVOTS_OF_BAND,
    LUFactorBanded,
    SolveLUFactorBanded,
    rows_of_storage,
)
from pytensor_fuse._native.lowering.matrices import operands
from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.systems import right_sides
from pytensor_fuse._native.lowering.systems.lu_factors import pivots_from_one, pivots_from_zero
from pytensor_fuse._native.lowering.tensors import Tensor
from pytensor_fuse._native.program.model import Operand

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Context, Node, Tensors, Value


def _by_columns(context: Context, op: Any, band: Tensor) -> Tensor:
    """Return a band in column-major storage, with a check of its number of rows."""
    builder = context.builder
    rows = builder.index(rows_of_storage(op.below, op.above))
    context.require_equal(band.lengths[0], rows, ValueError, WRONG_BAND)
    size = context.length(band.lengths[1])
    return operands.transposed(Tensor(band.dtype, (rows, size), band.at, layout=band.layout))


def _sizes(context: Context, op: Any, columns: Tensor) -> list[Value]:
    builder = context.builder
    size, rows = columns.lengths
    return [
        *operands.sizes_of(context, [size]),
        builder.index(op.below),
        builder.index(op.above),
        rows,
    ]


@lower.register(LUFactorBanded, refuses=operands.refuses_not_real)
def _lu_factor_banded(op: LUFactorBanded, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder = context.builder
    band = _by_columns(context, op, inputs[0])
    size, rows = band.lengths
    factors = context.copy_of(band)
    pivots = context.array("i32", [size], is_once=False)
    sizes = _sizes(context, op, band)
    held = context.held(factors)

    def is_number(row: Value, column: Value) -> Value:
        element = held.at((row, column))
        return builder.op("eq", element, element)

    def factorize() -> None:
        builder.call("gbtrf", sizes, [factors, pivots])

    def fail() -> None:
        one = builder.constant("i32", 1)
        context.fill_with(factors, math.nan)
        context.fill(pivots, lambda at: builder.op("add", builder.cast(at[0], "i32"), one))

    are_numbers = context.all_hold(
        size, lambda row: context.all_hold(rows, lambda column: is_number(row, column))
    )
    context.branch(are_numbers, factorize, fail)
    return [operands.transposed(context.held(factors)), pivots_from_zero(context, pivots)]


@lower.register(SolveLUFactorBanded, refuses=operands.refuses_not_real)
def _solve_lu_factor_banded(
    op: SolveLUFactorBanded, node: Node, context: Context, inputs: Tensors
) -> Tensors:
    builder = context.builder
    band, right = _by_columns(context, op, inputs[0]), inputs[2]
    size = band.lengths[0]
    for one in inputs[1:]:
        context.require_equal(one.lengths[0], size, ValueError, WRONG_FACTORS)
    pivots = pivots_from_one(context, inputs[1], size, WRONG_PIVOTS_OF_BAND)
    place = builder.index(op.below + op.above)
    zero = builder.constant(band.dtype, 0.0)
    # The comparison is false for NaN as well.
    is_regular = context.all_hold(
        size, lambda at: builder.op("gt", builder.op("abs", band.at((at, place))), zero)
    )
    right = Tensor(right.dtype, (size, *right.lengths[1:]), right.at, layout=right.layout)
    columns = right_sides.columns_of(context, right, may_overwrite=False)
    sizes = [
        *_sizes(context, op, band),
        *operands.sizes_of(context, [right_sides.n_columns(context, right)]),
    ]
    held, is_transposed = operands.in_memory(context, band)
    if is_transposed:
        held = Operand(context.copied(band))

    def solve() -> None:
        name = "gbtrs_t" if op.transposed else "gbtrs_n"
        builder.call(name, sizes, [columns, held, pivots])

    right_sides.solved_if(context, is_regular, columns, solve)
    return [right_sides.solution_of(context, columns)]
