"""Where in this process machine code and its constants are, for code that Numba compiled.

Numba links a call of machine code into whatever calls it, and keeps that on disk. What is kept
names no address: it asks here by a digest, when it first runs in a process.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from pytensor_fuse._native.runtime.compiling import Compiled


class Place(NamedTuple):
    """Machine code, and tables that lead to it.

    Attributes
    ----------
    compiled
        The machine code.
    constants
        The addresses of its constants.
    both
        The addresses of the code and of that table.
    """

    compiled: Compiled
    constants: Any
    both: Any


# Nothing is taken out: Numba's code may outlive whoever asked for it.
_by_object: Final[dict[int, Place]] = {}
_by_digest: Final[dict[str, Place]] = {}


def place_of(compiled: Compiled) -> Place:
    """Return the place of machine code; it lives from now on as long as Python.

    Parameters
    ----------
    compiled
        The machine code.
    """
    known = _by_object.get(id(compiled))
    if known is None:
        addresses = [array.ctypes.data for array in compiled.constants]
        constants = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)
        both = (ctypes.c_void_p * 2)(compiled.code.address, ctypes.addressof(constants))
        # What is kept has an id that nothing else gets.
        known = _by_object.setdefault(id(compiled), Place(compiled, constants, both))
    return known


def keep_place(digest: str, compiled: Compiled) -> None:
    """Let code that Numba compiled find machine code.

    Parameters
    ----------
    digest
        What it asks for; it tells what the machine code does.
    compiled
        The machine code.
    """
    if digest not in _by_digest:
        _by_digest[digest] = place_of(compiled)


class Address:
    """Finds machine code by its digest; what Numba's code has of it, pickled.

    Parameters
    ----------
    digest
        The digest.
    """

    def __init__(self, digest: str) -> None:
        self.digest = digest

    def __call__(self) -> int:
        """Return where the addresses of the code and of its constants are; 0 if nobody knows."""
        known = _by_digest.get(self.digest)
        return 0 if known is None else ctypes.addressof(known.both)
