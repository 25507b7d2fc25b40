"""LLVM's types for dtypes, in registers and in memory, and its literals."""

from __future__ import annotations

import struct
from typing import Final

from pytensor_fuse._native.mathematics.text import hexadecimal
from pytensor_fuse._native.program.operations import INTEGERS

# A bool is one bit in a register and one byte in memory.
REGISTER: Final = {
    "f64": "double",
    "f32": "float",
    "bool": "i1",
    **{dtype: f"i{dtype[1:]}" for dtype in INTEGERS},
}
MEMORY: Final = {**REGISTER, "bool": "i8"}
BITS: Final = {dtype: 1 if dtype == "bool" else int(dtype[1:]) for dtype in REGISTER}


def literal(dtype: str, number: bool | int | float) -> str:
    """Return the text of a number."""
    if dtype == "f64":
        return hexadecimal(number)
    if dtype == "f32":
        # LLVM writes a float as the double of the same value.
        return hexadecimal(struct.unpack("<f", struct.pack("<f", number))[0])
    if dtype == "bool":
        return "true" if number else "false"
    return str(int(number))


def vector(scalar: str, lanes: int) -> str:
    """Return the type of a vector; for one lane, the element's type."""
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def suffix(scalar: str, lanes: int) -> str:
    """Return the name of a type in the suffixes of intrinsics."""
    name = {"double": "f64", "float": "f32"}.get(scalar, scalar)
    return name if lanes == 1 else f"v{lanes}{name}"
