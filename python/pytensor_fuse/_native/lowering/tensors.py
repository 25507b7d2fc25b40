"""What a variable is while a graph is lowered: a function from an index to a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from pytensor_fuse._native.program.builder import Builder
    from pytensor_fuse._native.program.model import BufferId, Value

Index = tuple["Value", ...]

DTYPES: Final = {
    "float64": "f64",
    "float32": "f32",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint64": "u64",
    "uint32": "u32",
    "uint16": "u16",
    "uint8": "u8",
    "bool": "bool",
}
NAMES: Final = {dtype: name for name, dtype in DTYPES.items()}


class Layout(NamedTuple):
    """Where the elements of an array lie in memory.

    Attributes
    ----------
    buffer
        The buffer that holds them.
    prefix
        The index of the buffer's first axes, if the array is only what the buffer has there.
    axes
        For each axis of the array, the axis of the buffer behind the prefix; None for one of length
        1 that the buffer does not have. All other axes of the buffer are of length 1.
    """

    buffer: BufferId
    prefix: tuple[Value, ...]
    axes: tuple[int | None, ...]


class Tensor:
    """An array, or a scalar, as what gives its elements.

    Attributes
    ----------
    dtype
        The program's name of its dtype.
    lengths
        A value for each axis.
    at
        Adds to the program what gives the element at an index, and returns its value.
    buffer
        The buffer that holds just this array, element for element, if one does.
    data
        The elements, if they are a constant's.
    layout
        Where the elements lie, if a buffer holds them in any order of the axes.
    parts
        For a variable that is no array, the arrays that stand for it, as `type_parts` lists them.
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

    def at(index: Index) -> Value:
        return builder.load(buffer, index)

    return Tensor(about.dtype, about.lengths, at, buffer)


def scalar(builder: Builder, value: Value) -> Tensor:
    """Return the 0-d array of one value."""
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
        Those of the view.
    place
        Where in ``base`` the element at an index of the view is.
    layout
        Where the elements lie in memory, if that is known.
    """
    return Tensor(base.dtype, lengths, lambda index: base.at(place(index)), layout=layout)


def element_of(builder: Builder, base: Tensor, at: Value) -> Tensor:
    """Return the array that another one has at an index of its first axis."""
    if base.ndim == 1:
        return scalar(builder, base.at((at,)))
    layout = base.layout
    if layout is not None:
        first, *rest = layout.axes
        axes = tuple([None if axis is None else axis - 1 for axis in rest])
        # Only the first axis of a buffer can be a part of the prefix.
        layout = Layout(layout.buffer, (*layout.prefix, at), axes) if first == 0 else None
    return Tensor(base.dtype, base.lengths[1:], lambda index: base.at((at, *index)), layout=layout)


def _no_element(index: Index) -> Value:
    raise ValueError("a variable that is no array has no elements")


# What a variable that is no array is: None for a length that is not specified.
NOTHING: Final = Tensor("bool", (), _no_element)


def of_parts(parts: Sequence[Tensor]) -> Tensor:
    """Return what a variable is that is no array, but several."""
    made = Tensor("bool", (), _no_element)
    made.parts = tuple(parts)
    return made
