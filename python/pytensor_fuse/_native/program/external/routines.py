"""BLAS and LAPACK routines that programs call: the operands of each, and a way to run it.

`routine_lines` declares them, and documents the format of the lines.
"""

from __future__ import annotations

import ctypes
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from pytensor_fuse._native.program.external.addresses import routine_address
from pytensor_fuse._native.program.external.routine_lines import LINES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.program.model import Call, Operand


class Role(NamedTuple):
    """The role of an operand in a routine.

    Attributes
    ----------
    name
        Its name in the routine's line.
    sizes
        A letter for each axis.
    is_read, is_written
        Whether the routine reads and writes it. An operand that is only written is written as a
        whole.
    dtype
        The dtype of its elements; empty if it is that of the routine.
    """

    name: str
    sizes: str
    is_read: bool
    is_written: bool
    dtype: str


class Routine(NamedTuple):
    """A routine.

    Attributes
    ----------
    name
        Its name in programs.
    sizes
        A letter for each size.
    operands
        The role of each operand.
    function
        The function of BLAS or LAPACK, without the letter for its dtype: ``blas.gemm``.
    arguments
        The arguments of the function.
    """

    name: str
    sizes: str
    operands: tuple[Role, ...]
    function: str
    arguments: tuple[str, ...]

    @property
    def reports(self) -> bool:
        """Whether it reports errors by ``info``."""
        return "info" in self.arguments

    def symbol(self, dtype: str) -> str:
        """Return the function for a dtype: ``blas.dgemm``."""
        library, _, name = self.function.partition(".")
        return f"{library}.{'d' if dtype == 'f64' else 's'}{name}"

    def real_operand(self, call: Call) -> Operand:
        """Return the first operand of a call that has the dtype of the routine."""
        return next(
            operand
            for operand, role in zip(call.operands, self.operands, strict=True)
            if not role.dtype
        )

    def shape(self, role: Role, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of an operand."""
        by_letter = dict(zip(self.sizes, sizes, strict=True))
        return tuple([by_letter[letter] for letter in role.sizes])


_ROLE: Final = re.compile(r"(?P<name>\w+)(?P<how>[=:+])(?P<sizes>[a-z]*)(\.(?P<dtype>\w+))?")


def _routine(line: str) -> Routine:
    head, call = re.split(r"\s+(?=blas\.|lapack\.)", line)
    name, sizes, *roles = head.split()
    function, *arguments = call.split()
    operands = []
    for text in roles:
        found = _ROLE.fullmatch(text)
        assert found is not None
        how = found["how"]
        operands.append(
            Role(found["name"], found["sizes"], how != "=", how != ":", found["dtype"] or "")
        )
    return Routine(name, sizes, tuple(operands), function, tuple(arguments))


ROUTINES: Final = {routine.name: routine for routine in map(_routine, LINES)}


def run_routine(
    routine: Routine, sizes: Sequence[int], arrays: Sequence[np.ndarray[Any, Any]]
) -> int:
    """Call a routine on arrays, and return its ``info``; 0 if it has none.

    Parameters
    ----------
    routine
        The routine.
    sizes
        Its sizes.
    arrays
        Its operands, C-contiguous; the operands that it writes are overwritten.
    """
    by_name: dict[str, Any] = {}
    for letter, size in zip(routine.sizes, sizes, strict=True):
        by_name[letter] = np.array(size, np.int32)
        by_name[f"{letter}'"] = np.array(max(size, 1), np.int32)
    real = np.dtype(np.float64)
    for role, array in zip(routine.operands, arrays, strict=True):
        by_name[role.name] = array
        real = real if role.dtype else array.dtype
    report = by_name["info"] = np.array(0, np.int32)
    given = []
    for argument in routine.arguments:
        if argument in by_name:
            given.append(by_name[argument])
        elif argument[0] == "'":
            given.append(np.frombuffer(argument[1:].encode(), np.uint8))
        else:
            given.append(np.array(float(argument), real if "." in argument else np.int32))
    symbol = routine.symbol("f64" if real == np.float64 else "f32")
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(given))(routine_address(symbol))
    function(*[one.ctypes.data for one in given])
    return int(report)
