"""From a lowered graph to code that can be called: the way through all steps."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from pytensor_fuse._native.emission.module import Module, emit_module
from pytensor_fuse._native.passes.fusion import fused
from pytensor_fuse._native.passes.placement import place_temporaries
from pytensor_fuse._native.passes.rewrite import rewritten
from pytensor_fuse._native.runtime.externals import address_of
from pytensor_fuse._native.runtime.llvm import host_machine
from pytensor_fuse._native.runtime.objects import code_of

if TYPE_CHECKING:
    from pytensor_fuse._native.passes.placement import Placement
    from pytensor_fuse._native.program.model import Program
    from pytensor_fuse._native.runtime.llvm import Code


# In bytes. Vectors of small elements are shorter, as all vectors of a loop have as many lanes.
_WIDEST_VECTOR: Final = 64


class Compiled(NamedTuple):
    """A graph as machine code.

    Attributes
    ----------
    program
        The program that was emitted.
    placement
        Where its temporary buffers lie.
    constants
        The arrays that it reads as constants.
    module
        LLVM's text.
    code
        The machine code; who calls it must keep this.
    origin
        Where the code came from: ``compiled``, ``memory`` or ``disk``.
    seconds
        How long each step took, by its name.
    """

    program: Program
    placement: Placement
    constants: list[np.ndarray[Any, Any]]
    module: Module
    code: Code
    origin: str
    seconds: dict[str, float]


def padded(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a copy of an array that zeros follow, so that whole vectors can be read from it."""
    n_elements = _WIDEST_VECTOR // data.itemsize
    whole = np.zeros(data.size + n_elements, data.dtype)
    out = whole[: data.size].reshape(data.shape)
    out[...] = data
    return out


def optimized(program: Program) -> Program:
    """Return an equal program with loops fused and what nothing needs left out."""
    # Loops fused bring stores to the loads that they feed, and what that frees may fuse again.
    return fused(fused(rewritten(program, reciprocals=program.reassociates)))


def compile_program(
    program: Program,
    constants: list[np.ndarray[Any, Any]],
    *,
    uses_library: bool = True,
    since: float | None = None,
) -> Compiled:
    """Make machine code of a program.

    Parameters
    ----------
    program
        The program as it was lowered.
    constants
        The arrays that it reads as constants.
    uses_library
        Whether mathematical functions come from the library of vector functions.
    since
        When lowering began, by `time.perf_counter`, for the record.

    Raises
    ------
    RuntimeError
        If LLVM or SciPy does not have what the program needs.
    """
    marks = [time.perf_counter()]

    def mark() -> float:
        marks.append(time.perf_counter())
        return marks[-1] - marks[-2]

    seconds = {} if since is None else {"lower": marks[0] - since}
    program = optimized(program)
    placement = place_temporaries(program)
    seconds["passes"] = mark()
    module = emit_module(
        program, placement, host_machine(), uses_library=uses_library, has_padding=True
    )
    seconds["emit"] = mark()
    code, origin = code_of(module.text, module.externals, address_of)
    seconds["code"] = mark()
    constants = [padded(one) for one in constants]
    return Compiled(program, placement, constants, module, code, origin, seconds)
