"""C wrapper around the machine code of a program, in an LLVM module of its own.

The machine code requests memory from the context of a call. Here the context lies on the stack:
outputs are in the caller's memory, and scratch memory comes from `malloc` and is freed before the
function returns. The only state of the module is a table of addresses, which is filled before the
first call.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from pytensor_fuse._native.emission.c.support import (
    DOES_NOT_FIT,
    N_DETAILS,
    NO_MEMORY,
    SUPPORT,
    WRONG_LENGTH,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.emission.layout import Argument, Returned

# The table of addresses, and its definition when the addresses are filled in later.
TABLE: Final = "fuse.table"
N_ADDRESSES: Final = 3
UNBOUND: Final = f"@{TABLE} = global [{N_ADDRESSES} x ptr] zeroinitializer"

_PARAMETERS: Final = (
    "ptr %inputs, ptr %lengths, ptr %outputs, ptr %capacities, ptr %output_lengths, ptr %details"
)


class CInterface(NamedTuple):
    """The inputs and outputs of the machine code.

    Attributes
    ----------
    inputs
        All inputs, in order.
    outputs
        All outputs, in order.
    n_bound
        The number of bound inputs, which are the last ones: they come from the table and not from
        the caller, and all of their lengths are known.
    """

    inputs: tuple[Argument, ...]
    outputs: tuple[Returned, ...]
    n_bound: int = 0

    @property
    def given(self) -> tuple[Argument, ...]:
        """The inputs that the caller passes."""
        return self.inputs[: len(self.inputs) - self.n_bound]


def emit_c_module(
    interface: CInterface,
    symbol: str = "call",
    *,
    table: str = UNBOUND,
    functions: Sequence[str] = (),
) -> str:
    """Write a module whose C function calls the machine code of a program.

    The function is ``i64 symbol(ptr inputs, ptr lengths, ptr outputs, ptr capacities,
    ptr output_lengths, ptr details)``: the addresses of the inputs, the lengths of all their axes,
    the addresses of the output buffers and their capacities in elements; then a buffer for the
    lengths of all axes of the outputs, or null, and a buffer for the details of a failure, or null.
    It returns 0, the number of the program's failure, or one of the codes of `support`.

    Parameters
    ----------
    interface
        The inputs and outputs of the machine code.
    symbol
        The function's name, a C identifier.
    table
        The definition of the table of addresses: of the machine code, of the table of its
        constants, and of the table of bound inputs.
    functions
        Definitions of further functions, which may call this one.

    Returns
    -------
    str
        The LLVM text, which contains no address and nothing specific to the process.
    """
    lines = _Function(interface).lines()
    head = f"define i64 @{symbol}({_PARAMETERS}) nounwind {{"
    return "\n".join([table, *_tables(interface), SUPPORT, head, *lines, "}", *functions, ""])


def _tables(interface: CInterface) -> list[str]:
    axes = [
        (length, position, axis)
        for position, one in enumerate(interface.given)
        for axis, length in enumerate(one.lengths)
    ]
    ndims = [one.ndim for one in interface.outputs]
    return [
        _row("known", [length for length, _, _ in axes]),
        _row("whose", [position for _, position, _ in axes]),
        _row("axes", [axis for _, _, axis in axes]),
        _row("ndims", ndims),
        _row("firsts", [*accumulate(ndims, initial=0)]),
        _row("bound_lengths", _bound_lengths(interface)),
    ]


def _bound_lengths(interface: CInterface) -> list[int]:
    bound = interface.inputs[len(interface.given) :]
    return [length for one in bound for length in one.lengths]


def _row(name: str, numbers: Sequence[int]) -> str:
    told = ", ".join([f"i64 {number}" for number in numbers])
    return f"@fuse.{name} = internal constant [{len(numbers)} x i64] [{told}]"


class _Function:
    """Writes the body of the function."""

    def __init__(self, interface: CInterface) -> None:
        self._interface = interface
        self._lines: list[str] = []
        self._n_given = sum(len(one.lengths) for one in interface.given)

    def _do(self, *lines: str) -> None:
        """Append instructions, and labels, which end with a colon."""
        self._lines += [line if line.endswith(":") else f"  {line}" for line in lines]

    @staticmethod
    def _field(name: str, number: int) -> str:
        return f"%{name} = getelementptr %fuse.frame, ptr %frame, i32 0, i32 {number}"

    def lines(self) -> list[str]:
        interface = self._interface
        n_kept = max(sum(one.ndim for one in interface.outputs), 1)
        n_lengths = max(sum(len(one.lengths) for one in interface.inputs), 1)
        self._do(
            "entry:",
            "%frame = alloca %fuse.frame, align 64",
            f"%own_kept = alloca [{n_kept} x i64]",
            f"%own_lengths = alloca [{n_lengths} x i64]",
            f"%own_inputs = alloca [{max(len(interface.inputs), 1)} x ptr]",
            "store %fuse.frame zeroinitializer, ptr %frame",
            "%keeps = icmp ne ptr %output_lengths, null",
            "%kept = select i1 %keeps, ptr %output_lengths, ptr %own_kept",
        )
        fields = ("@fuse.allocate", "@fuse.scratch", None, None, "%outputs", "%capacities", "%kept")
        for number, operand in enumerate(fields):
            if operand is not None:
                place = self._field(f"field{number}", number)
                self._do(place, f"store ptr {operand}, ptr %field{number}")
        self._do(
            f"%agree = call i1 @fuse.agree(ptr %frame, ptr %lengths, i64 {self._n_given})",
            "br i1 %agree, label %agreed, label %end",
            "agreed:",
        )
        # The return codes, each with the LLVM block that jumps to the end with it.
        ends = [(WRONG_LENGTH, "entry")]
        self._arguments()
        self._copies(ends)
        self._do(
            f"%entry_place = getelementptr ptr, ptr @{TABLE}, i64 0",
            "%machine_code = load ptr, ptr %entry_place",
            f"%constants_place = getelementptr ptr, ptr @{TABLE}, i64 1",
            "%constants = load ptr, ptr %constants_place",
            f"%code = call i64 %machine_code(ptr {self._data}, ptr {self._dims}, ptr %constants, "
            "ptr %frame)",
            "%is_done = icmp eq i64 %code, 0",
            "br i1 %is_done, label %done, label %failed",
            "failed:",
            self._field("refusal_place", 7),
            "%refusal = load i64, ptr %refusal_place",
            "%is_refusal = icmp ne i64 %refusal, 0",
            "%why = select i1 %is_refusal, i64 %refusal, i64 %code",
            "br label %end",
        )
        label = self._hand_out(ends)
        codes = [*[(str(code), place) for code, place in ends], ("%why", "failed"), ("0", label)]
        told = ", ".join([f"[{code}, %{place}]" for code, place in codes])
        self._do(
            "end:",
            f"%result = phi i64 {told}",
            "call void @fuse.release(ptr %frame)",
            "%is_fine = icmp eq i64 %result, 0",
            "%is_untold = icmp eq ptr %details, null",
            "%is_silent = or i1 %is_fine, %is_untold",
            "br i1 %is_silent, label %return, label %tell",
            "tell:",
            self._field("all_details", 2),
            f"call void @llvm.memcpy.p0.p0.i64(ptr %details, ptr %all_details, "
            f"i64 {8 * N_DETAILS}, i1 false)",
            "br label %return",
            "return:",
            "ret i64 %result",
        )
        return self._lines

    def _arguments(self) -> None:
        """Merge given and bound inputs into one table, or use the caller's table if possible."""
        interface = self._interface
        self._data, self._dims = "%inputs", "%lengths"
        n_given = len(interface.given)
        if interface.n_bound or any(one.is_overwritten for one in interface.inputs):
            self._data = "%own_inputs"
            self._copy("%own_inputs", "%inputs", 8 * n_given)
        if interface.n_bound:
            self._dims = "%own_lengths"
            self._copy("%own_lengths", "%lengths", 8 * self._n_given)
            self._do(
                f"%bound_place = getelementptr ptr, ptr @{TABLE}, i64 2",
                "%bound = load ptr, ptr %bound_place",
                f"%bound_inputs = getelementptr ptr, ptr %own_inputs, i64 {n_given}",
                f"%bound_lengths = getelementptr i64, ptr %own_lengths, i64 {self._n_given}",
            )
            self._copy("%bound_inputs", "%bound", 8 * interface.n_bound)
            lengths = 8 * len(_bound_lengths(interface))
            self._copy("%bound_lengths", "@fuse.bound_lengths", lengths)

    def _copy(self, to: str, origin: str, n_bytes: int) -> None:
        if n_bytes:
            self._do(
                f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {origin}, i64 {n_bytes}, i1 false)"
            )

    def _copies(self, ends: list[tuple[int, str]]) -> None:
        """Copy the inputs that the machine code overwrites."""
        label, first = "agreed", 0
        for position, one in enumerate(self._interface.inputs):
            if one.is_overwritten:
                mine = f"copy{position}"
                self._do(
                    f"%{mine}.place = getelementptr ptr, ptr {self._data}, i64 {position}",
                    f"%{mine}.data = load ptr, ptr %{mine}.place",
                    f"%{mine}.lengths = getelementptr i64, ptr {self._dims}, i64 {first}",
                    f"%{mine} = call ptr @fuse.copied(ptr %frame, ptr %{mine}.data, "
                    f"ptr %{mine}.lengths, i64 {len(one.lengths)}, "
                    f"i64 {np.dtype(one.dtype).itemsize})",
                    f"store ptr %{mine}, ptr %{mine}.place",
                    f"%{mine}.is_missing = icmp eq ptr %{mine}, null",
                    f"br i1 %{mine}.is_missing, label %end, label %{mine}.got",
                    f"{mine}.got:",
                )
                ends.append((NO_MEMORY, label))
                label = f"{mine}.got"
            first += len(one.lengths)

    def _hand_out(self, ends: list[tuple[int, str]]) -> str:
        """Copy the outputs that have no buffer of their own; return the last block's label."""
        interface = self._interface
        label = "done"
        self._do("done:")
        firsts = [0, *accumulate(len(one.lengths) for one in interface.inputs)]
        output_firsts = [0, *accumulate(one.ndim for one in interface.outputs)]
        for position, one in enumerate(interface.outputs):
            if one.kind == "buffer":
                continue
            if one.kind == "input":
                data, lengths, first = self._data, self._dims, firsts[one.number]
            else:
                data, lengths, first = "%outputs", "%kept", output_firsts[one.number]
            mine = f"output{position}"
            self._do(
                f"%{mine}.place = getelementptr ptr, ptr {data}, i64 {one.number}",
                f"%{mine}.data = load ptr, ptr %{mine}.place",
                f"%{mine}.lengths = getelementptr i64, ptr {lengths}, i64 {first}",
                f"%{mine} = call i1 @fuse.handed(ptr %frame, i64 {position}, ptr %{mine}.data, "
                f"ptr %{mine}.lengths, i64 {one.ndim}, i64 {np.dtype(one.dtype).itemsize})",
                f"br i1 %{mine}, label %{mine}.got, label %end",
                f"{mine}.got:",
            )
            ends.append((DOES_NOT_FIT, label))
            label = f"{mine}.got"
        self._do("br label %end")
        return label
