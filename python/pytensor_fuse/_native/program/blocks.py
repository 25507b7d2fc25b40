"""Blocks and loops that are being written."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytensor_fuse._native.program.model import BufferId, Carry, Reduction, Statement, Value


class Block:
    """A block that is being written, on the stack of open ones.

    Attributes
    ----------
    statements
        What is in it so far.
    depth
        Its place on the stack.
    is_open
        Whether more may come.
    written
        The buffers that it writes, those of closed blocks inside of it too.
    """

    __slots__ = ("depth", "is_open", "statements", "written")

    def __init__(self, depth: int) -> None:
        self.statements: list[Statement] = []
        self.depth = depth
        self.is_open = True
        self.written: set[BufferId] = set()


class Loop:
    """A loop that is being written: its index, what it reduces and carries, and what ends it."""

    __slots__ = ("carries", "index", "known", "reductions", "until")

    def __init__(self, index: Value) -> None:
        self.index = index
        self.reductions: list[Reduction] = []
        self.carries: list[Carry] = []
        self.until: Value | None = None
        # The results of reductions, by all that they are made of.
        self.known: dict[tuple[str, Value, Value], Value] = {}
