"""Where in this process machine code and its constants are, for code that Numba compiled.

Numba links a call of machine code into whatever calls it, and keeps that on disk. What is kept
names no address: it asks here by a digest, when it first runs in a process.

Numba's code has the address of a table, two pointers that are never freed. The machine code and
its data live as long as their `Place`; `lifetimes` says how long that is. Then the table is
emptied, and whoever looks into it raises. The table of a digest is filled again by machine code
that does the same, so that what Numba compiled before finds it.
"""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary, finalize

from pytensor_fuse._forks import hold_in_forks

if TYPE_CHECKING:
    from pytensor_fuse._native.runtime.compiling import Compiled

# Places may be freed, and their tables emptied, whenever Python collects garbage.
_lock: Final = threading.RLock()
hold_in_forks(_lock)
# All that there ever were, of two pointers each: Numba does not tell when code is gone for good.
_tables: Final[list[Any]] = []
_tables_by_digest: Final[dict[str, Any]] = {}
_by_digest: Final[WeakValueDictionary[str, Place]] = WeakValueDictionary()


class Place:
    """Machine code that Numba's code can call as long as this lives.

    Parameters
    ----------
    compiled
        The machine code.
    table
        What leads to it: the addresses of the code, and of the table of its constants.

    Attributes
    ----------
    compiled
        The machine code.
    table
        Where the table is.
    """

    def __init__(self, compiled: Compiled, table: Any) -> None:
        addresses = [array.ctypes.data for array in compiled.constants]
        self.compiled = compiled
        self._constants = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)
        self.table = ctypes.addressof(table)
        table[1] = ctypes.addressof(self._constants)
        table[0] = compiled.code.address
        finalize(self, _empty, table, table[1]).atexit = False


def _empty(table: Any, constants: int) -> None:
    """Empty the table of a place, unless it is another one's by now."""
    with _lock:
        if table[1] == constants:
            table[0] = table[1] = None


def _new_table() -> Any:
    table = (ctypes.c_void_p * 2)()
    _tables.append(table)
    return table


def new_place(compiled: Compiled) -> Place:
    """Return a place for machine code, which nobody else finds.

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
        What it asks for; it tells what the machine code does, and with what data.
    compiled
        The machine code. If there is some that does the same, the place is of that.
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
    """Finds machine code by its digest; what Numba's code has of it, pickled.

    Parameters
    ----------
    digest
        The digest.
    """

    def __init__(self, digest: str) -> None:
        self.digest = digest

    def __call__(self) -> int:
        """Return where the table is that leads to the code; 0 if there is no such code."""
        known = _by_digest.get(self.digest)
        return 0 if known is None else known.table
