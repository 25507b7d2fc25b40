"""Batches of arrays: a loop over the batch axes, around code for one member.

Access to a member copies nothing: its elements lie in memory behind a prefix of batch indices,
where routines can read them, and an array made by the loop is a part of one for all iterations.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from pytensor_fuse._native.lowering.registry import NoRuleError
from pytensor_fuse._native.lowering.tensors import Layout, Tensor, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytensor_fuse._native.lowering.types import BufferId, Context, Index, Tensors, Value


class Batch(NamedTuple):
    """A batch of arrays.

    Attributes
    ----------
    tensor
        All arrays, behind the batch axes.
    is_one
        For each batch axis, whether its only array is broadcast.
    """

    tensor: Tensor
    is_one: tuple[bool, ...]


def for_each(
    context: Context,
    lengths: Sequence[Value],
    batches: Sequence[Batch],
    body: Callable[[Tensors], Sequence[Tensor]],
) -> Tensors:
    """Emit a loop over batches of arrays, and return the batches of results.

    Parameters
    ----------
    context
        The lowering.
    lengths
        The lengths of the batch axes.
    batches
        The operands of the loop.
    body
        Emits one iteration: takes a member of each batch, and returns new arrays.

    Returns
    -------
    list of Tensor
        Arrays that hold the results of all iterations.

    Raises
    ------
    NoRuleError
        If a length of a result is known only within an iteration.
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
    """Open a loop for each axis, and register its index with the context."""
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
    """Return a batch, copied to memory if several iterations read the same elements."""
    tensor = batch.tensor
    if tensor.layout is not None or tensor.data is not None or not any(batch.is_one):
        return batch
    kept = stored(context.builder, context.copied(tensor))
    return batch._replace(tensor=kept)


def _part(context: Context, batch: Batch, index: Index) -> Tensor:
    """Return the member of a batch at an index."""
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
    """Return the layout of a member, if it lies behind a prefix of batch indices."""
    if layout is None:
        return None
    buffer, prefix, axes = layout
    n_axes = len(context.builder.program.buffers[buffer].lengths) - len(prefix)
    outer, inner = axes[: len(place)], axes[len(place) :]
    n_outer = min([axis for axis in inner if axis is not None], default=n_axes)
    if any(axis is not None and axis >= n_outer for axis in outer):
        return None
    # Axes of the buffer that the batch lacks have length 1.
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
        The first buffer that may belong to the loop alone.

    Raises
    ------
    NoRuleError
        If a length is known only within the iteration.
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
    """Return the array whose part an iteration has made."""
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
