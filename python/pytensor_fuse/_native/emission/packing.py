"""Constants that one loop reads side by side, as one array in the order in which it reads them.

A loop over the rows of forty columns, each an array, reads forty streams. No processor foresees so
many: on large arrays, the loop runs at a third of the speed of memory, and on small ones it reloads
the address of each array for each vector. In a pack, the vectors that an iteration reads follow
each other. A pack of ``a``, ``b`` and ``c`` for two lanes is ``a0 a1 b0 b1 c0 c1 a2 a3 b2 ...``,
with the last elements once more to the end of the last vectors.

Aligning the arrays, shifting each by another number of cache lines, huge pages and prefetches were
tried before, and gain nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pytensor_fuse._native.emission.accesses import Movement, blocker
from pytensor_fuse._native.program.model import Call, For, Load
from pytensor_fuse._native.program.walking import statements_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.emission.machine import Machine
    from pytensor_fuse._native.program.model import BufferId, Program

# Processors foresee some sixteen streams.
_FEWEST: Final = 8


class Place(NamedTuple):
    """Where a constant is in a pack.

    Attributes
    ----------
    first
        The first constant of the pack, in whose place in the table of constants the pack is.
    number
        How many constants of the pack come before it.
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
        The positions of the constants of each pack, in their order there.
    places
        Where each of these constants is, by its buffer.
    lanes
        How many elements of one constant follow each other.
    """

    packs: tuple[tuple[int, ...], ...]
    places: dict[BufferId, Place]
    lanes: int


NOT_PACKED: Final = Packing((), {}, 1)


def packed_constants(program: Program, machine: Machine) -> Packing:
    """Choose the constants of a program that are packed; O(statements).

    All reads of such a constant are in one loop, which is written with vectors and has no remainder
    of single elements, and each iteration reads the element of its own number.
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
            # Routines read constants as they are.
            for operand in statement.operands:
                found.pop(operand.buffer, None)
    return found


def _members(
    program: Program, loop: For, readers: dict[BufferId, list[Load]]
) -> list[Sequence[BufferId]]:
    """Return the constants of each dtype that a loop reads side by side, where they are many."""
    read: dict[BufferId, int] = {}
    for statement in loop.body:
        if (
            isinstance(statement, Load)
            and statement.buffer in readers
            and statement.index == (loop.index,)
        ):
            read[statement.buffer] = read.get(statement.buffer, 0) + 1
    by_dtype: dict[str, list[BufferId]] = {}
    for buffer, n_reads in read.items():
        about = program.buffers[buffer]
        is_whole = program.constants.get(about.lengths[0]) == program.constants[loop.extent]
        # Integers and masks are read by other ways, too.
        if is_whole and about.dtype[0] == "f" and n_reads == len(readers[buffer]):
            by_dtype.setdefault(about.dtype, []).append(buffer)
    return [members for members in by_dtype.values() if len(members) >= _FEWEST]
