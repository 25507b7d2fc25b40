"""Innermost loops, written out with vectors: the lanes of one are iterations side by side.

On processors with masks the last, partial vector runs through the same instructions with some lanes
off; on others a loop over single elements does the rest. Both give each element the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._native.emission.lanes import Lanes
from pytensor_fuse._native.emission.operations import emit_operation, splat
from pytensor_fuse._native.emission.places import Places
from pytensor_fuse._native.emission.types import MEMORY, REGISTER, literal, suffix, vector
from pytensor_fuse._native.program.combiners import identity
from pytensor_fuse._native.program.model import ITEM_SIZES, For, Load, Op, Store

if TYPE_CHECKING:
    from pytensor_fuse._native.emission.accesses import Movement
    from pytensor_fuse._native.emission.functions import FunctionEmitter
    from pytensor_fuse._native.program.model import BufferId, Reduction, Value


class VectorLoop:
    """Writes one loop.

    Parameters
    ----------
    function
        The function that it is in.
    loop
        The loop, whose iterations can run side by side.
    movement
        What its values do from one iteration to the next.
    extent
        Its extent, if that is known.
    lanes
        How many lanes its vectors have.
    """

    def __init__(
        self,
        function: FunctionEmitter,
        loop: For,
        movement: Movement,
        extent: int | None,
        lanes: int,
    ) -> None:
        self._f = function
        self._w = function.w
        self._loop = loop
        self._movement = movement
        self._lanes = lanes
        self._is_masked = function.machine.has_masks and (
            extent is None or extent % self._lanes != 0
        )
        self._extent = extent
        self._values = Lanes(function, movement, lanes)
        self._places = Places(function, loop, movement, self._values)

    def emit(self) -> None:
        """Write the loop, and what is left of it for single elements."""
        f, w, loop, lanes = self._f, self._w, self._loop, self._lanes
        extent = f.operands[loop.extent]
        whole = extent
        if not f.machine.has_masks and (self._extent is None or self._extent % lanes):
            whole = self._whole_vectors(extent)
        rest_of_lines, w.lines = w.lines, []
        states = self._run(whole)
        loop_lines, w.lines = w.lines, rest_of_lines
        w.lines += loop_lines
        totals = [
            self._total(reduction, state)
            for reduction, state in zip(loop.reductions, states, strict=True)
        ]
        if whole is extent:
            for reduction, total in zip(loop.reductions, totals, strict=True):
                f.operands[reduction.out] = total
            return
        f.scalar_loop(loop, whole, totals)

    def _whole_vectors(self, extent: str) -> str:
        """Return how many iterations fill vectors; none if the extent is below 0."""
        if self._extent is not None:
            return str(max(self._extent, 0) // self._lanes * self._lanes)
        whole = self._w.let(f"and i64 {extent}, {-self._lanes}")
        is_there = self._w.let(f"icmp sgt i64 {extent}, 0")
        return self._w.let(f"select i1 {is_there}, i64 {whole}, i64 0")

    def _is_ordered(self, reduction: Reduction) -> bool:
        """Whether the terms must be combined one after the other."""
        program = self._f.program
        return (
            program.dtypes[reduction.out][0] == "f"
            and reduction.combiner in ("add", "mul")
            and not program.reassociates
        )

    def _run(self, extent: str) -> list[str]:
        f, w, loop, lanes = self._f, self._w, self._loop, self._lanes
        dtypes = f.program.dtypes
        before_label = w.label
        head, body, end = (w.fresh_label(hint) for hint in ("vectors", "lanes", "rest"))
        index, following = w.name(), w.name()
        states = [w.name() for _ in loop.reductions]
        f.operands[loop.index] = index
        goes_on = w.name()
        head_lines = [
            f"  {goes_on} = icmp slt i64 {index}, {extent}",
            f"  br i1 {goes_on}, label %{body}, label %{end}",
            f"{body}:",
        ]
        w.label = body
        f.open_scope()
        if self._is_masked:
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
        w.do(f"{following} = add nuw nsw i64 {index}, {lanes}")
        w.do(f"br label %{head}")
        latch = w.label
        body_lines, w.lines = w.lines, []
        firsts = []
        for reduction in loop.reductions:
            dtype = dtypes[reduction.out]
            if self._is_ordered(reduction):
                firsts.append((REGISTER[dtype], f.operands[reduction.initial]))
            else:
                start = splat(dtype, identity(reduction.combiner, dtype), lanes)
                firsts.append((vector(REGISTER[dtype], lanes), start))
        phis = [f"  {index} = phi i64 [ 0, %{before_label} ], [ {following}, %{latch} ]"]
        for state, (kind, first), then in zip(states, firsts, nexts, strict=True):
            phis.append(
                f"  {state} = phi {kind} [ {first}, %{before_label} ], [ {then}, %{latch} ]"
            )
        w.lines = [
            *self._values.before,
            f"  br label %{head}",
            f"{head}:",
            *phis,
            *head_lines,
            *body_lines,
        ]
        w.begin(end)
        return states

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
        f, w, lanes = self._f, self._w, self._lanes
        if load.out in self._movement.steps:
            f.operands[load.out] = f.load(load)
            return
        dtype = f.program.buffers[load.buffer].dtype
        if self._places.step(load.buffer, load.index) == 1:
            got = self._contiguous(load.buffer, load.index)
        else:
            got = self._gathered(load.buffer, load.index)
        if dtype == "bool":
            got = w.let(f"icmp ne <{lanes} x i8> {got}, zeroinitializer")
        self._values.define(load.out, got)

    def _contiguous(self, buffer: BufferId, index: tuple[Value, ...]) -> str:
        f, w, lanes = self._f, self._w, self._lanes
        dtype = f.program.buffers[buffer].dtype
        kind, align = vector(MEMORY[dtype], lanes), ITEM_SIZES[dtype]
        if buffer in f.packed:
            return w.let(f"load {kind}, ptr {self._places.in_pack(buffer)}, align {align}")
        place = f.address(buffer, index)
        if not self._is_masked or f.is_padded(buffer):
            return w.let(f"load {kind}, ptr {place}, align {align}")
        name = f"llvm.masked.load.{suffix(MEMORY[dtype], lanes)}.p0"
        w.declare(f"declare {kind} @{name}(ptr, i32, <{lanes} x i1>, {kind})")
        # Lanes that are off compute, too. Zero is a rare argument of logarithms, which take longer
        # for it; and an index may be 0.
        off = splat(dtype, 1.0, lanes) if dtype[0] == "f" else "zeroinitializer"
        return w.let(
            f"call {kind} @{name}(ptr {place}, i32 {align}, <{lanes} x i1> {self._values.mask}, "
            f"{kind} {off})"
        )

    def _gathered(self, buffer: BufferId, index: tuple[Value, ...]) -> str:
        """Load an element for each lane: one after the other is quicker than a gather."""
        f, w = self._f, self._w
        kind = MEMORY[f.program.buffers[buffer].dtype]
        pointer, out = f.pointer(buffer), "poison"
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
            old = (
                self._contiguous(store.buffer, store.index)
                if step == 1
                else self._gathered(store.buffer, store.index)
            )
            if dtype == "bool":
                old = w.let(f"icmp ne <{lanes} x i8> {old}, zeroinitializer")
            value = emit_operation(w, store.combiner, dtype, dtype, [old, value], lanes)
        if dtype == "bool":
            value = w.let(f"zext <{lanes} x i1> {value} to <{lanes} x i8>")
        if step != 1:
            places = self._places.addresses(store.buffer, store.index)
            name = f"llvm.masked.scatter.{suffix(MEMORY[dtype], lanes)}.v{lanes}p0"
            w.declare(f"declare void @{name}({kind}, <{lanes} x ptr>, i32, <{lanes} x i1>)")
            w.do(
                f"call void @{name}({kind} {value}, <{lanes} x ptr> {places}, i32 {align}, "
                f"<{lanes} x i1> {self._values.mask_or_all()})"
            )
            return
        place = f.address(store.buffer, store.index)
        if not self._is_masked:
            w.do(f"store {kind} {value}, ptr {place}, align {align}")
            return
        name = f"llvm.masked.store.{suffix(MEMORY[dtype], lanes)}.p0"
        w.declare(f"declare void @{name}({kind}, ptr, i32, <{lanes} x i1>)")
        w.do(
            f"call void @{name}({kind} {value}, ptr {place}, i32 {align}, "
            f"<{lanes} x i1> {self._values.mask})"
        )

    def _accumulate(self, store: Store) -> None:
        """Combine elements at computed places: where they may be the same, one after the other."""
        f, w, lanes = self._f, self._w, self._lanes
        dtype = f.program.buffers[store.buffer].dtype
        value = self._values.vector(store.value)
        kind, element = vector(REGISTER[dtype], lanes), REGISTER[dtype]
        if self._is_masked:
            # Lanes that are off leave the first element as it is, to the bit.
            neutral = splat(dtype, identity(store.combiner, dtype), lanes)
            bits = f"<{lanes} x i1> {self._values.mask}"
            value = w.let(f"select {bits}, {kind} {value}, {kind} {neutral}")
        places = [
            w.let(f"getelementptr {MEMORY[dtype]}, ptr {f.pointer(store.buffer)}, i64 {at}")
            for at in self._places.of_each(store.buffer, store.index)
        ]
        if dtype != "bool" and self._places.are_apart(store.buffer, store.index):
            self._accumulate_pairs(store, value, places)
            return
        for lane, place in enumerate(places):
            # Reading lanes back from memory, where they have just been stored, takes longer.
            one = w.let(f"extractelement {kind} {value}, i64 {lane}")
            old = w.let(f"load {MEMORY[dtype]}, ptr {place}")
            if dtype == "bool":
                old = w.let(f"icmp ne i8 {old}, 0")
            new = emit_operation(w, store.combiner, dtype, dtype, [old, one], 1)
            if dtype == "bool":
                new = w.let(f"zext {element} {new} to i8")
            w.do(f"store {MEMORY[dtype]} {new}, ptr {place}")

    def _accumulate_pairs(self, store: Store, value: str, places: list[str]) -> None:
        """Combine elements that lie apart, two in one instruction."""
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
            new = emit_operation(w, store.combiner, dtype, dtype, [old, terms], 2)
            for lane in range(2):
                one = w.let(f"extractelement {pair} {new}, i64 {lane}")
                w.do(f"store {element} {one}, ptr {places[first + lane]}")

    # Reductions

    def _combined(self, reduction: Reduction, state: str) -> str:
        """Return the state of a reduction after one more vector of terms."""
        w, lanes = self._w, self._lanes
        dtype = self._f.program.dtypes[reduction.out]
        term = self._values.vector(reduction.term)
        kind = vector(REGISTER[dtype], lanes)
        if self._is_masked:
            neutral = splat(dtype, identity(reduction.combiner, dtype), lanes)
            term = w.let(
                f"select <{lanes} x i1> {self._values.mask}, {kind} {term}, {kind} {neutral}"
            )
        if not self._is_ordered(reduction):
            return emit_operation(w, reduction.combiner, dtype, dtype, [state, term], lanes)
        for lane in range(lanes):
            one = w.let(f"extractelement {kind} {term}, i64 {lane}")
            state = emit_operation(w, reduction.combiner, dtype, dtype, [state, one], 1)
        return state

    def _total(self, reduction: Reduction, state: str) -> str:
        """Return a reduction's result after the last vector."""
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
            state = emit_operation(w, reduction.combiner, dtype, dtype, parts, half)
            lanes = half
        number = f.program.constants.get(reduction.initial)
        neutral = identity(reduction.combiner, dtype)
        if number is not None and literal(dtype, number) == literal(dtype, neutral):
            return state
        return emit_operation(w, reduction.combiner, dtype, dtype, [initial, state], 1)
