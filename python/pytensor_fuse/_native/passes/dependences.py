"""Dependence graph of a block: which statements must run in order, and which loops may fuse."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytensor_fuse._native.program import model
from pytensor_fuse._native.program.external.routines import ROUTINES
from pytensor_fuse._native.program.walking import defined_by, statements_in, used_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytensor_fuse._native.program.model import BufferId, Program, Statement, Value

Axes = frozenset[int]
# An index; None on axes where it is not a literal.
Place = tuple["bool | int | float | None", ...]


@dataclass(slots=True)
class _Accesses:
    """The accesses of one statement to one buffer.

    Attributes
    ----------
    axes
        The axes that every access indexes by the loop's own index, if the statement is a loop.
    indices
        The indices of all accesses as numbers, if each consists of literals; None otherwise.
    """

    axes: Axes | None = None
    indices: list[Place] | None = field(default_factory=list)

    def add(self, axes: Axes, place: Place) -> None:
        self.axes = axes if self.axes is None else self.axes & axes
        if self.indices is not None and None not in place:
            self.indices.append(place)
        else:
            self.indices = None


@dataclass(slots=True)
class _Buffer:
    """The statements that have accessed a buffer so far."""

    allocated: int | None = None
    writers: list[tuple[int, _Accesses]] = field(default_factory=list)
    readers: list[tuple[int, _Accesses]] = field(default_factory=list)
    # Writers of single elements at literal indices, by index. An element has several writers if
    # each of them writes in a branch.
    at_literals: dict[Place, list[int]] = field(default_factory=dict)


class Dependences:
    """The dependence edges between the statements of a block.

    Parameters
    ----------
    program, statements
        The program, and the block.
    labels
        A label for each statement: only loops with equal labels may fuse.
    stands_for
        For the indices of loops that have been fused into others, the indices of these.
    late_lengths
        For each buffer with computed lengths, these lengths.

    Attributes
    ----------
    froms, tos
        The source and the target of each edge, as positions in the block.
    can_fuse
        Whether each edge is still satisfied if both ends are loops that are fused.
    """

    def __init__(
        self,
        program: Program,
        statements: Sequence[Statement],
        labels: Sequence[int],
        stands_for: Mapping[Value, Value],
        late_lengths: Mapping[BufferId, Sequence[Value]],
    ) -> None:
        self.froms: list[int] = []
        self.tos: list[int] = []
        self.can_fuse: list[bool] = []
        self._program = program
        self._labels = labels
        self._stands_for = stands_for
        self._late_lengths = late_lengths
        self._definitions: dict[Value, int] = {}
        self._buffers: dict[BufferId, _Buffer] = {}
        # The last check that depends on no loop, the last that does, and the statements whose
        # results depend on loops.
        self._early_check: int | None = None
        self._late_check: int | None = None
        self._is_late: set[int] = set()
        self._last_draw: int | None = None
        for number, statement in enumerate(statements):
            if isinstance(statement, model.Op):
                self._add_op(number, statement)
            else:
                self._add(number, statement)

    def _edge(self, source: int, target: int, *, can_fuse: bool = False) -> None:
        if source != target:
            self.froms.append(source)
            self.tos.append(target)
            self.can_fuse.append(can_fuse)

    def _add_op(self, number: int, op: model.Op) -> None:
        definitions, is_late = self._definitions, self._is_late
        for source in dict.fromkeys([definitions[arg] for arg in op.args if arg in definitions]):
            self._edge(source, number)
            if source in is_late:
                is_late.add(number)
        definitions[op.out] = number

    def _add(self, number: int, statement: Statement) -> None:
        is_compound = isinstance(statement, model.For | model.If)
        definitions = self._definitions
        sources: dict[int, None] = {}
        reads: dict[BufferId, _Accesses] = {}
        writes: dict[BufferId, _Accesses] = {}
        is_guarded = draws = False
        index = statement.index if isinstance(statement, model.For) else None
        for one in statements_in([statement]) if is_compound else (statement,):
            for value in used_by(one):
                if value in definitions:
                    sources[definitions[value]] = None
            if isinstance(one, model.Op):
                continue
            if isinstance(one, model.Load):
                self._after_allocation(number, one.buffer, sources)
                self._reach(reads, one.buffer, one.index, index)
                is_guarded = is_guarded or one.is_guarded
            elif isinstance(one, model.Store):
                self._after_allocation(number, one.buffer, sources)
                self._reach(writes, one.buffer, one.index, index)
                is_guarded = is_guarded or one.is_guarded
                if self._program.buffers[one.buffer].kind == "input":
                    is_guarded = True
            elif isinstance(one, model.Call):
                is_guarded = True
                for (buffer, prefix), role in zip(
                    one.operands, ROUTINES[one.name].operands, strict=True
                ):
                    self._after_allocation(number, buffer, sources)
                    if role.is_read:
                        self._reach(reads, buffer, prefix, index)
                    if role.is_written:
                        self._reach(writes, buffer, prefix, index)
            elif isinstance(one, model.Draw):
                # A draw changes the generator, so it must not run if an earlier check fails.
                is_guarded = draws = True
            elif isinstance(one, model.Allocate):
                self._after_allocation(number, one.buffer, sources)
                self._buffers.setdefault(one.buffer, _Buffer()).allocated = number
        if draws:
            # Two inputs may be the same generator, so all draws keep their order.
            if self._last_draw is not None:
                sources[self._last_draw] = None
            self._last_draw = number
        for source in sources:
            self._edge(source, number)
        for buffer, accesses in reads.items():
            self._read(number, buffer, accesses)
        for buffer, accesses in writes.items():
            self._write(number, buffer, accesses)
        is_compound = is_compound or isinstance(statement, model.Call | model.Draw)
        late = is_compound or any(source in self._is_late for source in sources)
        self._order_checks(number, statement, late=late, is_guarded=is_guarded)
        if late or reads:
            self._is_late.add(number)
        for value in defined_by(statement):
            self._definitions[value] = number

    def _order_checks(
        self, number: int, statement: Statement, *, late: bool, is_guarded: bool
    ) -> None:
        is_check = isinstance(statement, model.Check)
        has_check = is_check or (
            isinstance(statement, model.For | model.If)
            and any(isinstance(one, model.Check) for one in statements_in([statement]))
        )
        if (
            is_check or isinstance(statement, model.For | model.If)
        ) and self._early_check is not None:
            self._edge(self._early_check, number)
        if (has_check and late) or is_guarded:
            for check in (self._early_check, self._late_check):
                if check is not None:
                    self._edge(check, number)
        if has_check and late:
            self._late_check = number
        elif is_check:
            self._early_check = number

    def _reach(
        self,
        accesses: dict[BufferId, _Accesses],
        buffer: BufferId,
        index: tuple[Value, ...],
        loop_index: Value | None,
    ) -> None:
        found = accesses.get(buffer)
        if found is None:
            found = accesses[buffer] = _Accesses()
        stands_for, constants = self._stands_for, self._program.constants
        axes = frozenset(
            [axis for axis, at in enumerate(index) if stands_for.get(at, at) == loop_index]
            if loop_index is not None
            else ()
        )
        # A routine accesses the whole subarray at its prefix.
        place: Place = tuple([constants.get(at) for at in index])
        n_whole = len(self._program.buffers[buffer].lengths) - len(index)
        found.add(axes, (*place, *[None] * n_whole))

    def _may_meet(self, number: int, one: _Accesses, source: int, other: _Accesses) -> bool:
        """Whether two loops may fuse although both access a buffer that one of them writes."""
        same = self._labels[number] == self._labels[source]
        return bool(same and one.axes and other.axes and one.axes & other.axes)

    def _after_allocation(self, number: int, buffer: BufferId, sources: dict[int, None]) -> None:
        """Order an access after the buffer's allocation, or the definitions of its lengths."""
        found = self._buffers.get(buffer)
        if found is not None and found.allocated is not None:
            if found.allocated != number:
                sources[found.allocated] = None
            return
        for length in self._late_lengths.get(buffer, ()):
            source = self._definitions.get(length)
            if source is not None:
                sources[source] = None

    def _read(self, number: int, buffer: BufferId, accesses: _Accesses) -> None:
        about = self._buffers.setdefault(buffer, _Buffer())
        if accesses.indices is not None and self._program.buffers[buffer].is_once:
            for index in accesses.indices:
                for source in about.at_literals.get(index, ()):
                    self._edge(source, number)
        else:
            for sources in about.at_literals.values():
                for source in sources:
                    self._edge(source, number)
        for source, other in about.writers:
            self._edge(source, number, can_fuse=self._may_meet(number, accesses, source, other))
        if not self._program.buffers[buffer].is_once:
            about.readers.append((number, accesses))

    def _write(self, number: int, buffer: BufferId, accesses: _Accesses) -> None:
        about = self._buffers.setdefault(buffer, _Buffer())
        if self._program.buffers[buffer].is_once:
            if accesses.indices is not None:
                for index in dict.fromkeys(accesses.indices):
                    about.at_literals.setdefault(index, []).append(number)
            else:
                about.writers.append((number, accesses))
            return
        about.writers = self._not_behind(number, accesses, about.writers)
        about.readers = self._not_behind(number, accesses, about.readers)
        about.writers.append((number, accesses))

    def _not_behind(
        self, number: int, accesses: _Accesses, before: list[tuple[int, _Accesses]]
    ) -> list[tuple[int, _Accesses]]:
        """Order a write after earlier accesses; return those that later writes must still follow.

        An access that must end before this write also ends before all later writes, by
        transitivity.
        """
        rest = []
        for source, other in before:
            can_fuse = self._may_meet(number, accesses, source, other)
            self._edge(source, number, can_fuse=can_fuse)
            if can_fuse or source == number:
                rest.append((source, other))
        return rest
