"""The package's own ops, which write streams into their slots of a join.

Since passes keep values in registers and store them directly to their destinations, the memory that
these ops share is not used here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor_fuse._joins.ops.fill import WriteFill
from pytensor_fuse._joins.ops.join import WriteJoin
from pytensor_fuse._joins.ops.layout import NEGATIVE_LENGTH, SHAPE_MISMATCH, SLOT_MISMATCH
from pytensor_fuse._joins.ops.split import WriteSplit
from pytensor_fuse._native.lowering.arrays.creation import is_length
from pytensor_fuse._native.lowering.arrays.joins import joined
from pytensor_fuse._native.lowering.registry import dtypes_refusal, lower
from pytensor_fuse._native.lowering.reshaping import raveled
from pytensor_fuse._native.lowering.tensors import DTYPES, NOTHING, Tensor

if TYPE_CHECKING:
    from pytensor_fuse._joins.ops.layout import Length, Slot
    from pytensor_fuse._native.lowering.types import Context, Node, Tensors, Value


def _write_refusal(op: Any, node: Node) -> str | None:
    variables = (*node.inputs, *node.outputs)
    return dtypes_refusal([one for one in variables if hasattr(one.type, "dtype")])


@lower.register(WriteSplit, refuses=_write_refusal)
def _write_split(op: WriteSplit, node: Node, context: Context, inputs: Tensors) -> Tensors:
    """Check the lengths of the streams, and return parts with arbitrary contents."""
    builder, layout = context.builder, op.layout
    zero = builder.index(0)

    def value_of(length: Length[int]) -> Value:
        if length.source is None:
            return builder.index(length.static or 0)
        if length.dim is not None:
            return context.length(inputs[length.source].lengths[length.dim])
        value = builder.cast(inputs[length.source].at(()), "i64")
        if not is_length(builder, value):
            builder.check(builder.op("ge", value, zero), ValueError, NEGATIVE_LENGTH)
        return value

    shapes = [[value_of(length) for length in shape] for shape in layout.shapes]
    if layout.ndim > 1:
        for shape in shapes[1:]:
            for axis, length in enumerate(shape):
                if axis != layout.axis:
                    shape[axis] = context.require_equal(
                        length, shapes[0][axis], ValueError, SHAPE_MISMATCH
                    )
    if layout.total is not None:
        total = value_of(layout.total)
        for shape, slot in zip(shapes, layout.slots, strict=True):
            length = context.size(shape) if layout.ndim == 1 else shape[layout.axis]
            if slot is not None:
                context.require_equal(
                    length, _slot_length(context, slot, total), ValueError, SLOT_MISMATCH
                )
    dtype = DTYPES[layout.dtype]
    unwritten = builder.constant(dtype, 0)
    parts = [
        [zero],
        *(shape for shape, is_written in zip(shapes, layout.written, strict=True) if is_written),
    ]
    return [Tensor(dtype, lengths, lambda _: unwritten) for lengths in parts]


def _slot_length(context: Context, slot: Slot, total: Value) -> Value:
    """Return the length of a slice of an axis with a given length."""
    builder = context.builder
    start = builder.op("minimum", total, builder.index(slot.start))
    if slot.stop is None:
        return builder.op("sub", total, start)
    return builder.op("sub", builder.op("minimum", total, builder.index(slot.stop)), start)


@lower.register(WriteFill, refuses=_write_refusal)
def _write_fill(op: WriteFill, node: Node, context: Context, inputs: Tensors) -> Tensors:
    number, part = inputs
    value = context.builder.cast(number.at(()), part.dtype)
    return [Tensor(part.dtype, part.lengths, lambda _: value)]


@lower.register(WriteJoin, refuses=_write_refusal)
def _write_join(op: WriteJoin, node: Node, context: Context, inputs: Tensors) -> Tensors:
    _, *streams = inputs
    if op.ndim == 1:
        streams = [raveled(context, stream) for stream in streams]
    whole = joined(context, DTYPES[op.dtype], streams, op.axis, SHAPE_MISMATCH)
    return [whole, *[NOTHING] * (len(node.outputs) - 1)]
