"""Loops, calls and buffers of a compiled program, as a report shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._native.emission.accesses import LOOP_INSIDE, Movement, blocker
from pytensor_fuse._native.explain.records import NativeBuffer, NativeCall, NativeLoop
from pytensor_fuse._native.program import model
from pytensor_fuse._native.program.external.draws import DRAWS, SYMBOLS
from pytensor_fuse._native.program.external.routines import ROUTINES
from pytensor_fuse._native.program.model import ITEM_SIZES, NAMES
from pytensor_fuse._native.program.walking import accessed_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytensor_fuse._native.emission.functions import LoopNote
    from pytensor_fuse._native.passes.placement import Placement
    from pytensor_fuse._native.program.model import Program, Statement, Value


def loops_of(
    program: Program, notes: Sequence[LoopNote], bits: Sequence[int | None], names: Sequence[str]
) -> tuple[NativeLoop, ...]:
    """Return the loops of a program, each before its inner loops.

    Parameters
    ----------
    program
        The program that was emitted.
    notes
        The emitter's notes on its loops, in the same order; a loop that serves only as the frame of
        inner loops has no note.
    bits
        The width of the registers in which each of these loops computes.
    names
        The name of each buffer.
    """
    told = iter(zip(notes, bits, strict=True))
    found: list[NativeLoop] = []
    for depth, loop in _with_depth(program.body, 0):
        if not isinstance(loop, model.For):
            continue
        why = blocker(program, loop, Movement(program, loop))
        note, width = (None, None) if why == LOOP_INSIDE else next(told)
        reads, writes, n_operations = _accesses(loop, names)
        found.append(
            NativeLoop(
                depth=depth,
                extent=_number(program, loop.extent),
                lanes=1 if note is None else note.lanes,
                why_scalar=why if note is None else note.why_scalar,
                register_bits=width,
                n_operations=n_operations,
                n_reductions=len(loop.reductions),
                reads=reads,
                writes=writes,
            )
        )
    return tuple(found)


def _with_depth(block: Sequence[Statement], depth: int) -> Iterator[tuple[int, Statement]]:
    """Yield all statements in pre-order, with the number of loops around each."""
    for statement in block:
        yield depth, statement
        if isinstance(statement, model.For):
            yield from _with_depth(statement.body, depth + 1)
        elif isinstance(statement, model.If):
            yield from _with_depth(statement.then, depth)
            yield from _with_depth(statement.otherwise, depth)


def calls_of(program: Program, names: Sequence[str]) -> tuple[NativeCall, ...]:
    """Return a program's calls of library routines, and its draws.

    Parameters
    ----------
    program
        The program that was emitted.
    names
        The name of each buffer.
    """
    found = []
    for depth, call in _with_depth(program.body, 0):
        if isinstance(call, model.Draw):
            function = f"{SYMBOLS}{DRAWS[call.name].function}"
            found.append(NativeCall(depth, call.name, function, (names[call.generator],)))
        elif isinstance(call, model.Call):
            routine = ROUTINES[call.name]
            dtype = program.buffers[routine.real_operand(call).buffer].dtype
            operands = tuple([names[operand.buffer] for operand in call.operands])
            found.append(NativeCall(depth, call.name, routine.symbol(dtype), operands))
    return tuple(found)


def _accesses(
    loop: model.For, names: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """Return a loop's reads, writes and number of operations, excluding its inner loops."""
    reads: list[int] = []
    writes: list[int] = []
    n_operations = 0
    for statement in _own(loop.body):
        if isinstance(statement, model.Load):
            reads.append(statement.buffer)
        elif isinstance(statement, model.Store):
            writes.append(statement.buffer)
        elif isinstance(statement, model.Op):
            n_operations += 1
        elif isinstance(statement, model.Draw):
            reads.append(statement.generator)
            writes.append(statement.generator)
        elif isinstance(statement, model.Call):
            roles = ROUTINES[statement.name].operands
            operands = list(zip(statement.operands, roles, strict=True))
            reads += [operand.buffer for operand, role in operands if role.is_read]
            writes += [operand.buffer for operand, role in operands if role.is_written]
    read, written = (tuple(dict.fromkeys(names[i] for i in each)) for each in (reads, writes))
    return read, written, n_operations


def _own(block: Sequence[Statement]) -> Iterator[Statement]:
    for statement in block:
        yield statement
        if isinstance(statement, model.If):
            yield from _own(statement.then)
            yield from _own(statement.otherwise)


def _number(program: Program, value: Value) -> int | None:
    number = program.constants.get(value)
    return None if number is None else int(number)


def buffer_names(
    program: Program, inputs: Sequence[str], outputs: Sequence[str]
) -> tuple[str, ...]:
    """Return the name of each buffer: its number, with the name of its variable if any.

    Parameters
    ----------
    program
        The program.
    inputs, outputs
        The names of the function's variables; empty for those without.
    """
    called = []
    for number, about in enumerate(program.buffers):
        given = {"input": inputs, "output": outputs}.get(about.kind)
        name = "" if given is None else given[about.position]
        called.append(f"@{number} {name}" if name else f"@{number}")
    return tuple(called)


def buffers_of(
    program: Program, placement: Placement, names: Sequence[str]
) -> tuple[NativeBuffer, ...]:
    """Return the buffers that a program uses.

    Parameters
    ----------
    program
        The program that was emitted.
    placement
        The offsets of its temporary buffers.
    names
        The name of each buffer.
    """
    used = {buffer for one in program.body for buffer in accessed_by(one)}
    found = []
    for number, about in enumerate(program.buffers):
        if number not in used and about.kind in ("temporary", "constant"):
            continue
        shape = tuple(_number(program, length) for length in about.lengths)
        n_bytes: int | None = ITEM_SIZES[about.dtype]
        for length in shape:
            n_bytes = None if n_bytes is None or length is None else n_bytes * length
        offset = placement.offsets.get(number)
        found.append(
            NativeBuffer(
                name=names[number],
                kind=about.kind,
                dtype=NAMES[about.dtype],
                shape=shape,
                n_bytes=n_bytes,
                offset=offset if isinstance(offset, int) else None,
            )
        )
    return tuple(found)
