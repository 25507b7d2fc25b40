"""Elemwise, and scalar ops on scalars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.scalar.basic import ScalarOp
from pytensor.tensor.basic import TensorFromScalar
from pytensor.tensor.elemwise import DimShuffle, Elemwise

from pytensor_fuse._native.lowering.registry import dtype_refusal, lower
from pytensor_fuse._native.lowering.scalars.registry import scalar_refusal, scalar_values
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor, scalar, stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.types import Context, Index, Node, Tensors, Value, Variable


def _refuses(op: Any, node: Node) -> str | None:
    scalar_op = op.scalar_op if isinstance(op, Elemwise) else op
    return dtype_refusal(node) or scalar_refusal(scalar_op, node)


@lower.register(ScalarOp, refuses=_refuses)
def _scalar_op(op: ScalarOp, node: Node, context: Context, inputs: Tensors) -> Tensors:
    values = scalar_values(op, node, context.builder, [one.at(()) for one in inputs])
    return [scalar(context.builder, value) for value in values]


@lower.register(Elemwise, refuses=_refuses)
def _elemwise(op: Elemwise, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder = context.builder
    broadcasts = [one.type.broadcastable for one in node.inputs]
    arrays = [k for k, one in enumerate(node.inputs) if not _is_number(one)] or range(len(inputs))
    lengths = broadcast_lengths(
        context, [inputs[k] for k in arrays], [broadcasts[k] for k in arrays]
    )
    zero = builder.index(0)

    def elements(index: Index) -> list[Value]:
        args = [
            one.at(tuple([zero if is_one else at for at, is_one in zip(index, axes, strict=True)]))
            for one, axes in zip(inputs, broadcasts, strict=True)
        ]
        return scalar_values(op.scalar_op, node, builder, args)

    if not lengths:
        return [scalar(builder, value) for value in elements(())]
    buffers = []
    for number, out in enumerate(node.outputs):
        overwrites = op.inplace_pattern.get(number)
        into = None if overwrites is None else context.overwriting(inputs[overwrites])
        if into is None:
            into = context.temporary(DTYPES[out.type.dtype], lengths)
        buffers.append(into)

    def body(index: Index) -> None:
        for buffer, value in zip(buffers, elements(index), strict=True):
            builder.store(buffer, index, value)

    context.nest(lengths, body)
    return [stored(builder, buffer) for buffer in buffers]


def _is_number(variable: Variable) -> bool:
    """Whether Numba passes an operand of a kernel as a number, which its messages do not count."""
    node = variable.owner
    if node is not None and isinstance(node.op, DimShuffle):
        node = node.inputs[0].owner
    return node is not None and isinstance(node.op, TensorFromScalar) and not node.inputs[0].owner


def broadcast_lengths(
    context: Context,
    inputs: Sequence[Tensor],
    broadcasts: Sequence[tuple[bool, ...]],
    asked: Sequence[Value] | None = None,
) -> list[Value]:
    """Return the common lengths of broadcast operands, with checks where they must be equal.

    Parameters
    ----------
    context
        The lowering.
    inputs
        The operands, all with the same number of axes.
    broadcasts
        For each operand and axis, whether its only element is broadcast.
    asked
        The required lengths, if there are any.
    """
    builder = context.builder
    one = builder.index(1)
    lengths: list[Value] = []
    n_axes = len(asked) if asked is not None else inputs[0].ndim if inputs else 0
    for axis in range(n_axes):
        length: Value | None = None if asked is None else asked[axis]
        for number, (given, is_one) in enumerate(zip(inputs, broadcasts, strict=True)):
            if is_one[axis]:
                continue
            this = context.length(given.lengths[axis])
            if length is None or length == this:
                length = this
                continue
            builder.check(
                builder.op("or", builder.op("eq", length, this), builder.op("ne", this, one)),
                ValueError,
                f"Incompatible vectorized shapes for input {number} and axis {axis}. "
                f"Input {number} has shape 1, but is not statically "
                "known to have shape 1, and thus not broadcastable.",
            )
            length = context.require_equal(
                length,
                this,
                ValueError,
                f"Vectorized input {number} has an incompatible shape in axis {axis}.",
            )
        lengths.append(one if length is None else length)
    return lengths
