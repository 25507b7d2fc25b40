"""Nonzero: index arrays of a length that is determined at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.tensor.basic import Nonzero

from pytensor_fuse._native.lowering.registry import lower, refuses_dtypes
from pytensor_fuse._native.lowering.tensors import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._native.lowering.types import BufferId, Context, Index, Node, Tensors, Value


class Positions(Tensor):
    """A vector of indices that are all at least 0 and less than a limit.

    Attributes
    ----------
    limit
        The upper bound, which is exclusive.
    """

    __slots__ = ("limit",)

    def __init__(self, length: Value, at: Callable[[Index], Value], limit: Value) -> None:
        super().__init__("i64", (length,), at)
        self.limit = limit


def positions(context: Context, given: Tensor) -> list[Positions]:
    """Return the indices of the nonzero elements in C order, as a vector for each axis.

    Parameters
    ----------
    context
        The lowering.
    given
        An array with at least one axis.
    """
    builder = context.builder
    lengths = [context.length(length) for length in given.lengths]
    # Each index is stored, and overwritten by the next unless its element is nonzero: no branch.
    size = context.size(lengths)
    is_guarded = len(lengths) > 1
    buffers = [context.temporary("i64", (size,), is_once=False) for _ in lengths]
    one, zero = builder.index(1), builder.index(0)

    def count(index: Index, so_far: Value) -> Value:
        """Loop over the remaining axes; return the number of nonzero elements so far."""
        if len(index) == len(lengths):
            for buffer, place in zip(buffers, index, strict=True):
                builder.store(buffer, (so_far,), place, is_guarded=is_guarded)
            is_there = builder.cast(given.at(index), "bool")
            return builder.op("add", so_far, builder.op("select", is_there, one, zero))
        with builder.loop(lengths[len(index)]) as loop:
            inner = builder.carried("i64")
            following = count((*index, loop.index), inner)
            return builder.carry(loop, inner, so_far, following)

    found = count((), zero)
    return [
        Positions(found, _loader(context, buffer), limit)
        for buffer, limit in zip(buffers, lengths, strict=True)
    ]


def _loader(context: Context, buffer: BufferId) -> Callable[[Index], Value]:
    return lambda index: context.builder.load(buffer, index)


@lower.register(Nonzero, refuses=refuses_dtypes)
def _nonzero(op: Nonzero, node: Node, context: Context, inputs: Tensors) -> Sequence[Tensor]:
    return positions(context, inputs[0])
