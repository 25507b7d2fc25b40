"""Join and Split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytensor.tensor.basic import Join, Split

from pytensor_fuse._native.lowering.arrays.creation import is_length
from pytensor_fuse._native.lowering.registry import dtype_refusal, lower
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor, stored, view
from pytensor_fuse._pytensor.ops.versions_of_ops import join_operands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.types import BufferId, Context, Index, Node, Tensors, Value


# Messages of PyTensor's Numba implementations; those of 3.0 call NumPy's function in Numba.
_MISMATCH: Final = (
    "all the input array dimensions except for the concatenation axis must match exactly"
    if "axis" in Join.__props__
    else "np.concatenate(): input sizes over dimension {axis} do not match"
)
_WRONG_NUMBER: Final = "Length of splits is not equal to n_splits"
_TOO_LONG: Final = "joined arrays have more elements than any memory"
_NEGATIVE_SIZE: Final = "Split sizes cannot be negative"
_WRONG_SUM: Final = "Split sizes sum to {0}; expected {1}"


# Joins


def _join_refusal(op: Join, node: Node) -> str | None:
    axis, _ = join_operands(node)
    return "a join along an axis that is computed" if axis is None else dtype_refusal(node)


@lower.register(Join, refuses=_join_refusal)
def _join(op: Join, node: Node, context: Context, inputs: Tensors) -> Tensors:
    axis, operands = join_operands(node)
    assert axis is not None
    parts = inputs[-len(operands) :]
    dtype = DTYPES[node.outputs[0].type.dtype]
    return [joined(context, dtype, parts, axis, _MISMATCH)]


def joined(
    context: Context, dtype: str, parts: Sequence[Tensor], axis: int, mismatch: str
) -> Tensor:
    """Return the concatenation of arrays along an axis.

    Each part is stored by a loop nest of its own, with which the nest of its producer may fuse.

    Parameters
    ----------
    context
        The lowering.
    dtype
        The dtype of the result.
    parts
        The operands, all with the same number of axes.
    axis
        The axis of the concatenation.
    mismatch
        The message of the exception for parts whose lengths differ along another ``{axis}``.
    """
    builder = context.builder
    lengths = [context.length(length) for length in parts[0].lengths]
    for part in parts[1:]:
        for other, length in enumerate(part.lengths):
            if other != axis:
                lengths[other] = context.require_equal(
                    length, lengths[other], ValueError, mismatch.replace("{axis}", str(other))
                )
    starts, conditions = _places(context, [context.length(part.lengths[axis]) for part in parts])
    for condition in conditions:
        builder.check(condition, MemoryError, _TOO_LONG)
    lengths[axis] = starts.pop()
    buffer = context.temporary(dtype, lengths)
    for start, part in zip(starts, parts, strict=True):
        _store_part(context, buffer, part, axis, start)
    return stored(builder, buffer)


def _places(context: Context, lengths: Sequence[Value]) -> tuple[list[Value], list[Value]]:
    """Return the starts of the parts, the end of the last, and conditions against overflow."""
    builder = context.builder
    places = [builder.index(0)]
    conditions = []
    for length in lengths:
        place = builder.op("add", places[-1], length)
        if place != length:
            # A sum that wraps around is less than either addend.
            conditions.append(builder.op("ge", place, length))
        places.append(place)
    return places, conditions


def _store_part(context: Context, buffer: BufferId, part: Tensor, axis: int, start: Value) -> None:
    builder = context.builder
    dtype = builder.program.buffers[buffer].dtype

    def store(index: Index) -> None:
        place = (*index[:axis], builder.op("add", index[axis], start), *index[axis + 1 :])
        builder.store(buffer, place, builder.cast(part.at(index), dtype))

    context.nest(part.lengths, store)


# Splits


def _split_axis(op: Split, node: Node) -> int | None:
    """Return the axis of a Split, or None if it is computed: an input in PyTensor 3.0."""
    axis = getattr(op, "axis", None)
    if axis is None:
        axis = getattr(node.inputs[1], "data", None)
    return None if axis is None else int(axis) % node.inputs[0].type.ndim


def _split_refusal(op: Split, node: Node) -> str | None:
    if _split_axis(op, node) is None:
        return "a split along an axis that is computed"
    if node.inputs[-1].type.shape[0] is None:
        return "a split into an unknown number of parts"
    return dtype_refusal(node)


@lower.register(Split, refuses=_split_refusal)
def _split(op: Split, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder = context.builder
    given, sizes = inputs[0], inputs[-1]
    axis = _split_axis(op, node)
    n_parts = op.len_splits
    assert axis is not None
    assert n_parts is not None
    context.require_equal(sizes.lengths[0], builder.index(n_parts), ValueError, _WRONG_NUMBER)
    zero = builder.index(0)
    lengths = []
    for number in range(n_parts):
        length = builder.cast(sizes.at((builder.index(number),)), "i64")
        if not is_length(builder, length):
            builder.check(builder.op("ge", length, zero), ValueError, _NEGATIVE_SIZE)
        lengths.append(length)
    starts, conditions = _places(context, lengths)
    total, expected = starts.pop(), context.length(given.lengths[axis])
    # The lengths are not unified: the sum of the parts is the length of no array.
    for condition in (*conditions, builder.op("eq", total, expected)):
        builder.check(condition, ValueError, _WRONG_SUM, total, expected)
    return [
        part_along(context, given, axis, start, length)
        for start, length in zip(starts, lengths, strict=True)
    ]


def part_along(context: Context, given: Tensor, axis: int, start: Value, length: Value) -> Tensor:
    """Return the view of a part of an array along an axis."""
    builder = context.builder
    lengths = (*given.lengths[:axis], length, *given.lengths[axis + 1 :])

    def place(index: Index) -> Index:
        return (*index[:axis], builder.op("add", index[axis], start), *index[axis + 1 :])

    return view(given, lengths, place)
