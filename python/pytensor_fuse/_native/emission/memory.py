"""Memory of the buffers of a call: scratch memory, individual allocations, and new arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._native.emission.types import literal
from pytensor_fuse._native.passes.placement import MOST_BYTES
from pytensor_fuse._native.program.model import ITEM_SIZES, Allocate
from pytensor_fuse._native.program.walking import statements_in

if TYPE_CHECKING:
    from pytensor_fuse._native.emission.functions import FunctionEmitter
    from pytensor_fuse._native.emission.spills import Spills
    from pytensor_fuse._native.passes.placement import Placement
    from pytensor_fuse._native.program.model import BufferId, Value

# Buffers are aligned to cache lines.
_ALIGNMENT = 64


class Memory:
    """Allocates memory for temporary buffers and outputs.

    Parameters
    ----------
    function
        The function, to whose `pointers` addresses are added.
    placement
        The placement of its temporary buffers.

    Attributes
    ----------
    may_be_missing
        Whether there are jumps to the block that returns because memory is missing.
    """

    def __init__(self, function: FunctionEmitter, placement: Placement) -> None:
        self._program = program = function.program
        self._w, self._operands = function.w, function.operands
        self._pointers = function.pointers
        self._placement = placement
        self.may_be_missing = False
        # Stack slots with the addresses of individually allocated buffers, for freeing them.
        self._slots: dict[BufferId, str] = {
            one.buffer: f"%own{one.buffer}"
            for one in statements_in(program.body)
            if isinstance(one, Allocate)
            and program.buffers[one.buffer].kind == "temporary"
            and one.buffer not in placement.offsets
        }

    def declare(self) -> None:
        """Allocate the slots of addresses, in the entry block of the function."""
        for slot in self._slots.values():
            self._w.do(f"{slot} = alloca ptr")
            self._w.do(f"store ptr null, ptr {slot}")

    def give_back(self) -> None:
        """Free the individually allocated buffers."""
        for slot in self._slots.values():
            own = self._w.let(f"load ptr, ptr {slot}")
            self._w.do(f"call void @free(ptr {own})")

    def place_temporaries(self, spills: Spills) -> None:
        """Request the scratch memory, and compute the addresses of the buffers in it."""
        w, placement = self._w, self._placement
        if placement.total is None:
            # The buffers are empty, but loops of unknown extent may still refer to them.
            self._pointers.update(dict.fromkeys(placement.offsets, "null"))
            for buffer in placement.offsets:
                spills.keep_pointer(buffer)
            return
        needed = [placement.fits, placement.total, *placement.offsets.values()]
        spills.bring([one[1] for one in needed if isinstance(one, tuple)])
        if placement.fits is not None:
            spills.bring([placement.fits])
            self._require(self._operands[placement.fits])
        arena = self._scratch(self._amount(placement.total))
        for buffer, offset in placement.offsets.items():
            place = self._amount(offset)
            self._pointers[buffer] = (
                arena if place == "0" else w.let(f"getelementptr i8, ptr {arena}, i64 {place}")
            )
            spills.keep_pointer(buffer)

    def _amount(self, amount: int | tuple[str, Value]) -> str:
        return str(amount) if isinstance(amount, int) else self._operands[amount[1]]

    def _scratch(self, size: str) -> str:
        w = self._w
        place = w.let("getelementptr i8, ptr %context, i64 8")
        function = w.let(f"load ptr, ptr {place}")
        arena = w.let(f"call ptr {function}(ptr %context, i64 {size})")
        self._require_pointer(arena)
        return arena

    def _require_pointer(self, pointer: str) -> None:
        self._require(self._w.let(f"icmp ne ptr {pointer}, null"))

    def _require(self, is_there: str) -> None:
        """Jump to the return for missing memory unless a condition holds."""
        w = self._w
        self.may_be_missing = True
        go_on = w.fresh_label("got")
        w.do(f"br i1 {is_there}, label %{go_on}, label %no_memory")
        w.begin(go_on)

    def allocate(self, buffer: BufferId) -> None:
        """Allocate a buffer."""
        w, operands = self._w, self._operands
        about = self._program.buffers[buffer]
        if about.kind == "temporary":
            if buffer not in self._placement.offsets:
                self._allocate_own(buffer)
            return
        for axis, length in enumerate(about.lengths):
            place = w.let(f"getelementptr i64, ptr %lengths, i64 {axis}")
            w.do(f"store i64 {operands[length]}, ptr {place}")
        function = w.let("load ptr, ptr %context")
        pointer = w.let(f"call ptr {function}(ptr %context, i64 {about.position}, ptr %lengths)")
        self._require_pointer(pointer)
        self._pointers[buffer] = pointer

    def _allocate_own(self, buffer: BufferId) -> None:
        """Allocate one buffer on its own, as scratch memory may be requested only once."""
        w, about = self._w, self._program.buffers[buffer]
        size = str(ITEM_SIZES[about.dtype])
        # The same size as a float, which does not wrap.
        rough = literal("f64", float(ITEM_SIZES[about.dtype]))
        for length in about.lengths:
            operand = self._operands[length]
            if length not in self._program.lengths and length not in self._program.constants:
                # A negative length fails a later check.
                w.declare("declare i64 @llvm.smax.i64(i64, i64)")
                operand = w.let(f"call i64 @llvm.smax.i64(i64 {operand}, i64 0)")
            size = w.let(f"mul i64 {size}, {operand}")
            number = w.let(f"sitofp i64 {operand} to double")
            rough = w.let(f"fmul double {rough}, {number}")
        self._require(w.let(f"fcmp olt double {rough}, {literal('f64', MOST_BYTES)}"))
        w.declare("declare ptr @malloc(i64)")
        w.declare("declare void @free(ptr)")
        # In a loop, an earlier iteration may have allocated the buffer.
        before = w.let(f"load ptr, ptr {self._slots[buffer]}")
        w.do(f"call void @free(ptr {before})")
        more = w.let(f"add i64 {size}, {_ALIGNMENT - 1}")
        pointer = w.let(f"call ptr @malloc(i64 {more})")
        w.do(f"store ptr {pointer}, ptr {self._slots[buffer]}")
        self._require_pointer(pointer)
        number = w.let(f"ptrtoint ptr {pointer} to i64")
        last = w.let(f"add i64 {number}, {_ALIGNMENT - 1}")
        aligned = w.let(f"and i64 {last}, {-_ALIGNMENT}")
        self._pointers[buffer] = w.let(f"inttoptr i64 {aligned} to ptr")
