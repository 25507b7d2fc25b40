"""Cache of object code, in memory, and on disk for other processes.

The key is a digest of the LLVM text, LLVM's version and the processor: the text contains everything
else, and nothing specific to the process. Loaded code is shared by all functions with the same
text, since machine code is stateless.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from pytensor_fuse._cache.store import disk
from pytensor_fuse._cache.store.forgetting import forget_with_cache
from pytensor_fuse._cache.store.meanwhile import catching_up
from pytensor_fuse._cache.store.setting import Level, level
from pytensor_fuse._forks import hold_in_forks
from pytensor_fuse._native.runtime.llvm import Code, object_code, versions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# The size of the LRU cache of loaded code. Functions keep their own code alive.
_MOST: Final = 512

_lock: Final = threading.Lock()
hold_in_forks(_lock)
_loaded: Final[OrderedDict[bytes, Code]] = OrderedDict()


def code_of(text: str, externals: Sequence[str], resolve: Callable[[str], int]) -> tuple[Code, str]:
    """Return the loaded code of a module.

    Parameters
    ----------
    text
        The LLVM text of the module.
    externals
        The external symbols of the module.
    resolve
        Returns the address of a symbol.

    Returns
    -------
    Code
        The code, which must be kept as long as it may run.
    str
        The origin of the code: ``compiled``, ``memory`` or ``disk``.

    Raises
    ------
    RuntimeError
        If LLVM rejects the text.
    """
    key = _key(text)
    kept = level()
    if kept is not Level.OFF:
        with _lock:
            found = _loaded.get(key)
            if found is not None:
                _loaded.move_to_end(key)
                return found, "memory"
    data, origin = _object_of(text, key)
    code = Code(data, [(symbol, resolve(symbol)) for symbol in externals])
    if kept is not Level.OFF:
        with _lock:
            _loaded[key] = code
            while len(_loaded) > _MOST:
                _loaded.popitem(last=False)
    return code, origin


def own_code_of(text: str, function: str) -> Code:
    """Return the code of a module with mutable state, loaded for this caller alone.

    Parameters
    ----------
    text
        The LLVM text of the module, without external symbols except for the C library's.
    function
        The name of its function.

    Raises
    ------
    RuntimeError
        If LLVM rejects the text.
    """
    return Code(_object_of(text, _key(text))[0], function=function)


def _key(text: str) -> bytes:
    made = blake2b(b"pytensor-fuse object 1 ", digest_size=32)
    made.update(repr(versions()).encode())
    made.update(text.encode())
    return made.digest()


def _object_of(text: str, key: bytes) -> tuple[bytes, str]:
    """Return object code, and its origin: ``compiled`` or ``disk``."""
    on_disk = level() is Level.DISK
    data = disk.tried("reading", lambda: disk.default_disk().get(key)) if on_disk else None
    if isinstance(data, bytes):
        return data, "disk"
    made = object_code(text, catching_up)
    if on_disk:
        disk.tried("writing", lambda: disk.default_disk().put(key, made))
    return made, "compiled"


def _forget() -> None:
    """Clear the cache of loaded code."""
    with _lock:
        _loaded.clear()


forget_with_cache(_forget)
