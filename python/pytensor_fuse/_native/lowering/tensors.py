"""Tensors: the representation of variables during lowering, as functions from index to value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytensor_fuse._native.program.model import NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from pytensor_fuse._native.program.builder import Builder
    from pytensor_fuse._native.program.model import BufferId, Value

Index = tuple["Value", ...]

# The dtypes of programs, by their names in NumPy.
DTYPES: Final = {name: dtype for dtype, name in NAMES.items()}


class Layout(NamedTuple):
    """The location of an array's elements in memory.

    Attributes
    ----------
    buffer
        The buffer that holds them.
    prefix
        The index of the buffer's first axes, if the array is only a part of the buffer.
    axes
        For each axis of the array, the axis of the buffer behind the prefix; None for an axis of
        length 1 that the buffer lacks. All other axes of the buffer have length 1.
    """

    buffer: BufferId
    prefix: tuple[Value, ...]
    axes: tuple[int | None, ...]


class Tensor:
    """An array or a scalar, represented by a function that computes its elements.

    Attributes
    ----------
    dtype
        The program's name of its dtype.
    lengths
        The length of each axis.
    at
        Emits the computation of the element at an index, and returns its value.
    buffer
        The buffer that holds exactly this array, element for element; None if there is none.
    data
        The elements, if the array is a constant.
    layout
        The location of the elements, if a buffer holds them with its axes in any order.
    parts
        For a variable that is not an array, the arrays that represent it, as listed by
        `type_parts`.
    """

    __slots__ = ("at", "buffer", "data", "dtype", "layout", "lengths", "parts")

    def __init__(
        self,
        dtype: str,
        lengths: Sequence[Value],
        at: Callable[[Index], Value],
        buffer: BufferId | None = None,
        data: np.ndarray[Any, Any] | None = None,
        layout: Layout | None = None,
    ) -> None:
        self.dtype = dtype
        self.lengths = tuple(lengths)
        self.at = at
        self.buffer = buffer
        self.data = data
        if layout is None and buffer is not None:
            layout = Layout(buffer, (), tuple(range(len(self.lengths))))
        self.layout = layout
        self.parts: tuple[Tensor, ...] = ()

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.lengths)


def stored(builder: Builder, buffer: BufferId) -> Tensor:
    """Return the array that a buffer holds."""
    about = builder.program.buffers[buffer]

    return Tensor(about.dtype, about.lengths, lambda index: builder.load(buffer, index), buffer)


def scalar(builder: Builder, value: Value) -> Tensor:
    """Return a value as an array without axes."""
    return Tensor(builder.dtype(value), (), lambda _: value)


def view(
    base: Tensor,
    lengths: Sequence[Value],
    place: Callable[[Index], Index],
    layout: Layout | None = None,
) -> Tensor:
    """Return an array whose elements are elements of another one.

    Parameters
    ----------
    base
        The other array.
    lengths
        The lengths of the view.
    place
        The map from an index of the view to an index of ``base``.
    layout
        The location of the elements in memory; None if unknown.
    """
    return Tensor(base.dtype, lengths, lambda index: base.at(place(index)), layout=layout)


def element_of(builder: Builder, base: Tensor, at: Value) -> Tensor:
    """Return the part of an array at an index of its first axis."""
    if base.ndim == 1:
        return scalar(builder, base.at((at,)))
    layout = base.layout
    if layout is not None:
        first, *rest = layout.axes
        axes = tuple([None if axis is None else axis - 1 for axis in rest])
        # A prefix covers the leading axes of a buffer only.
        layout = Layout(layout.buffer, (*layout.prefix, at), axes) if first == 0 else None
    return Tensor(base.dtype, base.lengths[1:], lambda index: base.at((at, *index)), layout=layout)


def _no_element(index: Index) -> Value:
    raise ValueError("a variable that is not an array has no elements")


# A variable that is not an array: None for a length that is not specified.
NOTHING: Final = Tensor("bool", (), _no_element)


def of_parts(parts: Sequence[Tensor]) -> Tensor:
    """Return the tensor of a variable that is represented by several arrays."""
    made = Tensor("bool", (), _no_element)
    made.parts = tuple(parts)
    return made
