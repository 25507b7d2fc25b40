"""Arguments and results of machine code, and the layout of their tables in a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from pytensor_fuse._native.program.model import BufferId, Program


class Argument(NamedTuple):
    """An array that machine code takes.

    Attributes
    ----------
    dtype
        Its dtype, in NumPy's notation.
    lengths
        The length of each axis, or -1 if it is unknown.
    is_overwritten
        Whether the machine code writes to it. Unless the caller permits that, it gets a copy.
    is_scalar
        Whether the graph has a scalar instead of an array without dimensions.
    """

    dtype: str
    lengths: tuple[int, ...]
    is_overwritten: bool = False
    is_scalar: bool = False


class Returned(NamedTuple):
    """An array that machine code returns.

    Attributes
    ----------
    dtype
        Its dtype, in NumPy's notation.
    ndim
        The number of axes.
    kind
        ``buffer``: an array of its own. ``input``: an input that has been overwritten in place.
        ``output``: the same array as an earlier output.
    number
        The position of that input or output.
    is_scalar
        Whether the graph has a scalar instead of an array without dimensions.
    """

    dtype: str
    ndim: int
    kind: Literal["buffer", "input", "output"] = "buffer"
    number: int = 0
    is_scalar: bool = False


def first_lengths(program: Program) -> dict[BufferId, int]:
    """Return the position of each input's first length in the table of lengths."""
    inputs = sorted(
        (about.position, number)
        for number, about in enumerate(program.buffers)
        if about.kind == "input"
    )
    places, place = {}, 0
    for _, number in inputs:
        places[number] = place
        place += len(program.buffers[number].lengths)
    return places
