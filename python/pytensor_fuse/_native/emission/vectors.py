"""Vectorization of innermost loops: each lane of a vector runs one iteration.

On processors with masks, the last, partial vector runs through the same instructions with some
lanes inactive; on others, a scalar loop handles the remainder. Each element has the same bits
either way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytensor_fuse._native.emission.lanes import Lanes
from pytensor_fuse._native.emission.operations import combined, emit_operation, splat
from pytensor_fuse._native.emission.places import Places
from pytensor_fuse._native.emission.types import MEMORY, REGISTER, literal, suffix, vector
from pytensor_fuse._native.program.model import ITEM_SIZES, For, Load, Op, Store
from pytensor_fuse._native.program.operations import identity

if TYPE_CHECKING:
    from pytensor_fuse._native.emission.accesses import Movement
    from pytensor_fuse._native.emission.functions import FunctionEmitter, LoopNote
    from pytensor_fuse._native.program.model import BufferId, Reduction, Value


# The accumulators of each reduction in a loop that is bound by their latency: a power of two.
_COPIES: Final = 4
# The most statements of such a loop, and the operations that take no longer than an addition.
_SHORTEST: Final = 8
_QUICK: Final = ("add", "sub", "mul", "neg", "abs", "maximum", "minimum", "and", "or", "not")
# The elements of a block: a multiple of the elements of an iteration.
_BLOCK: Final = 4096


class VectorLoop:
    """Writes one loop with vectors.

    Parameters
    ----------
    function
        The function around the loop.
    loop
        The loop, whose iterations can run in parallel.
    movement
        The changes of the loop's values between iterations.
    note
        The note on it, which has its extent and the number of lanes of its vectors.
    """

    def __init__(
        self, function: FunctionEmitter, loop: For, movement: Movement, note: LoopNote
    ) -> None:
        self._f = function
        self._w = function.w
        self._loop = loop
        self._movement = movement
        self._note = note
        self._lanes, self._extent = lanes, extent = note.lanes, note.extent
        self._is_masked = function.machine.has_masks and (extent is None or extent % lanes != 0)
        self._values = Lanes(function, movement, lanes)
        self._places = Places(function, loop, movement, self._values)

    def emit(self) -> None:
        """Write the loop, and the scalar loop for the remainder if there is one."""
        f, loop, lanes = self._f, self._loop, self._lanes
        extent = f.operands[loop.extent]
        whole = extent
        if not f.machine.has_masks and (self._extent is None or self._extent % lanes):
            whole = self._rounded_down(extent, lanes)
        states = self._run(whole)
        totals = [
            self._total(reduction, state)
            for reduction, state in zip(loop.reductions, states, strict=True)
        ]
        if whole is extent:
            for reduction, total in zip(loop.reductions, totals, strict=True):
                f.operands[reduction.out] = total
            return
        f.scalar_loop(loop, whole, totals)

    def _is_ordered(self, reduction: Reduction) -> bool:
        """Whether the terms of a reduction must be combined in sequence."""
        program = self._f.program
        return (
            program.dtypes[reduction.out][0] == "f"
            and reduction.combiner in ("add", "mul")
            and not program.reassociates
        )

    def _run(self, extent: str) -> list[str]:
        """Write the vector loops; return the state of each reduction after them."""
        states = [self._start(reduction) for reduction in self._loop.reductions]
        if not self._is_short():
            return self._in_blocks(extent, states, 1)
        batches = self._rounded_down(extent, _COPIES * self._lanes)
        copies = self._in_blocks(batches, states * _COPIES, _COPIES)
        return self._vectors(batches, extent, self._joined(copies), 1)

    def _is_short(self) -> bool:
        """Whether the latency of reductions bounds the loop, so that more accumulators help."""
        loop = self._loop
        if self._extent is not None and self._extent < 2 * _COPIES * self._lanes:
            return False
        if not loop.reductions or any(self._is_ordered(one) for one in loop.reductions):
            return False
        return len(loop.body) <= _SHORTEST and all(
            one.name in _QUICK
            if isinstance(one, Op)
            else isinstance(one, Load) and self._places.step(one.buffer, one.index) in (0, 1)
            for one in loop.body
        )

    def _rounded_down(self, extent: str, step: int) -> str:
        """Return an extent rounded down to a multiple of a power of two; at least 0."""
        if self._extent is not None:
            return str(max(self._extent, 0) // step * step)
        whole = self._w.let(f"and i64 {extent}, {-step}")
        is_there = self._w.let(f"icmp sgt i64 {extent}, 0")
        return self._w.let(f"select i1 {is_there}, i64 {whole}, i64 0")

    def _start(self, reduction: Reduction) -> str:
        """Return the state of a reduction before the first vector."""
        f = self._f
        if self._is_ordered(reduction):
            return f.operands[reduction.initial]
        dtype = f.program.dtypes[reduction.out]
        return splat(dtype, identity(reduction.combiner, dtype), self._lanes)

    def _kind(self, reduction: Reduction) -> str:
        """Return the type of the state of a reduction."""
        element = REGISTER[self._f.program.dtypes[reduction.out]]
        return element if self._is_ordered(reduction) else vector(element, self._lanes)

    def _joined(self, states: list[str]) -> list[str]:
        """Combine the accumulators of each reduction into one, adjacent ones first."""
        loop, dtypes, n = self._loop, self._f.program.dtypes, len(self._loop.reductions)
        while len(states) > n:
            pairs = []
            for first in range(0, len(states), 2 * n):
                for k, reduction in enumerate(loop.reductions):
                    dtype, combiner = dtypes[reduction.out], reduction.combiner
                    two = [states[first + k], states[first + n + k]]
                    pairs.append(combined(self._w, combiner, dtype, two, self._lanes))
            states = pairs
        return states

    def _in_blocks(self, end: str, states: list[str], copies: int) -> list[str]:
        """Write vector loops in which long sums are added up block by block.

        The error of a sequential sum grows with the number of terms. With blocks, it grows with the
        number of terms of a block plus the number of blocks.
        """
        loop, w = self._loop, self._w
        dtypes = self._f.program.dtypes
        has_sums = any(
            one.combiner == "add" and dtypes[one.out][0] == "f" for one in loop.reductions
        )
        if (
            not has_sums
            or any(self._is_ordered(one) for one in loop.reductions)
            or (self._extent is not None and self._extent <= 2 * _BLOCK)
        ):
            return self._vectors("0", end, states, copies)
        # Totals are kept in memory, so that the sums of a block have the registers.
        reductions = loop.reductions * copies
        totals = [self._f.slot(self._kind(reduction)) for reduction in reductions]
        for total, reduction, start in zip(totals, reductions, states, strict=True):
            w.do(f"store {self._kind(reduction)} {start}, ptr {total}")
        before = w.label
        head, body, done = (w.fresh_label(hint) for hint in ("blocks", "block", "summed"))
        w.do(f"br label %{head}")
        w.begin(head)
        at = len(w.lines)
        index, following = w.name(), w.name()
        w.lines.append("")
        goes_on = w.let(f"icmp slt i64 {index}, {end}")
        w.do(f"br i1 {goes_on}, label %{body}, label %{done}")
        w.begin(body)
        w.do(f"{following} = add nuw nsw i64 {index}, {_BLOCK}")
        is_whole = w.let(f"icmp slt i64 {following}, {end}")
        block_end = w.let(f"select i1 {is_whole}, i64 {following}, i64 {end}")
        of_block = self._vectors(index, block_end, states, copies)
        for total, reduction, state in zip(totals, reductions, of_block, strict=True):
            kind, dtype = self._kind(reduction), dtypes[reduction.out]
            old = w.let(f"load {kind}, ptr {total}")
            new = combined(w, reduction.combiner, dtype, [old, state], self._lanes)
            w.do(f"store {kind} {new}, ptr {total}")
        latch = w.label
        w.do(f"br label %{head}")
        w.lines[at] = f"  {index} = phi i64 [ 0, %{before} ], [ {following}, %{latch} ]"
        w.begin(done)
        return [
            w.let(f"load {self._kind(reduction)}, ptr {total}")
            for total, reduction in zip(totals, reductions, strict=True)
        ]

    def _vectors(self, first: str, end: str, starts: list[str], copies: int) -> list[str]:
        """Write a loop over vectors.

        Parameters
        ----------
        first, end
            The operands of its first index, and of the index after the last.
        starts
            The states of the reductions before the loop: all of them for the first copy of the
            body, then all of them for the next.
        copies
            The number of vectors per iteration, each of which has its own accumulators.

        Returns
        -------
        list of str
            The states after the loop.
        """
        f, w, loop, lanes = self._f, self._w, self._loop, self._lanes
        before_label = w.label
        head, body, done = (w.fresh_label(hint) for hint in ("vectors", "lanes", "rest"))
        self._note.blocks += (head, body)
        index, following = w.name(), w.name()
        states = [w.name() for _ in starts]
        goes_on = w.name()
        lines_before, w.lines = w.lines, []
        w.label = body
        n = len(loop.reductions)
        nexts: list[str] = []
        self._values = Lanes(f, self._movement, lanes)
        for copy in range(copies):
            at = index if copy == 0 else w.let(f"add nuw nsw i64 {index}, {copy * lanes}")
            nexts += self._body(at, states[copy * n : (copy + 1) * n], is_whole=copies > 1)
        w.do(f"{following} = add nuw nsw i64 {index}, {copies * lanes}")
        w.do(f"br label %{head}")
        latch = w.label
        body_lines, w.lines = w.lines, lines_before
        phis = [f"  {index} = phi i64 [ {first}, %{before_label} ], [ {following}, %{latch} ]"]
        kinds = [self._kind(reduction) for reduction in loop.reductions] * copies
        for state, kind, start, then in zip(states, kinds, starts, nexts, strict=True):
            phis.append(
                f"  {state} = phi {kind} [ {start}, %{before_label} ], [ {then}, %{latch} ]"
            )
        w.lines += [
            *self._values.before,
            f"  br label %{head}",
            f"{head}:",
            *phis,
            f"  {goes_on} = icmp slt i64 {index}, {end}",
            f"  br i1 {goes_on}, label %{body}, label %{done}",
            f"{body}:",
            *body_lines,
        ]
        w.begin(done)
        return states

    def _body(self, index: str, states: list[str], *, is_whole: bool) -> list[str]:
        """Write the body for one vector; return the states of the reductions after it."""
        f, w, loop, lanes = self._f, self._w, self._loop, self._lanes
        f.operands[loop.index] = index
        self._values.begin()
        self._places = Places(f, loop, self._movement, self._values)
        f.open_scope()
        if self._is_masked and not is_whole:
            left = w.let(f"sub i64 {f.operands[loop.extent]}, {index}")
            spread = self._values.spread("i64", left, w.lines)
            numbers = ", ".join([f"i64 {lane}" for lane in range(lanes)])
            self._values.mask = w.let(f"icmp sgt <{lanes} x i64> {spread}, <{numbers}>")
        for statement in loop.body:
            if isinstance(statement, Op):
                self._op(statement)
            elif isinstance(statement, Load):
                self._load(statement)
            elif isinstance(statement, Store):
                self._store(statement)
        nexts = [
            self._combined(reduction, state)
            for reduction, state in zip(loop.reductions, states, strict=True)
        ]
        f.close_scope()
        return nexts

    # Values

    def _op(self, op: Op) -> None:
        f = self._f
        dtypes, lanes = f.program.dtypes, self._lanes
        dtype, given = dtypes[op.out], dtypes[op.args[-1]]
        if op.out in self._movement.steps:
            operands = [f.operands[arg] for arg in op.args]
            f.operands[op.out] = emit_operation(self._w, op.name, dtype, given, operands, 1)
            return
        vectors = [self._values.vector(arg) for arg in op.args]
        out = emit_operation(self._w, op.name, dtype, given, vectors, lanes)
        self._values.define(op.out, out)

    # Memory

    def _load(self, load: Load) -> None:
        if load.out in self._movement.steps:
            self._f.operands[load.out] = self._f.load(load)
            return
        self._values.define(load.out, self._loaded(load.buffer, load.index))

    def _loaded(self, buffer: BufferId, index: tuple[Value, ...]) -> str:
        """Load the elements of all lanes."""
        is_contiguous = self._places.step(buffer, index) == 1
        got = (self._contiguous if is_contiguous else self._gathered)(buffer, index)
        if self._f.program.buffers[buffer].dtype == "bool":
            got = self._w.let(f"icmp ne <{self._lanes} x i8> {got}, zeroinitializer")
        return got

    def _contiguous(self, buffer: BufferId, index: tuple[Value, ...]) -> str:
        f, w, lanes = self._f, self._w, self._lanes
        dtype = f.program.buffers[buffer].dtype
        kind, align = vector(MEMORY[dtype], lanes), ITEM_SIZES[dtype]
        if buffer in f.packed:
            return w.let(f"load {kind}, ptr {self._places.in_pack(buffer)}, align {align}")
        place = f.address(buffer, index)
        if not self._values.mask or f.is_padded(buffer):
            return w.let(f"load {kind}, ptr {place}, align {align}")
        name = f"llvm.masked.load.{suffix(MEMORY[dtype], lanes)}.p0"
        w.declare(f"declare {kind} @{name}(ptr, i32, <{lanes} x i1>, {kind})")
        # Inactive lanes compute, too. Floats are 1, because functions such as logarithms take the
        # slow path of rare arguments for 0; integers are 0, which is a valid index.
        off = splat(dtype, 1.0, lanes) if dtype[0] == "f" else "zeroinitializer"
        return w.let(
            f"call {kind} @{name}(ptr {place}, i32 {align}, <{lanes} x i1> {self._values.mask}, "
            f"{kind} {off})"
        )

    def _gathered(self, buffer: BufferId, index: tuple[Value, ...]) -> str:
        """Load each lane's element by a scalar load, which is faster than a gather."""
        f, w = self._f, self._w
        kind = MEMORY[f.program.buffers[buffer].dtype]
        pointer, out = f.pointers[buffer], "poison"
        for lane, at in enumerate(self._places.of_each(buffer, index)):
            place = w.let(f"getelementptr {kind}, ptr {pointer}, i64 {at}")
            one = w.let(f"load {kind}, ptr {place}")
            whole = vector(kind, self._lanes)
            out = w.let(f"insertelement {whole} {out}, {kind} {one}, i64 {lane}")
        return out

    def _store(self, store: Store) -> None:
        f, w, lanes = self._f, self._w, self._lanes
        dtype = f.program.buffers[store.buffer].dtype
        step = self._places.step(store.buffer, store.index)
        if store.combiner and step is None:
            self._accumulate(store)
            return
        value = self._values.vector(store.value)
        kind, align = vector(MEMORY[dtype], lanes), ITEM_SIZES[dtype]
        if store.combiner:
            old = self._loaded(store.buffer, store.index)
            value = combined(w, store.combiner, dtype, [old, value], lanes)
        if dtype == "bool":
            value = w.let(f"zext <{lanes} x i1> {value} to <{lanes} x i8>")
        of = suffix(MEMORY[dtype], lanes)
        if step != 1:
            places, pointers = self._places.addresses(store.buffer, store.index), f"<{lanes} x ptr>"
            name, mask = f"llvm.masked.scatter.{of}.v{lanes}p0", self._values.mask_or_all()
        else:
            places, pointers = f.address(store.buffer, store.index), "ptr"
            name, mask = f"llvm.masked.store.{of}.p0", self._values.mask
        if not mask:
            w.do(f"store {kind} {value}, ptr {places}, align {align}")
            return
        w.declare(f"declare void @{name}({kind}, {pointers}, i32, <{lanes} x i1>)")
        w.do(
            f"call void @{name}({kind} {value}, {pointers} {places}, i32 {align}, "
            f"<{lanes} x i1> {mask})"
        )

    def _accumulate(self, store: Store) -> None:
        """Combine elements at computed indices: in sequence if lanes may have equal indices."""
        f, w, lanes = self._f, self._w, self._lanes
        dtype = f.program.buffers[store.buffer].dtype
        value = self._values.vector(store.value)
        kind, element = vector(REGISTER[dtype], lanes), REGISTER[dtype]
        if self._values.mask:
            # Inactive lanes leave the element at their index unchanged, to the bit.
            neutral = splat(dtype, identity(store.combiner, dtype), lanes)
            bits = f"<{lanes} x i1> {self._values.mask}"
            value = w.let(f"select {bits}, {kind} {value}, {kind} {neutral}")
        places = [
            w.let(f"getelementptr {MEMORY[dtype]}, ptr {f.pointers[store.buffer]}, i64 {at}")
            for at in self._places.of_each(store.buffer, store.index)
        ]
        if dtype != "bool" and self._places.are_apart(store.buffer, store.index):
            self._accumulate_pairs(store, value, places)
            return
        for lane, place in enumerate(places):
            # Storing the vector and reloading its lanes from memory takes longer.
            one = w.let(f"extractelement {kind} {value}, i64 {lane}")
            old = w.let(f"load {MEMORY[dtype]}, ptr {place}")
            if dtype == "bool":
                old = w.let(f"icmp ne i8 {old}, 0")
            new = combined(w, store.combiner, dtype, [old, one], 1)
            if dtype == "bool":
                new = w.let(f"zext {element} {new} to i8")
            w.do(f"store {MEMORY[dtype]} {new}, ptr {place}")

    def _accumulate_pairs(self, store: Store, value: str, places: list[str]) -> None:
        """Combine elements two at a time, if the lanes of each pair have different indices."""
        w, dtype = self._w, self._f.program.buffers[store.buffer].dtype
        kind, element = vector(REGISTER[dtype], self._lanes), REGISTER[dtype]
        pair = vector(element, 2)
        for first in range(0, self._lanes, 2):
            old = "poison"
            for lane in range(2):
                one = w.let(f"load {element}, ptr {places[first + lane]}")
                old = w.let(f"insertelement {pair} {old}, {element} {one}, i64 {lane}")
            picks = f"<2 x i32> <i32 {first}, i32 {first + 1}>"
            terms = w.let(f"shufflevector {kind} {value}, {kind} poison, {picks}")
            new = combined(w, store.combiner, dtype, [old, terms], 2)
            for lane in range(2):
                one = w.let(f"extractelement {pair} {new}, i64 {lane}")
                w.do(f"store {element} {one}, ptr {places[first + lane]}")

    # Reductions

    def _combined(self, reduction: Reduction, state: str) -> str:
        """Combine the state of a reduction with a vector of terms."""
        w, lanes = self._w, self._lanes
        dtype = self._f.program.dtypes[reduction.out]
        term = self._values.vector(reduction.term)
        kind = vector(REGISTER[dtype], lanes)
        if self._values.mask:
            neutral = splat(dtype, identity(reduction.combiner, dtype), lanes)
            term = w.let(
                f"select <{lanes} x i1> {self._values.mask}, {kind} {term}, {kind} {neutral}"
            )
        if not self._is_ordered(reduction):
            return combined(w, reduction.combiner, dtype, [state, term], lanes)
        for lane in range(lanes):
            one = w.let(f"extractelement {kind} {term}, i64 {lane}")
            state = combined(w, reduction.combiner, dtype, [state, one], 1)
        return state

    def _total(self, reduction: Reduction, state: str) -> str:
        """Return a reduction's result, combined over the lanes of its final state."""
        f, w, lanes = self._f, self._w, self._lanes
        dtype = f.program.dtypes[reduction.out]
        initial = f.operands[reduction.initial]
        if self._is_ordered(reduction):
            return state
        while lanes > 1:
            kind, half = vector(REGISTER[dtype], lanes), lanes // 2
            parts = []
            for first in (0, half):
                picks = ", ".join([f"i32 {first + lane}" for lane in range(half)])
                parts.append(
                    w.let(
                        f"shufflevector {kind} {state}, {kind} poison, <{half} x i32> <{picks}>"
                        if half > 1
                        else f"extractelement {kind} {state}, i64 {first}"
                    )
                )
            state = combined(w, reduction.combiner, dtype, parts, half)
            lanes = half
        number = f.program.constants.get(reduction.initial)
        neutral = identity(reduction.combiner, dtype)
        if number is not None and literal(dtype, number) == literal(dtype, neutral):
            return state
        return combined(w, reduction.combiner, dtype, [initial, state], 1)
