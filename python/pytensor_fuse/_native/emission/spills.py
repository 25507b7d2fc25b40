"""Spills in long functions: values are reloaded before each loop that needs them.

LLVM keeps a value in a register from its definition to its last use, and the time of register
allocation grows with the number of values times the number of blocks in their live ranges: a graph
that joins a hundred arrays took five seconds. In functions of many loops, the values and addresses
of the outermost block are therefore kept in memory between its statements, at the cost of a load
each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytensor_fuse._native.emission.layout import first_lengths
from pytensor_fuse._native.emission.types import REGISTER
from pytensor_fuse._native.program.model import Allocate, Call, For, If, Load, Store
from pytensor_fuse._native.program.walking import accessed_by, defined_by, statements_in, used_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytensor_fuse._native.emission.functions import FunctionEmitter
    from pytensor_fuse._native.program.model import BufferId, Program, Statement, Value

# With fewer loops, register allocation is fast in any case.
_MANY: Final = 16


class Spills:
    """Loads values and addresses of the outermost block near the statements that use them.

    Parameters
    ----------
    function
        The function, whose `operands` and `pointers` are replaced where they are reloaded.
    """

    def __init__(self, function: FunctionEmitter) -> None:
        self._program = program = function.program
        self._w, self._operands = function.w, function.operands
        self._pointers = function.pointers
        n_nested = sum(isinstance(one, For | If) for one in program.body)
        self.is_long = n_nested > _MANY
        self._slots: dict[Value, str] = {}
        self._buffer_slots: dict[BufferId, str] = {}
        self._near: set[Value] = set()
        self._near_buffers: set[BufferId] = set()
        self._was_nested = False
        self._first_lengths = first_lengths(program)
        if self.is_long:
            self._slots = {value: f"%far{value}" for value in self._far()}

    def _far(self) -> list[Value]:
        """Return the values that have a loop between their definition and a use."""
        homes: dict[Value, int] = {}
        found: dict[Value, None] = {}
        stretch = 0
        for statement in self._program.body:
            is_nested = isinstance(statement, For | If)
            stretch += is_nested
            for value in used_within(self._program, statement):
                if homes.get(value, stretch) != stretch:
                    found[value] = None
            stretch += is_nested
            homes.update(dict.fromkeys(defined_by(statement), stretch))
        return list(found)

    def declare(self) -> None:
        """Allocate the stack slots, in the entry block of the function."""
        for value, slot in self._slots.items():
            self._w.do(f"{slot} = alloca {REGISTER[self._program.dtypes[value]]}")
        if self.is_long:
            for buffer, about in enumerate(self._program.buffers):
                if about.kind in ("temporary", "output"):
                    self._buffer_slots[buffer] = f"%at{buffer}"
                    self._w.do(f"%at{buffer} = alloca ptr")

    def before(self, statement: Statement) -> bool:
        """Load the values that a statement of the outermost block uses.

        Returns
        -------
        bool
            Whether the values loaded for earlier statements are to be loaded again.
        """
        is_nested = isinstance(statement, For | If)
        is_apart = is_nested or self._was_nested
        if is_apart:
            self._near.clear()
            self._near_buffers.clear()
        self._was_nested = is_nested
        if is_nested:
            self._part()
        self.bring(used_within(self._program, statement))
        for buffer in accessed_by(statement):
            self._bring_buffer(buffer)
        return is_apart

    def _part(self) -> None:
        """Begin a block with two predecessors.

        To analyse a loop, LLVM walks back over the conditions of all loops before it, up to the
        first block without a single predecessor. This block ends the walk.
        """
        w = self._w
        never, go_on = w.fresh_label("never"), w.fresh_label("part")
        is_never = w.let("icmp eq ptr %context, null")
        w.do(f"br i1 {is_never}, label %{never}, label %{go_on}")
        w.begin(never)
        w.do(f"br label %{go_on}")
        w.begin(go_on)

    def bring_tables(self) -> None:
        """Load all arguments of the call: the addresses of arrays, and their lengths."""
        for buffer, about in enumerate(self._program.buffers):
            if about.kind in ("input", "constant"):
                self._bring_buffer(buffer)
        self.bring([*self._program.lengths])

    def bring(self, values: Iterator[Value] | Sequence[Value]) -> None:
        """Load the values that are not loaded already."""
        w, program = self._w, self._program
        for value in values:
            if value in self._near:
                continue
            self._near.add(value)
            if value in program.lengths:
                buffer, axis = program.lengths[value]
                at = self._first_lengths[buffer] + axis
                place = w.let(f"getelementptr i64, ptr %dims, i64 {at}")
                self._operands[value] = w.let(f"load i64, ptr {place}")
            elif value in self._slots and value in self._operands:
                kind = REGISTER[program.dtypes[value]]
                self._operands[value] = w.let(f"load {kind}, ptr {self._slots[value]}")

    def _bring_buffer(self, buffer: BufferId) -> None:
        if buffer in self._near_buffers:
            return
        self._near_buffers.add(buffer)
        w, about = self._w, self._program.buffers[buffer]
        if about.kind in ("input", "constant"):
            table = "%inputs" if about.kind == "input" else "%constants"
            place = w.let(f"getelementptr ptr, ptr {table}, i64 {about.position}")
            self._pointers[buffer] = w.let(f"load ptr, ptr {place}")
        elif buffer in self._pointers:
            self._pointers[buffer] = w.let(f"load ptr, ptr {self._buffer_slots[buffer]}")

    def after(self, statement: Statement) -> None:
        """Store the values that a statement of the outermost block defines."""
        w = self._w
        for value in defined_by(statement):
            self._near.add(value)
            slot = self._slots.get(value)
            if slot is not None:
                kind = REGISTER[self._program.dtypes[value]]
                w.do(f"store {kind} {self._operands[value]}, ptr {slot}")
        if isinstance(statement, Allocate) and statement.buffer in self._pointers:
            self.keep_pointer(statement.buffer)

    def keep_pointer(self, buffer: BufferId) -> None:
        """Store the address of a buffer that has just been computed in the outermost block."""
        slot = self._buffer_slots.get(buffer)
        if slot is not None:
            self._near_buffers.add(buffer)
            self._w.do(f"store ptr {self._pointers[buffer]}, ptr {slot}")


def used_within(program: Program, statement: Statement) -> Iterator[Value]:
    """Yield the values that a statement and its nested ones use, including lengths of buffers."""
    for inner in statements_in([statement]):
        yield from used_by(inner)
        if isinstance(inner, Load | Store | Allocate):
            yield from program.buffers[inner.buffer].lengths
        elif isinstance(inner, Call):
            for operand in inner.operands:
                if operand.prefix:
                    yield from program.buffers[operand.buffer].lengths
