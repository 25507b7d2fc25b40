"""Blocks and loops under construction."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytensor_fuse._native.program.model import BufferId, Carry, Reduction, Statement, Value


class Block:
    """A block under construction, on the stack of open blocks.

    Attributes
    ----------
    statements
        The statements so far.
    depth
        The position on the stack.
    is_open
        Whether statements may still be added.
    written
        The buffers that it writes, including those that its closed inner blocks write.
    """

    __slots__ = ("depth", "is_open", "statements", "written")

    def __init__(self, depth: int) -> None:
        self.statements: list[Statement] = []
        self.depth = depth
        self.is_open = True
        self.written: set[BufferId] = set()


class Loop:
    """A loop under construction: its index, reductions, carries and exit condition."""

    __slots__ = ("carries", "index", "known", "reductions", "until")

    def __init__(self, index: Value) -> None:
        self.index = index
        self.reductions: list[Reduction] = []
        self.carries: list[Carry] = []
        self.until: Value | None = None
        # The results of reductions, by combiner, initial value and term.
        self.known: dict[tuple[str, Value, Value], Value] = {}
