"""Which statements, values and buffers a program's results and checks depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._native.program.external.routines import ROUTINES
from pytensor_fuse._native.program.model import Call, Check, Draw, For, If, Load, Op, Store
from pytensor_fuse._native.program.walking import used_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.program.model import BufferId, Program, Statement, Value


class Live:
    """What is needed.

    Blocks are read backwards: what uses a value comes after what defines it, but for the carries of
    loops. A store may be needed by a load that comes before it, in an iteration that comes after;
    then everything is read once more.

    Attributes
    ----------
    statements
        Those that must stay.
    values
        Those that are used.
    buffers
        Those that are read or returned.
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
        # Buffers of which a store was not needed when it was met.
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
        """Mark what a block needs; return whether it must stay."""
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
                values.update(statement.index)
                values.add(statement.value)
            elif isinstance(statement, For):
                if not self._loop(statement):
                    continue
            elif isinstance(statement, If):
                if not self._branch(statement):
                    continue
            elif isinstance(statement, Check):
                values.add(statement.condition)
                values.update(statement.details)
            elif isinstance(statement, Call):
                if not self._call(statement):
                    continue
            elif isinstance(statement, Draw):
                # The state that it leaves behind is a result.
                values.update(statement.args)
            elif statement.buffer in buffers:
                # What accesses it comes after it; its lengths are needed by then.
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
            # What the body needs may be handed on by another carry.
            carries = rest
            if not any(carry.inner in values for carry in carries):
                break
        if stays:
            values.add(loop.extent)
            if loop.until is not None and loop.until not in values:
                # What decides on the end may need more carries.
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
