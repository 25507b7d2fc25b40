"""Description of an exported function, from which its C files are generated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pytensor_fuse._native.c_entry.function import CArray
    from pytensor_fuse._native.program.model import Failure

# C types of the elements by dtype, where they differ from ``<dtype>_t``.
_TYPES: Final = {"float64": "double", "float32": "float", "bool": "uint8_t"}


class CDescription(NamedTuple):
    """Facts about an exported function that its C files state.

    Attributes
    ----------
    name
        The function's name, a C identifier.
    inputs, outputs
        The arrays that it takes and returns.
    failures
        The failures that its positive return codes stand for.
    machine
        The machine that its code is compiled for.
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
    """Return the C type of an array's elements."""
    return _TYPES.get(about.dtype, f"{about.dtype}_t")
