"""Block diagonal matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.tensor.linalg.constructors import BlockDiagonal

from pytensor_fuse._native.lowering.registry import lower, refuses_dtypes
from pytensor_fuse._native.lowering.tensors import DTYPES

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Context, Index, Node, Tensor, Tensors, Value


@lower.register(BlockDiagonal, refuses=refuses_dtypes)
def _block_diagonal(op: BlockDiagonal, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder, dtype = context.builder, DTYPES[node.outputs[0].type.dtype]
    zero = builder.constant(dtype, 0)
    shapes = [[context.length(length) for length in one.lengths] for one in inputs]
    starts = [(builder.index(0), builder.index(0))]
    for shape in shapes:
        ends = [builder.op("add", *pair) for pair in zip(starts[-1], shape, strict=True)]
        starts.append((ends[0], ends[1]))
    size = starts.pop()
    array = context.array(dtype, size)
    buffer, prefix = array
    for given, (rows, columns), (row, column) in zip(inputs, shapes, starts, strict=True):
        after = builder.op("add", column, columns)
        parts: list[tuple[Value, Value, Tensor | None]] = [
            (builder.index(0), column, None),
            (column, columns, given),
            (after, builder.op("sub", size[1], after), None),
        ]
        for start, n_columns, part in parts:

            def store(
                index: Index, row: Value = row, start: Value = start, part: Tensor | None = part
            ) -> None:
                place = builder.op("add", index[0], row), builder.op("add", index[1], start)
                value = zero if part is None else builder.cast(part.at(index), dtype)
                builder.store(buffer, prefix + place, value)

            context.nest((rows, n_columns), store)
    return [context.held(array)]
