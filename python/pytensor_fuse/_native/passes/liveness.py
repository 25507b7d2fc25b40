"""Liveness: the statements, values and buffers on which results, checks and draws depend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._native.program.external.routines import ROUTINES
from pytensor_fuse._native.program.model import Call, Check, Draw, For, If, Load, Op, Store
from pytensor_fuse._native.program.walking import used_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.program.model import BufferId, Program, Statement, Value


class Live:
    """The live statements, values and buffers of a program.

    Blocks are traversed backwards: a value is used after its definition, except for the carries of
    loops. A store may be needed by a load that precedes it, in a later iteration of a loop around
    both; then the whole program is traversed again.

    Attributes
    ----------
    statements
        The statements that must stay.
    values
        The values that are used.
    buffers
        The buffers that are read, returned or passed as inputs.
    """

    def __init__(self, program: Program) -> None:
        self.statements: set[Statement] = set()
        self.values: set[Value] = set()
        self.buffers: set[BufferId] = {
            number
            for number, about in enumerate(program.buffers)
            if about.kind in ("output", "input")
        }
        self._program = program
        # Buffers with a store that was dead when the traversal reached it.
        self._passed: set[BufferId] = set()
        self._is_again = False
        for result in program.results:
            if result.kind == "buffer":
                self._need_buffer(result.number)
        self._block(program.body)
        while self._is_again:
            self._is_again = False
            self._block(program.body)

    def _need_buffer(self, buffer: BufferId) -> None:
        self.buffers.add(buffer)
        self.values.update(self._program.buffers[buffer].lengths)
        if buffer in self._passed:
            self._passed.remove(buffer)
            self._is_again = True

    def _block(self, statements: Sequence[Statement]) -> bool:
        """Mark the live parts of a block; return whether it has any live statement."""
        needed, values, buffers = self.statements, self.values, self.buffers
        stays = False
        for statement in reversed(statements):
            if isinstance(statement, Op):
                if statement.out not in values:
                    continue
                values.update(statement.args)
            elif isinstance(statement, Load):
                if statement.out not in values:
                    continue
                values.update(statement.index)
                self._need_buffer(statement.buffer)
            elif isinstance(statement, Store):
                if statement.buffer not in buffers:
                    self._passed.add(statement.buffer)
                    continue
                values.update(used_by(statement))
            elif isinstance(statement, For):
                if not self._loop(statement):
                    continue
            elif isinstance(statement, If):
                if not self._branch(statement):
                    continue
            elif isinstance(statement, Call):
                if not self._call(statement):
                    continue
            elif isinstance(statement, Check | Draw):
                # A draw is always live, because it changes the state of its generator.
                values.update(used_by(statement))
            elif statement.buffer in buffers:
                # Accesses come after the allocation, so the traversal has met them already.
                values.update(self._program.buffers[statement.buffer].lengths)
            else:
                self._passed.add(statement.buffer)
                continue
            needed.add(statement)
            stays = True
        return stays

    def _call(self, call: Call) -> bool:
        written = [
            operand.buffer
            for operand, role in zip(call.operands, ROUTINES[call.name].operands, strict=True)
            if role.is_written
        ]
        if call.out not in self.values and self.buffers.isdisjoint(written):
            self._passed.update(written)
            return False
        self.values.update(used_by(call))
        for operand in call.operands:
            self._need_buffer(operand.buffer)
        return True

    def _loop(self, loop: For) -> bool:
        values = self.values
        stays = False
        for reduction in loop.reductions:
            if reduction.out in values:
                values.update((reduction.initial, reduction.term))
                stays = True
        carries = loop.carries
        while True:
            rest = []
            for carry in carries:
                if carry.out in values or carry.inner in values:
                    values.update((carry.initial, carry.following, carry.inner))
                    stays = True
                else:
                    rest.append(carry)
            stays = self._block(loop.body) or stays
            # The body may use further carried values.
            carries = rest
            if not any(carry.inner in values for carry in carries):
                break
        if stays:
            values.add(loop.extent)
            if loop.until is not None and loop.until not in values:
                # The exit condition may depend on more carries.
                values.add(loop.until)
                self._loop(loop)
        return stays

    def _branch(self, branch: If) -> bool:
        stays = False
        for choice in branch.choices:
            if choice.out in self.values:
                self.values.update((choice.then, choice.otherwise))
                stays = True
        stays = self._block(branch.then) or stays
        stays = self._block(branch.otherwise) or stays
        if stays:
            self.values.add(branch.condition)
        return stays
