"""What the files in C of an exported function are written from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pytensor_fuse._native.c_entry.function import CArray
    from pytensor_fuse._native.program.model import Failure

# How C calls the elements of each dtype.
_TYPES: Final = {"float64": "double", "float32": "float", "bool": "uint8_t"}


class CDescription(NamedTuple):
    """What the files say of an exported function.

    Attributes
    ----------
    name
        Its name, an identifier of C.
    inputs, outputs
        What it takes and gives.
    failures
        What the positive numbers stand for that it returns.
    machine
        For which machine its code is.
    version
        The version of this package.
    """

    name: str
    inputs: tuple[CArray, ...]
    outputs: tuple[CArray, ...]
    failures: tuple[Failure, ...]
    machine: str
    version: str


def c_type(about: CArray) -> str:
    """Return how C calls the elements of an array."""
    return _TYPES.get(about.dtype, f"{about.dtype}_t")
