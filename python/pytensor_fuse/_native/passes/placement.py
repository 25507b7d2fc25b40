"""Placement of temporary buffers in the scratch memory of a call.

The memory is requested once, before the first statement that accesses a temporary buffer. Buffers
with overlapping live ranges lie apart; others may share memory. The core's best-fit algorithm
places buffers of known lengths. Buffers whose lengths are known only in the call, but before that
statement, share offsets with buffers of the same lengths and element size. A buffer whose lengths
are computed later is allocated on its own once they are known, and so is a buffer of unknown
lengths that a side of a branch allocates, because that side may never run.
"""

from __future__ import annotations

import math
from functools import cache
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple

from pytensor_fuse._core import place_buffers
from pytensor_fuse._native.program.model import ITEM_SIZES, Allocate, If, Op
from pytensor_fuse._native.program.walking import accessed_by, defined_by, statements_in

if TYPE_CHECKING:
    from pytensor_fuse._native.program.model import BufferId, Program, Statement, Value

# Buffers are aligned to cache lines.
_ALIGNMENT: Final = 64
# More bytes than any process has, yet few enough that sums near it do not overflow.
MOST_BYTES: Final = float(1 << 60)

Amount = int | tuple[str, "Value"]


class Placement(NamedTuple):
    """The placement of temporary buffers.

    Attributes
    ----------
    at
        The position in the outermost block before which the memory is requested.
    offsets
        The offset of each buffer: a number of bytes, or ``("value", value)``. Buffers without an
        offset are allocated on their own by an `Allocate` statement.
    total
        The total size in bytes, in the same form; None if no memory is needed.
    fits
        A ``bool`` value that is false if the total size is too large, so that it may have
        overflowed ``i64``; None if it cannot.
    n_bytes
        The size of the buffers of known lengths, in bytes.
    """

    at: int
    offsets: dict[BufferId, Amount]
    total: Amount | None
    fits: Value | None
    n_bytes: int


def place_temporaries(program: Program) -> Placement:
    """Place the temporary buffers of a program.

    Parameters
    ----------
    program
        The program, which is changed in place: the computation of offsets is added, and `Allocate`
        statements for buffers whose lengths are computed later.

    Returns
    -------
    Placement
        The placement.
    """
    spans = _spans(program)
    at = min([first for first, _ in spans.values()], default=0)
    early = {*program.constants, *program.lengths}
    for statement in program.body[:at]:
        early.update(defined_by(statement))
    known: list[BufferId] = []
    late: list[BufferId] = []
    given: dict[tuple[int, tuple[Value, ...]], list[BufferId]] = {}
    in_branches = _allocated_in_branches(program)
    for buffer in spans:
        about = program.buffers[buffer]
        if all(length in program.constants for length in about.lengths):
            known.append(buffer)
        elif buffer not in in_branches and all(length in early for length in about.lengths):
            given.setdefault((ITEM_SIZES[about.dtype], about.lengths), []).append(buffer)
        else:
            late.append(buffer)
    _allocate_where_known(program, late, at)
    sizes = [_known_size(program, buffer) for buffer in known]
    offsets, n_bytes = place_buffers(
        sizes,
        [spans[buffer][0] for buffer in known],
        [spans[buffer][1] for buffer in known],
        _ALIGNMENT,
    )
    placement = Placement(at, dict(zip(known, offsets, strict=True)), n_bytes, None, n_bytes)
    if given:
        return _with_given(program, placement, given, spans)
    return placement if n_bytes else placement._replace(total=None)


def _allocated_in_branches(program: Program) -> set[BufferId]:
    """Return the buffers that are allocated in a branch outside of all loops."""
    found: set[BufferId] = set()
    pending = [one for one in program.body if isinstance(one, If)]
    while pending:
        branch = pending.pop()
        for one in (*branch.then, *branch.otherwise):
            if isinstance(one, If):
                pending.append(one)
            elif isinstance(one, Allocate):
                found.add(one.buffer)
    return found


def _known_size(program: Program, buffer: BufferId) -> int:
    about = program.buffers[buffer]
    lengths = [int(program.constants[length]) for length in about.lengths]
    return ITEM_SIZES[about.dtype] * math.prod(lengths)


def _spans(program: Program) -> dict[BufferId, tuple[int, int]]:
    """Return each temporary's live range: its first and last access in the outermost block."""
    spans: dict[BufferId, tuple[int, int]] = {}
    for number, outer in enumerate(program.body):
        for buffer in accessed_by(outer):
            if program.buffers[buffer].kind == "temporary":
                first = spans.get(buffer, (number, number))[0]
                spans[buffer] = first, number
    return spans


def _allocate_where_known(program: Program, late: list[BufferId], at: int) -> None:
    """Allocate buffers once their lengths are known, behind a given statement at the earliest."""
    body = program.body
    if not late:
        return
    allocated = {one.buffer for one in statements_in(body) if isinstance(one, Allocate)}
    homes = dict.fromkeys([*program.constants, *program.lengths], at)
    for number, statement in enumerate(body):
        homes.update(dict.fromkeys(defined_by(statement), max(number, at)))
    behind: dict[int, list[Statement]] = {}
    for buffer in late:
        lengths = program.buffers[buffer].lengths
        if buffer in allocated:
            continue
        if not all(length in homes for length in lengths):
            raise AssertionError("a buffer has lengths that are known in an inner block only")
        place = max(homes[length] for length in lengths)
        behind.setdefault(place, []).append(Allocate(buffer))
    old = list(body)
    body.clear()
    for number, statement in enumerate(old):
        body.append(statement)
        body += reversed(behind.get(number, ()))


def _with_given(
    program: Program,
    placement: Placement,
    given: dict[tuple[int, tuple[Value, ...]], list[BufferId]],
    spans: dict[BufferId, tuple[int, int]],
) -> Placement:
    """Place buffers whose lengths are known in the call behind the buffers of known lengths."""
    added: list[Statement] = []

    def op(name: str, *args: Value, dtype: str = "i64") -> Value:
        program.dtypes.append(dtype)
        out = len(program.dtypes) - 1
        added.append(Op(out, name, args))
        return out

    def constant(number: float, dtype: str = "i64") -> Value:
        program.dtypes.append(dtype)
        program.constants[len(program.dtypes) - 1] = number
        return len(program.dtypes) - 1

    # A length that has not been checked yet may be negative. Its check fails before the first store
    # to its buffer, but until then other buffers are stored to, whose offsets must be valid.
    @cache
    def at_least_none(length: Value) -> Value:
        is_checked = length in program.lengths or program.constants.get(length, -1) >= 0
        return length if is_checked else op("maximum", length, constant(0))

    mask, most = constant(-_ALIGNMENT), constant(_ALIGNMENT - 1)
    start = -(-placement.n_bytes // _ALIGNMENT) * _ALIGNMENT
    end = constant(start)
    # The same sum in floats, which do not wrap.
    rough_end = constant(float(start), "f64")
    rough_most = constant(float(_ALIGNMENT), "f64")
    for (item_size, lengths), buffers in given.items():
        size, rough_size = constant(item_size), constant(float(item_size), "f64")
        for length in map(at_least_none, lengths):
            size = op("mul", size, length)
            rough = op("cast", length, dtype="f64")
            rough_size = op("mul", rough_size, rough, dtype="f64")
        size = op("and", op("add", size, most), mask)
        rough_size = op("add", rough_size, rough_most, dtype="f64")
        # Offsets are values with ascending ids, so the heap pops the offset that was added first.
        free: list[Value] = []
        taken: list[tuple[int, Value]] = []
        for buffer in sorted(buffers, key=lambda one: spans[one]):
            first, last = spans[buffer]
            while taken and taken[0][0] < first:
                heappush(free, heappop(taken)[1])
            if free:
                place = heappop(free)
            else:
                place, end = end, op("add", end, size)
                rough_end = op("add", rough_end, rough_size, dtype="f64")
            heappush(taken, (last, place))
            placement.offsets[buffer] = ("value", place)
    fits = op("lt", rough_end, constant(MOST_BYTES, "f64"), dtype="bool")
    program.body[placement.at : placement.at] = added
    return placement._replace(at=placement.at + len(added), total=("value", end), fits=fits)
