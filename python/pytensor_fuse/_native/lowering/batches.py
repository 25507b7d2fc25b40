"""Batches of arrays: a loop over the first axes, in which each array is a part of a larger one.

Nothing is copied to get at a part: its elements lie in memory behind an index of the first axes,
where routines read them, and a new array that the loop makes is a part of one for all iterations.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from pytensor_fuse._native.lowering.registry import NoRuleError
from pytensor_fuse._native.lowering.tensors import Layout, Tensor, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytensor_fuse._native.lowering.context import Context
    from pytensor_fuse._native.lowering.tensors import Index
    from pytensor_fuse._native.program.model import BufferId, Value


class Batch(NamedTuple):
    """A batch of arrays.

    Attributes
    ----------
    tensor
        All of them, behind the axes of the batch.
    is_one
        For each axis of the batch, whether one array stands for all.
    """

    tensor: Tensor
    is_one: tuple[bool, ...]


def for_each(
    context: Context,
    lengths: Sequence[Value],
    batches: Sequence[Batch],
    body: Callable[[list[Tensor]], Sequence[Tensor]],
) -> list[Tensor]:
    """Write a loop over batches of arrays, and return the batches that it makes.

    Parameters
    ----------
    context
        The lowering.
    lengths
        Those of the axes of the batches.
    batches
        What the loop is given.
    body
        Writes one iteration: it is given an array of each batch, and returns new ones.

    Returns
    -------
    list of Tensor
        Arrays that hold the results of all iterations.

    Raises
    ------
    NoRuleError
        If only an iteration knows a length of its result.
    """
    builder = context.builder
    given = [_at_hand(context, one) for one in batches]
    n_before = len(builder.program.buffers)
    n_axes = len(lengths)
    with _iterating(context, lengths) as index:
        made = body([_part(context, one, index) for one in given])
        parts = [_in_whole(context, one, n_before) for one in made]
    return [_whole(context, one, lengths, n_axes) for one in parts]


@contextmanager
def _iterating(context: Context, lengths: Sequence[Value]) -> Iterator[Index]:
    """Open a loop for each axis, and tell the context of the index."""
    builder, outer = context.builder, context.batch
    with ExitStack() as loops:
        index = tuple(
            [
                builder.index(0)
                if builder.number(length) == 1
                else loops.enter_context(builder.loop(length)).index
                for length in lengths
            ]
        )
        context.batch = [*outer, *zip(lengths, index, strict=True)]
        try:
            yield index
        finally:
            context.batch = outer


def _at_hand(context: Context, batch: Batch) -> Batch:
    """Return a batch that is in memory if several iterations read the same of it."""
    tensor = batch.tensor
    if tensor.layout is not None or tensor.data is not None or not any(batch.is_one):
        return batch
    kept = stored(context.builder, context.copied(tensor))
    return batch._replace(tensor=kept)


def _part(context: Context, batch: Batch, index: Index) -> Tensor:
    """Return the array that a batch has at an index."""
    tensor, zero = batch.tensor, context.builder.index(0)
    place = tuple([zero if is_one else at for at, is_one in zip(index, batch.is_one, strict=True)])
    data = None
    if tensor.data is not None and all(batch.is_one):
        data = tensor.data[(0,) * len(place)]
    return Tensor(
        tensor.dtype,
        tensor.lengths[len(place) :],
        lambda inner: tensor.at(place + tuple(inner)),
        data=data,
        layout=_layout_of_part(context, tensor.layout, place),
    )


def _layout_of_part(context: Context, layout: Layout | None, place: Index) -> Layout | None:
    """Return where an array of a batch lies, if that is behind an index of the first axes."""
    if layout is None:
        return None
    buffer, prefix, axes = layout
    n_axes = len(context.builder.program.buffers[buffer].lengths) - len(prefix)
    outer, inner = axes[: len(place)], axes[len(place) :]
    n_outer = min([axis for axis in inner if axis is not None], default=n_axes)
    if any(axis is not None and axis >= n_outer for axis in outer):
        return None
    # Axes of the buffer that the batch does not have are of length 1.
    behind = [context.builder.index(0)] * n_outer
    for axis, at in zip(outer, place, strict=True):
        if axis is not None:
            behind[axis] = at
    shifted = tuple([None if axis is None else axis - n_outer for axis in inner])
    return Layout(buffer, prefix + tuple(behind), shifted)


def _in_whole(context: Context, part: Tensor, first: BufferId) -> Tensor:
    """Return an array of an iteration as a part of one for all iterations.

    Parameters
    ----------
    context
        The lowering.
    part
        The array.
    first
        The first buffer of which the loop may be the only owner.

    Raises
    ------
    NoRuleError
        If only the iteration knows a length.
    """
    layout = part.layout
    if layout is not None and layout.buffer >= first:
        prefix = tuple([index for _, index in context.batch])
        lengths = context.builder.program.buffers[layout.buffer].lengths
        outer = tuple([length for length, _ in context.batch])
        if layout.prefix == prefix and lengths[: len(outer)] == outer:
            return part
    array = context.array(part.dtype, part.lengths)
    if len(array.prefix) < len(context.batch):
        raise NoRuleError("a batch of arrays whose lengths are known only inside of a loop")
    context.fill(array, part.at)
    return context.held(array)


def _whole(context: Context, part: Tensor, lengths: Sequence[Value], n_axes: int) -> Tensor:
    """Return the array of which an iteration has made a part."""
    builder, layout = context.builder, part.layout
    assert layout is not None
    buffer, prefix, axes = layout
    outer = prefix[: len(prefix) - n_axes]
    about = builder.program.buffers[buffer]
    n_inner = len(about.lengths) - len(outer)
    shifted = tuple([None if axis is None else axis + n_axes for axis in axes])
    places = (*range(n_axes), *shifted)
    if not outer and places == tuple(range(n_inner)):
        return stored(builder, buffer)
    zero = builder.index(0)

    def at(index: Index) -> Value:
        place = [zero] * n_inner
        for axis, one in zip(places, index, strict=True):
            if axis is not None:
                place[axis] = one
        return builder.load(buffer, outer + tuple(place))

    return Tensor(part.dtype, (*lengths, *part.lengths), at, layout=Layout(buffer, outer, places))
