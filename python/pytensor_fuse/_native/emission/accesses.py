"""Induction analysis: how indices of loads and stores depend on a loop's index."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

from pytensor_fuse._native.program import model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytensor_fuse._native.program.model import BufferId, Program, Value

# The reason for a loop that serves only as the frame of others.
LOOP_INSIDE: Final = "there is a loop inside"


class Movement:
    """The changes of the values of a loop's body from one iteration to the next.

    Attributes
    ----------
    steps
        The constant increment per iteration of each value that has one; 0 for invariant values.
        Values defined outside of the loop are not included.
    varying
        The values that change in any other way.
    """

    def __init__(self, program: Program, loop: model.For) -> None:
        self.steps: dict[Value, int] = {loop.index: 1}
        self.varying: set[Value] = set()
        self._constants = program.constants
        stored = {one.buffer for one in loop.body if isinstance(one, model.Store)}
        for statement in loop.body:
            if isinstance(statement, model.Op):
                self._move(statement)
            elif isinstance(statement, model.Load):
                moves = any(self.moves(at) for at in statement.index)
                if moves or statement.buffer in stored:
                    self.varying.add(statement.out)
                else:
                    self.steps[statement.out] = 0

    def moves(self, value: Value) -> bool:
        """Whether a value differs between iterations."""
        return value in self.varying or self.steps.get(value, 0) != 0

    def _move(self, op: model.Op) -> None:
        args = op.args
        if not any(self.moves(arg) for arg in args):
            self.steps[op.out] = 0
            return
        if op.name in ("add", "sub", "mul") and not any(arg in self.varying for arg in args):
            one, other = (self.steps.get(arg, 0) for arg in args)
            left, right = (self._constants.get(arg) for arg in args)
            step, factor = (other, left) if right is None else (one, right)
            if op.name != "mul":
                self.steps[op.out] = one + other if op.name == "add" else one - other
                return
            if factor is not None:
                self.steps[op.out] = step * int(factor)
                return
        self.varying.add(op.out)


def blocker(program: Program, loop: model.For, movement: Movement) -> str | None:
    """Return why the iterations of an innermost loop cannot run in parallel, or None."""
    if loop.carries:
        return "an iteration needs the previous one"
    if loop.until is not None:
        return "an iteration decides whether another follows"
    accesses: dict[BufferId, list[model.Load | model.Store]] = {}
    for statement in loop.body:
        if isinstance(statement, model.For):
            return LOOP_INSIDE
        if isinstance(statement, model.If):
            return "there is a branch inside"
        if isinstance(statement, model.Call):
            return "there is a call of a routine inside"
        if isinstance(statement, model.Draw):
            return "each random number depends on the one before"
        if isinstance(statement, model.Check | model.Allocate):
            return "there is a check inside"
        if isinstance(statement, model.Load | model.Store):
            accesses.setdefault(statement.buffer, []).append(statement)
    for buffer, those in accesses.items():
        why = _conflict(program, buffer, those, movement)
        if why is not None:
            return why
    return None


def _conflict(
    program: Program, buffer: BufferId, those: list[model.Load | model.Store], movement: Movement
) -> str | None:
    """Return why the accesses to one buffer cannot run in parallel, or None."""
    stores = [one for one in those if isinstance(one, model.Store)]
    if not stores:
        return None
    index = stores[0].index
    is_even = any(movement.steps.get(at, 0) != 0 for at in index)
    scatters = not is_even and any(at in movement.varying for at in index)
    if not is_even and not scatters:
        return "all iterations write one element"
    if len(those) > 1 and scatters:
        return "elements at computed places are written more than once"
    if any(one.index != index for one in those):
        if program.buffers[buffer].is_once and _are_apart(program, those, movement):
            return None
        return "elements are written and others of the same array accessed"
    return None


def _are_apart(program: Program, those: list[model.Load | model.Store], movement: Movement) -> bool:
    """Whether accesses at different indices never alias: some axis has unequal literals."""
    constants = program.constants
    for one, other in combinations(those, 2):
        pairs = zip(one.index, other.index, strict=True)
        differ = any(a != b and a in constants and b in constants for a, b in pairs)
        if one.index != other.index and not differ:
            return False
    # Each access is at a different element in each iteration.
    return all(any(movement.steps.get(at, 0) != 0 for at in one.index) for one in those)


def flat_step(
    program: Program, buffer: BufferId, index: tuple[Value, ...], steps: Mapping[Value, int]
) -> int | None:
    """Return the increment of a flat index per iteration, in elements; None if unknown.

    No index may be in `Movement.varying`.
    """
    step, stride = 0, 1
    lengths = program.buffers[buffer].lengths
    known = True
    for at, length in zip(reversed(index), reversed(lengths), strict=True):
        own = steps.get(at, 0)
        if own:
            if not known:
                return None
            step += own * stride
        number = program.constants.get(length)
        if number is None:
            known = False
        else:
            stride *= int(number)
    return step
