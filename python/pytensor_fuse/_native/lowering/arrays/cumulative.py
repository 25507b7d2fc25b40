"""CumOp: cumulative sums and products along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pytensor.tensor.extra_ops import CumOp

from pytensor_fuse._native.lowering.registry import dtype_refusal, lower
from pytensor_fuse._native.lowering.tensors import stored

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Context, Index, Node, Tensors, Value


def _refuses(op: CumOp, node: Node) -> str | None:
    dtype = np.dtype(node.inputs[0].type.dtype)
    if dtype.kind in "biu" and dtype.itemsize < 8:
        # NumPy and Numba accumulate in 64 bits, whatever the dtype of the output.
        return f"cumulative sums of {dtype}"
    if op.axis is None:
        return "a cumulative sum without an axis"
    return dtype_refusal(node)


@lower.register(CumOp, refuses=_refuses)
def _cumulative(op: CumOp, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder, [given] = context.builder, inputs
    axis = op.axis % given.ndim
    combiner, first = ("add", 0) if op.mode == "add" else ("mul", 1)
    buffer = context.temporary(given.dtype, given.lengths)
    length = context.length(given.lengths[axis])
    others = [length for place, length in enumerate(given.lengths) if place != axis]

    def along(place: Index) -> None:
        def step(total: Value | None, at: Value) -> Value:
            index = (*place[:axis], at, *place[axis:])
            element = given.at(index)
            total = element if total is None else builder.op(combiner, total, element)
            builder.store(buffer, index, total)
            return total

        if context.is_short(length):
            so_far: Value | None = None
            for number in range(int(builder.number(length) or 0)):
                so_far = step(so_far, builder.index(number))
            return
        with builder.loop(length) as loop:
            total = builder.carried(given.dtype)
            # A sum that starts from -0.0 preserves it, as NumPy does.
            is_float_sum = combiner == "add" and given.dtype[0] == "f"
            initial = builder.constant(given.dtype, -0.0 if is_float_sum else first)
            builder.carry(loop, total, initial, step(total, loop.index))

    context.nest(others, along)
    return [stored(builder, buffer)]
