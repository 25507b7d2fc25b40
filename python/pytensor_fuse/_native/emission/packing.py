"""Packing of constants: arrays that one loop reads in parallel are interleaved into one array.

A loop over the rows of forty columns, each an array, reads forty streams, more than any processor
prefetches: on large arrays, the loop runs at a third of the memory bandwidth, and on small ones it
reloads the address of each array for each vector. In a pack, the vectors that an iteration reads
are adjacent. A pack of ``a``, ``b`` and ``c`` for two lanes is ``a0 a1 b0 b1 c0 c1 a2 a3 b2 ...``;
the last elements are repeated to fill the last vectors.

Alternatives without effect were alignment of the arrays, a different offset in cache lines for each
array, huge pages, and prefetch instructions.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from pytensor_fuse._native.emission.accesses import Movement, blocker
from pytensor_fuse._native.program.model import Call, For, Load
from pytensor_fuse._native.program.walking import statements_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.emission.machine import Machine
    from pytensor_fuse._native.program.model import BufferId, Program

# The fewest constants of a pack. Processors prefetch some sixteen streams.
_FEWEST: Final = 8


class Place(NamedTuple):
    """The place of a constant in a pack.

    Attributes
    ----------
    first
        The first constant of the pack, whose entry in the table of constants the pack takes.
    number
        The position of the constant in the pack.
    n_members
        The number of constants in the pack.
    """

    first: BufferId
    number: int
    n_members: int


class Packing(NamedTuple):
    """The packed constants of a program.

    Attributes
    ----------
    packs
        The positions of the constants of each pack, in the pack's order.
    places
        The place of each packed constant, by its buffer.
    lanes
        The number of adjacent elements of one constant.
    """

    packs: tuple[tuple[int, ...], ...]
    places: dict[BufferId, Place]
    lanes: int


NOT_PACKED: Final = Packing((), {}, 1)


def packed_constants(program: Program, machine: Machine) -> Packing:
    """Choose the constants of a program to be packed; O(statements).

    All loads of such a constant are in one loop, at the loop's own index. The loop is vectorized
    without a scalar remainder loop.
    """
    lanes = machine.lanes
    if lanes == 1:
        return NOT_PACKED
    readers = _readers(program)
    packs = []
    places: dict[BufferId, Place] = {}
    for loop in statements_in(program.body):
        if not isinstance(loop, For):
            continue
        extent = program.constants.get(loop.extent)
        if extent is None or int(extent) < lanes:
            continue
        if not machine.has_masks and int(extent) % lanes:
            continue
        for members in _members(program, loop, readers):
            if blocker(program, loop, Movement(program, loop)) is not None:
                break
            packs.append(tuple([program.buffers[one].position for one in members]))
            for number, one in enumerate(members):
                places[one] = Place(members[0], number, len(members))
    return Packing(tuple(packs), places, lanes)


def _readers(program: Program) -> dict[BufferId, list[Load]]:
    found: dict[BufferId, list[Load]] = {}
    for statement in statements_in(program.body):
        if isinstance(statement, Load) and program.buffers[statement.buffer].kind == "constant":
            found.setdefault(statement.buffer, []).append(statement)
    for statement in statements_in(program.body):
        if isinstance(statement, Call):
            # Routines read constants in the original layout.
            for operand in statement.operands:
                found.pop(operand.buffer, None)
    return found


def _members(
    program: Program, loop: For, readers: dict[BufferId, list[Load]]
) -> list[Sequence[BufferId]]:
    """Return the constants of each dtype that a loop reads in parallel, if there are enough."""
    read = Counter(
        one.buffer
        for one in loop.body
        if isinstance(one, Load) and one.buffer in readers and one.index == (loop.index,)
    )
    by_dtype: dict[str, list[BufferId]] = {}
    for buffer, n_reads in read.items():
        about = program.buffers[buffer]
        is_whole = program.constants.get(about.lengths[0]) == program.constants[loop.extent]
        # Integers and masks are also read in other ways.
        if is_whole and about.dtype[0] == "f" and n_reads == len(readers[buffer]):
            by_dtype.setdefault(about.dtype, []).append(buffer)
    return [members for members in by_dtype.values() if len(members) >= _FEWEST]
