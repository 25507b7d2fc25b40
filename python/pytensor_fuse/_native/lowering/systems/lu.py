"""LU factorizations as ops, and permutations from pivots.

For a singular matrix, LU returns factors and LUFactor returns NaN, as in PyTensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytensor.tensor.linalg.decomposition.lu import LU, LUFactor, PivotToPermutations

from pytensor_fuse._native.lowering.matrices import operands
from pytensor_fuse._native.lowering.registry import lower, refuses_dtypes
from pytensor_fuse._native.lowering.systems.lu_factors import lu_factors, pivots_from_zero
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Context, Index, Node, Tensors, Value


_NO_PIVOT: Final = "pivot {0} is out of bounds for {1} rows"


def _refuses_factor(op: LUFactor, node: Node) -> str | None:
    # PyTensor declares integer factors for integer matrices.
    dtype = node.outputs[0].type.dtype
    return operands.real_refusal(node) if dtype.startswith("float") else f"factors of {dtype}"


@lower.register(LUFactor, refuses=_refuses_factor)
def _lu_factor(op: LUFactor, node: Node, context: Context, inputs: Tensors) -> Tensors:
    dtype = DTYPES[node.outputs[0].type.dtype]
    factors = lu_factors(context, context.of_dtype(inputs[0], dtype))
    context.fill_unless(operands.has_succeeded(context, factors.report), factors.columns)
    pivots = pivots_from_zero(context, factors.pivots)
    return [
        operands.transposed(context.held(factors.columns)),
        context.held(context.copy_of(pivots)),
    ]


@lower.register(LU, refuses=operands.refuses_not_real)
def _lu(op: LU, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder, dtype = context.builder, DTYPES[node.outputs[-1].type.dtype]
    factors = lu_factors(context, context.of_dtype(inputs[0], dtype))
    both = operands.transposed(context.held(factors.columns))
    zero, one = builder.constant(dtype, 0.0), builder.constant(dtype, 1.0)

    def of_lower(index: Index) -> Value:
        row, column = index
        above = builder.op("select", builder.op("eq", row, column), one, zero)
        return builder.op("select", builder.op("gt", row, column), both.at(index), above)

    def of_upper(index: Index) -> Value:
        return builder.op("select", builder.op("le", *index), both.at(index), zero)

    low = Tensor(dtype, both.lengths, of_lower)
    high = context.held(context.copy_of(Tensor(dtype, both.lengths, of_upper)))
    rows = inverse_of(context, order_of(context, pivots_from_zero(context, factors.pivots)))
    if op.permute_l:
        moved = Tensor(dtype, both.lengths, lambda at: of_lower((rows.at(at[:1]), at[1])))
        return [context.held(context.copy_of(moved)), high]
    low = context.held(context.copy_of(low))
    if op.p_indices:
        return [context.held(context.copy_of(context.of_dtype(rows, "i32"))), low, high]

    def of_permutation(index: Index) -> Value:
        is_there = builder.op("eq", rows.at(index[:1]), index[1])
        return builder.op("select", is_there, one, zero)

    permutation = context.copy_of(Tensor(dtype, both.lengths, of_permutation))
    return [context.held(permutation), low, high]


@lower.register(PivotToPermutations, refuses=refuses_dtypes)
def _pivot_to_permutations(
    op: PivotToPermutations, node: Node, context: Context, inputs: Tensors
) -> Tensors:
    builder, [given] = context.builder, inputs
    size = context.length(given.lengths[0])
    zero = builder.index(0)

    def at(index: Index) -> Value:
        pivot = builder.cast(given.at(index), "i64")
        is_negative = builder.op("lt", pivot, zero)
        return builder.op("select", is_negative, builder.op("add", pivot, size), pivot)

    with builder.loop(size) as loop:
        pivot = at((loop.index,))
        is_row = builder.op("ge", pivot, zero)
        is_row = builder.op("and", is_row, builder.op("lt", pivot, size))
        builder.check(is_row, IndexError, _NO_PIVOT, pivot, size)
    order = order_of(context, Tensor("i64", [size], at))
    return [order if op.inverse else inverse_of(context, order)]


def order_of(context: Context, pivots: Tensor) -> Tensor:
    """Return the permutation that results from swapping each row in turn with its pivot."""
    builder = context.builder
    size = context.length(pivots.lengths[0])
    order = context.array("i64", [size], is_once=False)
    context.fill(order, lambda index: index[0])
    buffer, prefix = order
    with builder.loop(size) as loop, builder.guarding():
        here = (*prefix, loop.index)
        there = (*prefix, builder.cast(pivots.at((loop.index,)), "i64"))
        one, other = builder.load(buffer, here), builder.load(buffer, there)
        builder.store(buffer, here, other)
        builder.store(buffer, there, one, is_guarded=True)
    return context.held(order)


def inverse_of(context: Context, order: Tensor) -> Tensor:
    """Return the inverse of a permutation."""
    builder = context.builder
    size = context.length(order.lengths[0])
    inverse = context.array("i64", [size], is_once=False)
    buffer, prefix = inverse
    # All rows are different, so each element is written.
    with builder.loop(size) as loop:
        place = (*prefix, order.at((loop.index,)))
        builder.store(buffer, place, loop.index, is_guarded=True)
    return context.held(inverse)
