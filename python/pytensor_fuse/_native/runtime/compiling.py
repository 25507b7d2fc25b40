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
    program = by_signs(
        program,
        [
            number
            for number, about in enumerate(program.buffers)
            if about.kind == "constant" and about.position in positive
        ],
    )
    # Fusion brings stores next to the loads that they feed; forwarding them may enable more fusion.
    return privatized(fused(with_shared_logs(program)))


def emitted(program: Program, placement: Placement) -> tuple[Module, Packing]:
    """Return the LLVM text of a program for this machine, and the packing of its constants."""
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
    return module, packing


def compile_program(
    program: Program,
    constants: list[np.ndarray[Any, Any]],
    *,
    since: float | None = None,
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
    marks = [time.perf_counter()]

    def mark() -> float:
        marks.append(time.perf_counter())
        return marks[-1] - marks[-2]

    seconds = {} if since is None else {"lower": marks[0] - since}
    program = optimized(program, constants)
    placement = place_temporaries(program)
    seconds["passes"] = mark()
    module, packing = emitted(program, placement)
    seconds["emit"] = mark()
    code, origin = code_of(module.text, module.externals, address_of)
    seconds["code"] = mark()
    arrays = laid_out(constants, packing, read_constants(program))
    return Compiled(program, placement, arrays, module, code, origin, seconds)
