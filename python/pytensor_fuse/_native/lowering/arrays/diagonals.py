"""Extraction and filling of diagonals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytensor.tensor.basic import ExtractDiag
from pytensor.tensor.extra_ops import FillDiagonal, FillDiagonalOffset

from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.scalars.registry import refuses_dtypes
from pytensor_fuse._native.lowering.tensors import view

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor_fuse._native.lowering.annotations import (
        Context,
        Index,
        Node,
        Tensor,
        Tensors,
        Value,
    )


# NumPy's message.
_NOT_EQUAL: Final = "All dimensions of input must be of equal length"


@lower.register(ExtractDiag, refuses=refuses_dtypes)
def _extract_diag(op: ExtractDiag, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder, [given] = context.builder, inputs
    first, second = sorted((op.axis1, op.axis2))
    offset = op.offset if op.axis1 < op.axis2 else -op.offset
    down, right = builder.index(max(-offset, 0)), builder.index(max(offset, 0))

    def along(axis: int, skipped: int) -> int:
        length = context.length(given.lengths[axis])
        return builder.op("sub", length, skipped) if builder.number(skipped) else length

    length = along(first, down)
    if (other := along(second, right)) != length:
        length = builder.op("minimum", length, other)
    if offset:
        length = builder.op("maximum", length, builder.index(0))
    others = [axis for axis in range(given.ndim) if axis not in (first, second)]
    lengths = [*(given.lengths[axis] for axis in others), context.length(length)]

    def place(index: Index) -> Index:
        at = dict(zip(others, index, strict=False))
        at[first] = builder.op("add", index[-1], down)
        at[second] = builder.op("add", index[-1], right)
        return tuple([at[axis] for axis in range(given.ndim)])

    diagonal = view(given, lengths, place)
    if op.view:
        return [diagonal]
    return [context.materialized(given.dtype, lengths, diagonal.at)]


@lower.register(FillDiagonal, refuses=refuses_dtypes)
def _fill_diagonal(op: FillDiagonal, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder = context.builder
    given = inputs[0]
    first, *others = given.lengths
    if given.ndim > 2:
        for other in others:
            context.require_equal(first, other, ValueError, _NOT_EQUAL)

    def is_on(index: Index) -> Value:
        found = builder.constant("bool", True)
        for place in index[1:]:
            found = builder.op("and", found, builder.op("eq", place, index[0]))
        return found

    return [_filled(context, given, inputs[1], is_on)]


@lower.register(FillDiagonalOffset, refuses=refuses_dtypes)
def _fill_diagonal_offset(
    op: FillDiagonalOffset, node: Node, context: Context, inputs: Tensors
) -> Tensors:
    builder = context.builder
    offset = builder.cast(inputs[2].at(()), "i64")

    def is_on(index: Index) -> Value:
        row, column = index
        return builder.op("eq", builder.op("add", row, offset), column)

    return [_filled(context, inputs[0], inputs[1], is_on)]


def _filled(
    context: Context, given: Tensor, number: Tensor, is_on: Callable[[Index], Value]
) -> Tensor:
    """Return a copy of an array with a number stored in some positions."""
    builder = context.builder
    value = builder.cast(number.at(()), given.dtype)
    return context.materialized(
        given.dtype,
        given.lengths,
        lambda index: builder.op("select", is_on(index), value, given.at(index)),
    )
