"""Loop fusion: loops over the same range are merged where their accesses allow it.

The core's typed fusion reorders the statements of a block so that loops of equal extent are
adjacent. Two loops may fuse if no statement must run after one and before the other, and if each
iteration of the second depends only on the same iteration of the first. Loop nests are fused with
loop nests, and then the loops inside of them are fused in turn.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pytensor_fuse._core import schedule_loops
from pytensor_fuse._native.passes.dependences import Dependences
from pytensor_fuse._native.passes.rewrite import rewritten
from pytensor_fuse._native.program.model import Draw, For, If
from pytensor_fuse._native.program.walking import statements_in, with_blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.program.model import BufferId, Program, Statement, Value

# The label of statements that are never fused.
NEVER: Final = (1 << 32) - 1


class Fused:
    """The blocks of a program after loop fusion.

    Attributes
    ----------
    body
        The outermost block.
    merged
        For each fused loop, the indices of the loops merged into it, which equal its own index.
    """

    def __init__(self, program: Program) -> None:
        self.merged: dict[For, list[Value]] = {}
        self._program = program
        # The index that replaces the index of each loop that was merged into another.
        self._stands_for: dict[Value, Value] = {}
        given = {*program.constants, *program.lengths}
        self._late_lengths: dict[BufferId, list[Value]] = {}
        for number, about in enumerate(program.buffers):
            late = [length for length in about.lengths if length not in given]
            if late:
                self._late_lengths[number] = late
        self.body = self._block(program.body)

    def _block(self, statements: Sequence[Statement]) -> list[Statement]:
        if not any(isinstance(one, For | If) for one in statements):
            return list(statements)
        return [self._one(group) for group in self._scheduled(statements)]

    def _scheduled(self, statements: Sequence[Statement]) -> list[list[Statement]]:
        """Return the statements in execution order, in groups that are to be fused."""
        labels = self._labels(statements)
        kinds = [label for label in labels if label != NEVER]
        if len(set(kinds)) == len(kinds):
            # No two loops have the same label.
            return [[statement] for statement in statements]
        edges = Dependences(self._program, statements, labels, self._stands_for, self._late_lengths)
        groups = schedule_loops(labels, edges.froms, edges.tos, edges.can_fuse)
        together: dict[int, list[Statement]] = {}
        for number, group in enumerate(groups):
            together.setdefault(group, []).append(statements[number])
        return [together[group] for group in sorted(together)]

    @staticmethod
    def _labels(statements: Sequence[Statement]) -> list[int]:
        """Return a label for each statement; only loops with equal labels may fuse."""
        kinds: dict[tuple[Value, bool], int] = {}
        labels = []
        for statement in statements:
            if isinstance(statement, For) and _may_fuse(statement):
                is_outer = any(isinstance(one, For | If) for one in statement.body)
                labels.append(kinds.setdefault((statement.extent, is_outer), len(kinds)))
            else:
                labels.append(NEVER)
        return labels

    def _one(self, group: list[Statement]) -> Statement:
        """Fuse the statements of a group into one, and recurse into its blocks."""
        first = group[0]
        if isinstance(first, If):
            return with_blocks(first, self._block)
        if not isinstance(first, For):
            return first
        loops = [one for one in group if isinstance(one, For)]
        body: list[Statement] = []
        for loop in loops:
            if loop is not first:
                self._stands_for[loop.index] = first.index
            body += loop.body
        reductions = [reduction for loop in loops for reduction in loop.reductions]
        fused = replace(first, body=self._block(body), reductions=reductions)
        if len(loops) > 1:
            self.merged[fused] = [loop.index for loop in loops[1:]]
        return fused


def _may_fuse(loop: For) -> bool:
    """Whether a loop may be fused with others.

    Draws are sequential, so a loop with draws cannot be vectorized, and neither could any loop that
    is fused with it.
    """
    if loop.carries or loop.until is not None:
        return False
    return not any(isinstance(one, Draw) for one in statements_in(loop.body))


def fused(program: Program) -> Program:
    """Return an equivalent program in which loops over the same range are fused where possible.

    Parameters
    ----------
    program
        The program, which is not changed.
    """
    found = Fused(program)
    reordered = program.with_body(found.body)
    return rewritten(reordered, found.merged)
