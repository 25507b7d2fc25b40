"""Compilation of a lowered graph to callable code, through all passes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from pytensor_fuse._native.emission.module import Module, emit_module
from pytensor_fuse._native.emission.packing import packed_constants
from pytensor_fuse._native.passes.fusion import fused
from pytensor_fuse._native.passes.placement import place_temporaries
from pytensor_fuse._native.passes.powers import with_shared_logs
from pytensor_fuse._native.passes.privatization import privatized
from pytensor_fuse._native.passes.rewrite import rewritten
from pytensor_fuse._native.passes.signs import by_signs
from pytensor_fuse._native.runtime.constants import laid_out, positive_constants, read_constants
from pytensor_fuse._native.runtime.externals import address_of
from pytensor_fuse._native.runtime.llvm import host_machine
from pytensor_fuse._native.runtime.objects import code_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from pytensor_fuse._native.emission.packing import Packing
    from pytensor_fuse._native.passes.placement import Placement
    from pytensor_fuse._native.program.model import Program
    from pytensor_fuse._native.runtime.llvm import Code


class Compiled(NamedTuple):
    """A graph as machine code.

    Attributes
    ----------
    program
        The program that was emitted.
    placement
        The locations of its temporary buffers.
    constants
        The arrays of its constants, in the layout that it reads.
    module
        The LLVM text.
    code
        The machine code; callers must keep this object.
    origin
        The origin of the code: ``compiled``, ``memory`` or ``disk``.
    seconds
        The duration of each step, by name.
    copies
        The inputs of the graph of which the code receives copies, behind all others.
    """

    program: Program
    placement: Placement
    constants: list[np.ndarray[Any, Any]]
    module: Module
    code: Code
    origin: str
    seconds: dict[str, float]
    copies: tuple[int, ...] = ()


def optimized(program: Program, constants: Sequence[np.ndarray[Any, Any]]) -> Program:
    """Return an equivalent program that runs faster.

    Sums of floats are reordered only if the program allows it.

    Parameters
    ----------
    program
        The program after lowering.
    constants
        The arrays of its constants.
    """
    program = fused(rewritten(program, reciprocals=program.reassociates))
    positive = positive_constants(constants, read_constants(program))
    buffers = [
        number
        for number, about in enumerate(program.buffers)
        if about.kind == "constant" and about.position in positive
    ]
    program = by_signs(program, buffers)
    # Fusion brings stores next to the loads that they feed; forwarding them may enable more fusion.
    return privatized(fused(with_shared_logs(program)))


class Emitted(NamedTuple):
    """A graph as LLVM text, with the attributes of `Compiled`, and the packing of its constants."""

    program: Program
    placement: Placement
    module: Module
    packing: Packing
    seconds: dict[str, float]


def emitted(
    program: Program, constants: Sequence[np.ndarray[Any, Any]], *, since: float
) -> Emitted:
    """Optimize a program, and return its LLVM text for this machine.

    Parameters
    ----------
    program
        The program after lowering.
    constants
        The arrays of its constants.
    since
        The start of the lowering, by `time.perf_counter`, for the record.
    """
    lowered_at = time.perf_counter()
    program = optimized(program, constants)
    placement = place_temporaries(program)
    optimized_at = time.perf_counter()
    machine = host_machine()
    packing = packed_constants(program, machine)
    module = emit_module(
        program,
        placement,
        machine,
        uses_library=not program.calls_libm,
        has_padding=True,
        packing=packing,
    )
    seconds = {
        "lower": lowered_at - since,
        "passes": optimized_at - lowered_at,
        "emit": time.perf_counter() - optimized_at,
    }
    return Emitted(program, placement, module, packing, seconds)


def compile_program(
    program: Program, constants: list[np.ndarray[Any, Any]], *, since: float
) -> Compiled:
    """Compile a program to machine code.

    Parameters
    ----------
    program
        The program after lowering.
    constants
        The arrays of its constants.
    since
        The start of the lowering, by `time.perf_counter`, for the record.

    Raises
    ------
    RuntimeError
        If LLVM or SciPy lacks something that the program needs.
    """
    program, placement, module, packing, seconds = emitted(program, constants, since=since)
    emitted_at = time.perf_counter()
    code, origin = code_of(module.text, module.externals, address_of)
    seconds["code"] = time.perf_counter() - emitted_at
    arrays = laid_out(constants, packing, read_constants(program))
    return Compiled(program, placement, arrays, module, code, origin, seconds)
