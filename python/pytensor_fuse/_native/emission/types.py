"""LLVM's types for dtypes, in registers and in memory, and its literals."""

from __future__ import annotations

import struct
from typing import Final

# A bool is one bit in a register and one byte in memory.
REGISTER: Final = {
    "f64": "double",
    "f32": "float",
    "i64": "i64",
    "i32": "i32",
    "i16": "i16",
    "i8": "i8",
    "u64": "i64",
    "u32": "i32",
    "u16": "i16",
    "u8": "i8",
    "bool": "i1",
}
MEMORY: Final = {**REGISTER, "bool": "i8"}
# The names of types in the suffixes of intrinsics.
SUFFIX: Final = {
    "double": "f64",
    "float": "f32",
    "i64": "i64",
    "i32": "i32",
    "i16": "i16",
    "i8": "i8",
    "i1": "i1",
}
BITS: Final = {
    "f64": 64,
    "f32": 32,
    "i64": 64,
    "i32": 32,
    "i16": 16,
    "i8": 8,
    "u64": 64,
    "u32": 32,
    "u16": 16,
    "u8": 8,
    "bool": 1,
}


def literal(dtype: str, number: bool | int | float) -> str:
    """Return the text of a number."""
    if dtype == "f64":
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    if dtype == "f32":
        # LLVM writes a float as the double of the same value.
        single = struct.unpack("<f", struct.pack("<f", number))[0]
        return f"0x{struct.unpack('<Q', struct.pack('<d', single))[0]:016X}"
    if dtype == "bool":
        return "true" if number else "false"
    return str(int(number))


def vector(scalar: str, lanes: int) -> str:
    """Return the type of a vector; for one lane, the element's type."""
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def suffix(scalar: str, lanes: int) -> str:
    """Return the name of a type in the suffixes of intrinsics."""
    name = SUFFIX[scalar]
    return name if lanes == 1 else f"v{lanes}{name}"
