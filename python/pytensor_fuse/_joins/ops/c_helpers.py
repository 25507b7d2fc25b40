"""C functions that the ops' code calls, from the file ``assets/helpers.h``."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from pytensor_fuse._joins.ops.layout import NEGATIVE_LENGTH, SHAPE_MISMATCH, SLOT_MISMATCH

_MESSAGES = {
    "JOINS_NEGATIVE_LENGTH": NEGATIVE_LENGTH,
    "JOINS_SHAPE_MISMATCH": SHAPE_MISMATCH,
    "JOINS_SLOT_MISMATCH": SLOT_MISMATCH,
}


@cache
def c_helpers() -> str:
    """Return the functions, preceded by the messages of the exceptions that they raise."""
    messages = "\n".join(f'#define {name} "{text}"' for name, text in _MESSAGES.items())
    functions = files(__package__).joinpath("assets", "helpers.h").read_text(encoding="utf-8")
    return f"{messages}\n\n{functions}"


@cache
def c_helpers_version() -> str:
    """Return a hash of the functions, which versions them in PyTensor's cache of C code."""
    return hashlib.sha256(c_helpers().encode()).hexdigest()[:16]


def c_type_number(dtype: str) -> str:
    """Return the name of NumPy's type number of a dtype."""
    return f"NPY_{dtype.upper()}"
