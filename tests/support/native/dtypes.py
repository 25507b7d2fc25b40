"""Data for each dtype in loop programs: operations with exact results, and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from pytensor_fuse._native.program.operations import FLOATS, SIGNED, UNSIGNED

# The most frequent dtypes first: examples shrink towards them.
DTYPES = ("f64", "i64", "f32", "i32", "bool", "u8", "i8", "u64", "i16", "u32", "u16")
_EVERYWHERE = "select cast lt eq minimum maximum le gt ge ne"
# By kind of dtype.
OPERATIONS_OF = {
    kind: f"{own} {_EVERYWHERE}".split()
    for kind, own in {
        "f": "add mul sub neg abs div sqrt floor ceil trunc rint floordiv mod",
        "i": "add mul sub neg abs and or xor not shl shr floordiv mod",
        "b": "and or xor not",
    }.items()
}
COMBINERS_OF = {
    "f": ("add", "maximum", "mul", "minimum"),
    "i": ("add", "maximum", "mul", "minimum", "and", "or", "xor"),
    "b": ("or", "and", "xor", "maximum", "minimum"),
}
_FLOATS = (0.0, 1.0, -1.0, 2.0, 0.5, -0.0, -3.25, 1e10, -3e9, 1e-40, 1e30, np.inf, -np.inf, np.nan)


def numbers_of(dtype: str) -> list[Any]:
    """Return numbers of a dtype, simple ones first."""
    if dtype in FLOATS:
        more = () if dtype == "f32" else (1e-310, -1e300, 2.0**63)
        return [*_FLOATS, *more]
    if dtype == "bool":
        return [False, True]
    bits, sign = int(dtype[1:]), dtype in SIGNED
    most = (1 << bits - sign) - 1
    return [0, 1, 2, 3, 5, 7, most, most - 1, *((-1, -2, -most, -most - 1) if sign else ())]


def same_kind(dtype: str) -> str:
    """Return ``f``, ``i`` or ``b``."""
    return "i" if dtype in UNSIGNED else dtype[0]
