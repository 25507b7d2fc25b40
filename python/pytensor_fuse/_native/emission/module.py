"""Emission of a program's LLVM module: one function, and the functions that it calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pytensor_fuse._native.emission.calls import Calls
from pytensor_fuse._native.emission.functions import FunctionEmitter, LoopNote
from pytensor_fuse._native.emission.packing import NOT_PACKED
from pytensor_fuse._native.emission.writer import Writer
from pytensor_fuse._native.mathematics import Target

if TYPE_CHECKING:
    from pytensor_fuse._native.emission.machine import Machine
    from pytensor_fuse._native.emission.packing import Packing
    from pytensor_fuse._native.passes.placement import Placement
    from pytensor_fuse._native.program.model import Program

ENTRY: Final = "entry"


class Module(NamedTuple):
    """The LLVM text of a program.

    Attributes
    ----------
    text
        The module, which contains no address and nothing specific to the process.
    externals
        The symbols that must be resolved to addresses before the code is loaded.
    loops
        A note on each innermost loop.
    """

    text: str
    externals: tuple[str, ...]
    loops: tuple[LoopNote, ...]


def emit_module(
    program: Program,
    placement: Placement,
    machine: Machine,
    *,
    uses_library: bool = True,
    has_padding: bool = False,
    packing: Packing = NOT_PACKED,
) -> Module:
    """Write a program as LLVM text.

    Parameters
    ----------
    program
        The program, which must pass the verifier.
    placement
        The placement of its temporary buffers.
    machine
        The processor.
    uses_library
        Whether mathematical functions come from the vector library.
    has_padding
        Whether each constant is followed by readable padding of the size of a vector.
    packing
        The packed constants.

    Returns
    -------
    Module
        The module, a deterministic function of the arguments.
    """
    calls = Calls(Target(fma=machine.has_fma), uses_library=uses_library)
    writer = Writer(calls)
    emitter = FunctionEmitter(
        program, machine, placement, writer, has_padding=has_padding, packing=packing
    )
    lines = emitter.emit()
    bits = machine.vector_bits
    head = (
        f"define i64 @{ENTRY}(ptr %inputs, ptr %dims, ptr %constants, ptr %context) "
        f'nounwind "min-legal-vector-width"="{bits}" "prefer-vector-width"="{bits}" {{'
    )
    text = "\n".join([*calls.texts(), head, *lines, "}", ""])
    return Module(text, tuple(calls.externals), tuple(emitter.notes))
