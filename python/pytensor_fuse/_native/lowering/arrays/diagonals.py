"""Extraction and filling of diagonals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.tensor.basic import ExtractDiag

from pytensor_fuse._native.lowering.registry import lower, refuses_dtypes
from pytensor_fuse._native.lowering.tensors import view

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Context, Index, Node, Tensors


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
