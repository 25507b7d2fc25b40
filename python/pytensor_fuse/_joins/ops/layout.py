"""Layout of the streams of a join in its result, shared by the ops that write and read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

SLOT_MISMATCH = "shape mismatch: the value assigned to a slice must be as long as the slice"
NEGATIVE_LENGTH = "the length of a joined tensor is negative"
SHAPE_MISMATCH = "all dimensions of joined tensors other than the axis must match"

SourceT = TypeVar("SourceT")


class Length(NamedTuple, Generic[SourceT]):
    """The source of the length of one dimension: static, another dimension, or an integer's value.

    Attributes
    ----------
    static
        The length, if it is known when the graph is compiled; the other attributes are then None.
    source
        Otherwise, the source of the length: a variable in a plan, the position of an input in an
        op.
    dim
        The dimension of ``source`` with the same length; None if the length is the value of
        ``source``.
    """

    static: int | None
    source: SourceT | None
    dim: int | None

    @property
    def is_value(self) -> bool:
        """Whether the length is the value of an integer, which may be negative."""
        return self.source is not None and self.dim is None


def static_length(n: int) -> Length[Any]:
    """Return a length that is known when the graph is compiled."""
    return Length(n, None, None)


def dim_length(source: SourceT, dim: int) -> Length[SourceT]:
    """Return the length of a dimension."""
    return Length(None, source, dim)


def value_length(source: SourceT) -> Length[SourceT]:
    """Return the length that is the value of an integer."""
    return Length(None, source, None)


class Slot(NamedTuple):
    """The bounds of a slice along the first axis; without ``stop``, it extends to the end."""

    start: int
    stop: int | None

    def length_within(self, total: int) -> int:
        """Return the length of the slice in a tensor of this length."""
        return len(range(total)[self.start : self.stop])

    def overlaps(self, other: Slot) -> bool:
        """Return whether the slices have elements in common, in a tensor that is long enough."""
        return (other.stop is None or self.start < other.stop) and (
            self.stop is None or other.start < self.stop
        )


class JoinLayout(NamedTuple):
    """The result of a join and the streams in it, in their order.

    Attributes
    ----------
    axis
        The axis of the join.
    ndim, dtype
        The number of dimensions and the dtype of the result.
    shapes
        For each stream, the lengths of its dimensions. In a one-dimensional result, a stream may
        have any number of them: it is stored raveled.
    written
        For each stream, whether a kernel writes it in its place. `WriteJoin` copies the others.
    slots
        For each stream, the slice that it must fill along the axis, or None; the slice refers to a
        tensor as long as the result. Empty if no stream has a slice.
    total
        With ``slots``, the length of that tensor.
    """

    axis: int
    ndim: int
    dtype: str
    shapes: tuple[tuple[Length[int], ...], ...]
    written: tuple[bool, ...]
    slots: tuple[Slot | None, ...] = ()
    total: Length[int] | None = None


def joined_shape(
    shapes: Sequence[tuple[int, ...]], axis: int, ndim: int
) -> tuple[list[int], tuple[int, ...]]:
    """Return the lengths of the streams along the axis, and the shape of the result.

    Raises
    ------
    ValueError
        If the streams differ in a dimension other than the axis.
    """
    if ndim == 1:
        lengths = [int(np.prod(shape, dtype=np.intp)) for shape in shapes]
        return lengths, (sum(lengths),)
    first = shapes[0]
    for shape in shapes:
        if shape[:axis] != first[:axis] or shape[axis + 1 :] != first[axis + 1 :]:
            raise ValueError(f"{SHAPE_MISMATCH}: {first} and {shape} along axis {axis}")
    lengths = [shape[axis] for shape in shapes]
    return lengths, (*first[:axis], sum(lengths), *first[axis + 1 :])


def part_of(whole: Any, axis: int, start: int, length: int, shape: tuple[int, ...]) -> Any:
    """Return the view of the result where a stream of this shape belongs."""
    part = whole[(slice(None),) * axis + (slice(start, start + length),)]
    return part.reshape(shape) if whole.ndim == 1 else part
