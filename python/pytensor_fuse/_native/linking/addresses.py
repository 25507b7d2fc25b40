"""Addresses of machine code and its constants, for code that Numba compiled.

Numba links a call of machine code into its callers, and caches those on disk. The cached code
contains no address: on its first run in a process it asks here, with a digest.

Numba's code holds the address of a table, two pointers that are never freed. The machine code and
its data live as long as their `Place`; `lifetimes` documents how long that is. Then the table is
cleared, and code that reads it raises. Equivalent machine code fills the table of its digest again,
so that earlier code of Numba finds it.
"""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary, finalize

from pytensor_fuse._forks import hold_in_forks
from pytensor_fuse._native.runtime.constants import table_of

if TYPE_CHECKING:
    from pytensor_fuse._native.runtime.compiling import Compiled

# Reentrant, because garbage collection may free places and clear their tables at any time.
_lock: Final = threading.RLock()
hold_in_forks(_lock)
# All tables ever made, two pointers each: Numba does not report when its code is gone for good.
_tables: Final[list[Any]] = []
_tables_by_digest: Final[dict[str, Any]] = {}
_by_digest: Final[WeakValueDictionary[str, Place]] = WeakValueDictionary()


class Place:
    """Machine code that Numba's code can call during the life of this object.

    Parameters
    ----------
    compiled
        The machine code.
    table
        The table for the addresses of the code and of the table of its constants.

    Attributes
    ----------
    compiled
        The machine code.
    table
        The address of the table.
    """

    def __init__(self, compiled: Compiled, table: Any) -> None:
        self.compiled = compiled
        self._constants = table_of(compiled.constants)
        self.table = ctypes.addressof(table)
        table[1] = ctypes.addressof(self._constants)
        table[0] = compiled.code.address
        finalize(self, _empty, table, table[1]).atexit = False


def _empty(table: Any, constants: int) -> None:
    """Clear the table of a place, unless another place has taken it over."""
    with _lock:
        if table[1] == constants:
            table[0] = table[1] = None


def _new_table() -> Any:
    table = (ctypes.c_void_p * 2)()
    _tables.append(table)
    return table


def new_place(compiled: Compiled) -> Place:
    """Return a private place for machine code, which no lookup finds.

    Parameters
    ----------
    compiled
        The machine code.
    """
    with _lock:
        return Place(compiled, _new_table())


def shared_place(digest: str, compiled: Compiled) -> Place:
    """Return the place where code that Numba compiled finds machine code.

    Parameters
    ----------
    digest
        The key of the lookup; it identifies the machine code's function and data.
    compiled
        The machine code. Equivalent machine code that has a place already takes precedence.
    """
    with _lock:
        known = _by_digest.get(digest)
        if known is None:
            table = _tables_by_digest.get(digest)
            if table is None:
                table = _tables_by_digest[digest] = _new_table()
            known = _by_digest[digest] = Place(compiled, table)
        return known


class Address:
    """A picklable lookup of machine code by digest, for Numba's code.

    Parameters
    ----------
    digest
        The digest.
    """

    def __init__(self, digest: str) -> None:
        self.digest = digest

    def __call__(self) -> int:
        """Return the address of the table for the code; 0 if there is no such code."""
        known = _by_digest.get(self.digest)
        return 0 if known is None else known.table
