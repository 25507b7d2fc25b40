"""Layout of the tables of arguments of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytensor_fuse._native.program.model import BufferId, Program


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
