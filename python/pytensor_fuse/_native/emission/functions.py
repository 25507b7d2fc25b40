"""Emission of a program's function: tables, memory, blocks, loops, branches and checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytensor_fuse._native.emission.accesses import LOOP_INSIDE, Movement, blocker
from pytensor_fuse._native.emission.draws import emit_draw
from pytensor_fuse._native.emission.memory import Memory
from pytensor_fuse._native.emission.operations import combined, emit_operation
from pytensor_fuse._native.emission.packing import NOT_PACKED
from pytensor_fuse._native.emission.routines import emit_call
from pytensor_fuse._native.emission.spills import Spills
from pytensor_fuse._native.emission.types import MEMORY, REGISTER, literal
from pytensor_fuse._native.emission.vectors import VectorLoop
from pytensor_fuse._native.program import model
from pytensor_fuse._native.program.external.draws import DRAWS
from pytensor_fuse._native.program.external.routines import ROUTINES
from pytensor_fuse._native.program.walking import handlers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.emission.machine import Machine
    from pytensor_fuse._native.emission.packing import Packing
    from pytensor_fuse._native.emission.writer import Writer
    from pytensor_fuse._native.passes.placement import Placement
    from pytensor_fuse._native.program.model import BufferId, Program, Statement, Value

# The offset of a failure's details in the context, behind two pointers.
_DETAILS = 16
# The most lines of one LLVM block: LLVM's time grows faster than the length of a block.
_LONGEST_BLOCK = 400


@dataclass(slots=True)
class LoopNote:
    """How a loop was emitted.

    Attributes
    ----------
    extent
        Its extent, or None if it is unknown.
    lanes
        The number of lanes of its vectors; 1 if it runs element by element.
    why_scalar
        The reason why it was not vectorized, if there is one.
    blocks
        The names of the LLVM blocks of its header and its body.
    """

    extent: int | None
    lanes: int
    why_scalar: str | None
    blocks: tuple[str, ...] = ()


class FunctionEmitter:
    """Writes one program as a function.

    Attributes
    ----------
    operands, pointers
        The operand of each value in scope, and of each buffer's address.
    packed
        The place in a pack of each packed constant.
    notes
        A note for each innermost loop, in order.
    """

    def __init__(
        self,
        program: Program,
        machine: Machine,
        placement: Placement,
        writer: Writer,
        *,
        has_padding: bool = False,
        packing: Packing = NOT_PACKED,
    ) -> None:
        self.program = program
        self._has_padding = has_padding
        self.packed = packing.places
        self.machine = machine
        self.w = writer
        self.notes: list[LoopNote] = []
        self.operands: dict[Value, str] = {
            value: literal(program.dtypes[value], number)
            for value, number in program.constants.items()
        }
        self._at = placement.at
        self.pointers: dict[BufferId, str] = {}
        self._spills = Spills(self)
        self._memory = Memory(self, placement)
        self._failures: list[tuple[str, model.Check, list[str]]] = []
        self._flats: dict[tuple[BufferId | None, tuple[Value, ...]], str] = {}
        self._scope: list[list[tuple[BufferId | None, tuple[Value, ...]]]] = [[]]
        self._n_straight = 0
        self._slots: list[str] = []
        self._writers = handlers(self)

    # The function

    def emit(self) -> list[str]:
        """Return the lines of the function's body."""
        w = self.w
        w.lines.append("entry:")
        most = max([1, *[len(one.lengths) for one in self.program.buffers if one.kind == "output"]])
        w.do(f"%lengths = alloca [{most} x i64]")
        self._memory.declare()
        self._spills.declare()
        if not self._spills.is_long:
            self._spills.bring_tables()
        body, at = self.program.body, self._at
        self._outermost(body[:at])
        self._memory.place_temporaries(self._spills)
        self._outermost(body[at:])
        self._return("0")
        for label, check, details in self._failures:
            w.begin(label)
            for number, detail in enumerate(details):
                place = w.let(f"getelementptr i8, ptr %context, i64 {_DETAILS + 8 * number}")
                w.do(f"store i64 {detail}, ptr {place}")
            self._return(str(check.failure + 1))
        if self._memory.may_be_missing:
            w.begin("no_memory")
            self._return("-1")
        # Stack slots are allocated in the entry block, behind its label.
        return [w.lines[0], *self._slots, *w.lines[1:]]

    def slot(self, kind: str) -> str:
        """Return the address of a stack slot for one value of a type."""
        name = self.w.name()
        self._slots.append(f"  {name} = alloca {kind}, align 64")
        return name

    def _return(self, code: str) -> None:
        """Free the function's own memory and return a code."""
        self._memory.give_back()
        self.w.do(f"ret i64 {code}")

    # Blocks

    def _outermost(self, statements: Sequence[Statement]) -> None:
        """Write statements of the outermost block, with reloads in long functions."""
        spills = self._spills
        if not spills.is_long:
            self.block(statements)
            return
        self.open_scope()
        for statement in statements:
            if spills.before(statement):
                self.close_scope()
                self.open_scope()
            self._statement(statement)
            spills.after(statement)
        self.close_scope()

    def block(self, statements: Sequence[Statement]) -> None:
        """Write the statements of a block."""
        self.open_scope()
        for statement in statements:
            self._statement(statement)
        self.close_scope()

    def _statement(self, statement: Statement) -> None:
        self._writers[type(statement)](statement)
        self._split()

    def open_scope(self) -> None:
        """Open a scope; flat indices computed in it are reused until `close_scope`."""
        self._scope.append([])

    def close_scope(self) -> None:
        """Close the innermost scope, and forget its flat indices."""
        for key in self._scope.pop():
            del self._flats[key]

    def _split(self) -> None:
        """Begin a new LLVM block if the current one is long."""
        w = self.w
        if len(w.lines) - self._n_straight > _LONGEST_BLOCK:
            label = w.fresh_label("on")
            w.do(f"br label %{label}")
            w.begin(label)
            self._n_straight = len(w.lines)

    def _op(self, op: model.Op) -> None:
        program, operands = self.program, self.operands
        operands[op.out] = emit_operation(
            self.w,
            op.name,
            program.dtypes[op.out],
            program.dtypes[op.args[-1]],
            [operands[arg] for arg in op.args],
            1,
        )

    def flat(self, buffer: BufferId, index: tuple[Value, ...]) -> str:
        """Return the operand of an element's flat index in a buffer."""
        if not index:
            return "0"
        if len(index) == 1:
            return self.operands[index[0]]
        lengths = self.program.buffers[buffer].lengths
        key = (None, index + lengths[1:])
        found = self._flats.get(key)
        if found is None:
            found = self._flats[key] = self._flattened(index, lengths)
            self._scope[-1].append(key)
        return found

    def _flattened(self, index: tuple[Value, ...], lengths: tuple[Value, ...]) -> str:
        constants, operands = self.program.constants, self.operands
        numbers = [constants.get(at) for at in (*index, *lengths[1:])]
        if None not in numbers:
            flat = 0
            for at, length in zip(index, lengths, strict=True):
                flat = flat * int(constants.get(length, 1)) + int(constants[at])
            return str(flat)
        flat_text = operands[index[0]]
        for at, length in zip(index[1:], lengths[1:], strict=True):
            scaled = self.w.let(f"mul i64 {flat_text}, {operands[length]}")
            flat_text = scaled
            if constants.get(at) != 0:
                flat_text = self.w.let(f"add i64 {scaled}, {operands[at]}")
        return flat_text

    def address(self, buffer: BufferId, index: tuple[Value, ...]) -> str:
        """Return the operand of an element's address."""
        flat = self.flat(buffer, index)
        pointer = self.pointers[buffer]
        if flat == "0":
            return pointer
        kind = MEMORY[self.program.buffers[buffer].dtype]
        return self.w.let(f"getelementptr {kind}, ptr {pointer}, i64 {flat}")

    def _operand(self, operand: model.Operand) -> str:
        """Return the address of a routine's operand."""
        buffer, prefix = operand
        pointer = self.pointers[buffer]
        if not prefix:
            return pointer
        about = self.program.buffers[buffer]
        flat = self._flattened(prefix, about.lengths[: len(prefix)])
        for length in about.lengths[len(prefix) :]:
            flat = self.w.let(f"mul i64 {flat}, {self.operands[length]}")
        return self.w.let(f"getelementptr {MEMORY[about.dtype]}, ptr {pointer}, i64 {flat}")

    def _call(self, call: model.Call) -> None:
        routine = ROUTINES[call.name]
        real = self.program.buffers[routine.real_operand(call).buffer].dtype
        report = emit_call(
            self.w,
            routine,
            real,
            [self._operand(one) for one in call.operands],
            [self.operands[size] for size in call.sizes],
        )
        if call.out is not None:
            self.operands[call.out] = report

    def _draw(self, draw: model.Draw) -> None:
        args = [self.operands[arg] for arg in draw.args]
        address = self.w.let(f"load i64, ptr {self.pointers[draw.generator]}")
        self.operands[draw.out] = emit_draw(self.w, DRAWS[draw.name], address, args)

    def is_padded(self, buffer: BufferId) -> bool:
        """Whether a vector load may extend beyond the end of a buffer."""
        return self._has_padding and self.program.buffers[buffer].kind == "constant"

    def load(self, load: model.Load) -> str:
        """Write a load of one element and return its operand."""
        dtype = self.program.buffers[load.buffer].dtype
        place = self.address(load.buffer, load.index)
        got = self.w.let(f"load {MEMORY[dtype]}, ptr {place}")
        return self.w.let(f"icmp ne i8 {got}, 0") if dtype == "bool" else got

    def _load(self, load: model.Load) -> None:
        self.operands[load.out] = self.load(load)

    def _allocate(self, allocation: model.Allocate) -> None:
        self._memory.allocate(allocation.buffer)

    def _store(self, store: model.Store) -> None:
        w = self.w
        dtype = self.program.buffers[store.buffer].dtype
        value = self.operands[store.value]
        if store.combiner:
            old = self.load(model.Load(-1, store.buffer, store.index))
            value = combined(w, store.combiner, dtype, [old, value], 1)
        if dtype == "bool":
            value = w.let(f"zext i1 {value} to i8")
        place = self.address(store.buffer, store.index)
        w.do(f"store {MEMORY[dtype]} {value}, ptr {place}")

    def _check(self, check: model.Check) -> None:
        w = self.w
        label, go_on = w.fresh_label("fails"), w.fresh_label("holds")
        w.do(f"br i1 {self.operands[check.condition]}, label %{go_on}, label %{label}")
        self._failures.append((label, check, [self.operands[one] for one in check.details]))
        w.begin(go_on)

    def _if(self, branch: model.If) -> None:
        w, dtypes = self.w, self.program.dtypes
        labels = [w.fresh_label(hint) for hint in ("then", "else", "join")]
        w.do(f"br i1 {self.operands[branch.condition]}, label %{labels[0]}, label %{labels[1]}")
        ends = []
        for label, statements in zip(labels, (branch.then, branch.otherwise), strict=False):
            w.begin(label)
            self.block(statements)
            ends.append(w.label)
            w.do(f"br label %{labels[2]}")
        w.begin(labels[2])
        for choice in branch.choices:
            kind = REGISTER[dtypes[choice.out]]
            self.operands[choice.out] = w.let(
                f"phi {kind} [ {self.operands[choice.then]}, %{ends[0]} ], "
                f"[ {self.operands[choice.otherwise]}, %{ends[1]} ]"
            )

    # Loops

    def _for(self, loop: model.For) -> None:
        number = self.program.constants.get(loop.extent)
        extent = None if number is None else int(number)
        movement = Movement(self.program, loop)
        why = blocker(self.program, loop, movement)
        lanes = self.machine.lanes_for(extent) if why is None else 1
        note = LoopNote(extent, lanes, why)
        if why != LOOP_INSIDE:
            self.notes.append(note)
        if lanes > 1:
            VectorLoop(self, loop, movement, note).emit()
        else:
            note.blocks = self.scalar_loop(loop)

    def scalar_loop(
        self, loop: model.For, start: str = "0", initials: Sequence[str] = ()
    ) -> tuple[str, str]:
        """Write a loop that runs element by element.

        Parameters
        ----------
        loop
            The loop.
        start
            The operand of its first index.
        initials
            The initial values of its reductions; if empty, those of the loop.

        Returns
        -------
        tuple of str
            The names of the LLVM blocks of its header and its body.
        """
        w, operands, dtypes = self.w, self.operands, self.program.dtypes
        before, head, body, end = w.label, *[w.fresh_label(h) for h in ("head", "body", "end")]
        w.do(f"br label %{head}")
        w.begin(head)
        # The phi instructions are written after the body, when their incoming values are known.
        at = len(w.lines)
        index, following = w.name(), w.name()
        states = [w.name() for _ in (*loop.reductions, *loop.carries)]
        w.lines.extend([""] * (1 + len(states)))
        operands[loop.index] = index
        for carry, state in zip(loop.carries, states[len(loop.reductions) :], strict=True):
            operands[carry.inner] = state
        goes_on = w.let(f"icmp slt i64 {index}, {operands[loop.extent]}")
        w.do(f"br i1 {goes_on}, label %{body}, label %{end}")
        w.begin(body)
        was_in_loop, w.in_loop = w.in_loop, True
        self.block(loop.body)
        nexts = [
            combined(w, one.combiner, dtypes[one.out], [state, operands[one.term]], 1)
            for one, state in zip(loop.reductions, states, strict=False)
        ]
        nexts += [operands[carry.following] for carry in loop.carries]
        w.in_loop = was_in_loop
        if loop.until is None:
            w.do(f"{following} = add nuw nsw i64 {index}, 1")
        else:
            # To exit, the index becomes the extent, and the loop header ends the loop.
            after = w.let(f"add nuw nsw i64 {index}, 1")
            ends = f"i1 {operands[loop.until]}, i64 {operands[loop.extent]}, i64 {after}"
            w.do(f"{following} = select {ends}")
        latch = w.label
        w.do(f"br label %{head}")
        w.lines[at] = f"  {index} = phi i64 [ {start}, %{before} ], [ {following}, %{latch} ]"
        firsts = list(initials) or [operands[one.initial] for one in loop.reductions]
        firsts += [operands[carry.initial] for carry in loop.carries]
        outs = [one.out for one in loop.reductions] + [one.out for one in loop.carries]
        phis = zip(outs, states, firsts, nexts, strict=True)
        for number, (out, state, first, then) in enumerate(phis, at + 1):
            kind = REGISTER[dtypes[out]]
            w.lines[number] = f"  {state} = phi {kind} [ {first}, %{before} ], [ {then}, %{latch} ]"
            operands[out] = state
        w.begin(end)
        return head, body
