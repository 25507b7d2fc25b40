"""Selections: the map from the index of a selected element to its position in the base."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.tensor.subtensor import IncSubtensor, Subtensor, indices_from_subtensor

from pytensor_fuse._native.lowering.indexing.bounds import OUT_OF_BOUNDS, checked
from pytensor_fuse._native.lowering.indexing.columns import Column, columns_of
from pytensor_fuse._native.lowering.indexing.slices import Span, span_of, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._native.lowering.types import Context, Index, Node, Tensor, Value

    # A position along an axis that is dropped, or positions along one that is kept or replaced.
    Entry = Value | Span | Column


class Selection:
    """The elements that an op reads or writes, as an array.

    Index arrays share a group of axes. The group takes the place of the first index array if all
    are adjacent, and comes first otherwise.

    Attributes
    ----------
    lengths
        The length of each axis of the selection.
    first, last
        The range of the group's axes: ``first`` ... ``last - 1``.
    is_guarded
        Whether the positions are in bounds only because of a check.
    may_repeat
        Whether two elements may have the same position.
    is_all
        Whether the selection is the base itself.
    """

    def __init__(
        self, context: Context, base: Sequence[Value], entries: Sequence[Entry], *, is_guarded: bool
    ) -> None:
        self._context = context
        self._entries = entries
        columns = [one for one in entries if isinstance(one, Column)]
        group = _group_lengths(context, columns)
        self._group = group
        self.is_guarded = _require_in_bounds(context, columns, group) or is_guarded
        # The positions of several columns repeat only if all columns do.
        self.may_repeat = bool(columns) and all(_repeats(one, len(group)) for one in columns)
        self.first = _place_of_group(entries)
        self.last = self.first + len(group)
        spans = [one for one in entries if isinstance(one, Span)]
        kept = [context.length(one.length) for one in spans]
        self.lengths = (*kept[: self.first], *group, *kept[self.first :])
        self.is_all = tuple(entries) == tuple([whole(context.builder, one) for one in base])

    def columns(self, index: Index) -> list[Value]:
        """Return the position along each axis that has an index array.

        Parameters
        ----------
        index
            The index into the selection, of which only the group's axes are read.
        """
        builder = self._context.builder
        places = []
        for column in self._entries:
            if isinstance(column, Column):
                own = index[self.last - len(column.lengths) : self.last]
                group = self._group[len(self._group) - len(column.lengths) :]
                at = [
                    place_along(self._context, one, length, into, is_one=is_one)
                    for one, length, into, is_one in zip(
                        own, column.lengths, group, column.stretches, strict=True
                    )
                ]
                places.append(builder.cast(column.at(tuple(at)), "i64"))
        return places

    def place(self, index: Index, columns: Sequence[Value]) -> Index:
        """Return the position of a selected element in the base.

        Parameters
        ----------
        index
            The index into the selection.
        columns
            The result of `columns` for the same index.
        """
        left = iter(columns)
        kept = iter((*index[: self.first], *index[self.last :]))
        out: list[Value] = []
        for entry in self._entries:
            if isinstance(entry, Column):
                out.append(next(left))
            elif isinstance(entry, Span):
                out.append(entry.at(self._context.builder, next(kept)))
            else:
                out.append(entry)
        return tuple(out)

    def nest(self, body: Callable[[Index, Index], None]) -> None:
        """Emit a loop nest over the selected elements, in C order.

        Parameters
        ----------
        body
            Emits one iteration, from the index into the selection and the position in the base.
        """
        context = self._context
        inner = self.lengths[self.last :]
        if self.first == self.last or all(context.is_short(length) for length in inner):
            context.nest(self.lengths, lambda index: body(index, self.at(index)))
            return
        # Index arrays are read outside of the loops over the elements that each entry selects.
        rest = (context.builder.index(0),) * len(inner)

        def at_columns(outer: Index) -> None:
            columns = self.columns((*outer, *rest))
            context.nest(
                inner, lambda index: body((*outer, *index), self.place((*outer, *index), columns))
            )

        context.nest(self.lengths[: self.last], at_columns)

    def at(self, index: Index) -> Index:
        """Return the position of a selected element in the base."""
        return self.place(index, self.columns(index))


def selection_of(
    context: Context, node: Node, inputs: Sequence[Tensor], n_operands: int
) -> Selection:
    """Return the selection of a node in its first input.

    Parameters
    ----------
    context
        The lowering.
    node
        A node of an op with an ``idx_list``.
    inputs
        The tensors of its inputs.
    n_operands
        The number of inputs before the indices.
    """
    builder = context.builder
    base = inputs[0]
    variables = node.inputs[n_operands:]
    tensors = dict(zip(variables, inputs[n_operands:], strict=True))

    def number(part: Any) -> Value | None:
        return None if part is None else tensors[part].at(())

    lengths = [context.length(length) for length in base.lengths]
    entries: list[Entry] = []
    is_guarded = False
    for index in indices_from_subtensor(variables, node.op.idx_list):
        left = lengths[len(entries) :]
        if isinstance(index, slice):
            parts = number(index.start), number(index.stop), number(index.step)
            entries.append(span_of(builder, left[0], *parts))
        elif takes_integers(node.op):
            value = tensors[index].at(())
            place, needs_guard = checked(builder, value, left[0])
            is_guarded |= needs_guard
            entries.append(place)
        else:
            entries += columns_of(context, index, tensors[index], left, len(entries))
    entries += [whole(builder, length) for length in lengths[len(entries) :]]
    return Selection(context, lengths, entries, is_guarded=is_guarded)


def takes_integers(op: Any) -> bool:
    """Whether the indices of an op besides slices are integers instead of arrays."""
    return isinstance(op, Subtensor | IncSubtensor)


def place_along(
    context: Context, index: Value, length: Value, into: Value, *, is_one: bool
) -> Value:
    """Return the index along an axis that may be broadcast to the length of another.

    Parameters
    ----------
    context
        The lowering.
    index
        The index along the other axis.
    length, into
        The lengths of the axis and of the other one.
    is_one
        Whether the axis is known to have one element.
    """
    builder = context.builder
    zero, one = builder.index(0), builder.index(1)
    length, into = context.length(length), context.length(into)
    if is_one:
        return zero
    if length == into:
        return index
    return builder.op("select", builder.op("eq", length, one), zero, index)


def _place_of_group(entries: Sequence[Entry]) -> int:
    """Return the axis of the selection at which the group of index arrays starts."""
    at = [axis for axis, entry in enumerate(entries) if isinstance(entry, Column)]
    if not at or at[-1] - at[0] >= len(at):
        return 0
    return at[0]


def _group_lengths(context: Context, columns: Sequence[Column]) -> tuple[Value, ...]:
    """Return the lengths that index arrays broadcast to."""
    builder = context.builder
    one = builder.index(1)
    ndim = max((len(column.lengths) for column in columns), default=0)
    lengths = [one] * ndim
    for column in columns:
        skipped = ndim - len(column.lengths)
        for axis, (own, is_one) in enumerate(
            zip(column.lengths, column.stretches, strict=True), skipped
        ):
            this, other = context.length(own), context.length(lengths[axis])
            if is_one or this == other:
                continue
            if builder.number(other) == 1:
                lengths[axis] = this
                continue
            is_one_here = builder.op("eq", other, one)
            fits = builder.op("or", builder.op("eq", this, other), builder.op("eq", this, one))
            builder.check(
                builder.op("or", fits, is_one_here),
                ValueError,
                "shape mismatch: objects cannot be broadcast to a single shape",
            )
            lengths[axis] = builder.op("select", is_one_here, this, other)
    return tuple(lengths)


def _require_in_bounds(context: Context, columns: Sequence[Column], group: Sequence[Value]) -> bool:
    """Emit the bounds checks of index arrays; return whether any check was needed."""
    builder = context.builder
    is_needed = any(column.is_checked for column in columns)
    for column in columns:
        if column.in_bounds is None:
            continue
        condition = column.in_bounds
        if len(columns) > 1:
            # An index out of bounds is valid if nothing is selected.
            condition = builder.op("or", condition, context.is_empty(group))
        builder.check(condition, IndexError, OUT_OF_BOUNDS)
        is_needed = True
    return is_needed


def _repeats(column: Column, ndim: int) -> bool:
    """Whether the positions of a column, broadcast to a number of axes, may repeat."""
    return column.may_repeat or len(column.lengths) < ndim or any(column.stretches)
