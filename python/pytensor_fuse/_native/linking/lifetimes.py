"""How long machine code lives that Numba's code calls: as long as that can run.

Numba never unloads what it compiled. But it can be run only by those who have its dispatcher or
callback, and these hold the library of what was compiled, which holds those that were linked into
it: so whoever calls a dispatcher, in code that Numba compiled, keeps what the dispatcher calls,
whatever becomes of the dispatcher.

The address of a callback holds nothing: whoever calls it must keep the callback. And what Numba
loads from disk has no library of what it was linked with; if somebody's caller that is kept on disk
outlives what it calls, it raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, ref

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.linking.addresses import Place

_kept: Final[WeakKeyDictionary[Any, set[Place]]] = WeakKeyDictionary()


def keep_with(dispatcher: Any, places: Sequence[Place]) -> None:
    """Let machine code live as long as a dispatcher of Numba, or whatever was compiled with it.

    Parameters
    ----------
    dispatcher
        The dispatcher, or the Python function if Numba compiles nothing.
    places
        The places of the machine code that it calls.
    """
    is_known = dispatcher in _kept
    _keep(dispatcher, places)
    for compiled in getattr(dispatcher, "overloads", {}).values():
        _keep(compiled.library, places)
    if not is_known and hasattr(dispatcher, "add_overload"):
        _watch(dispatcher)


def _keep(owner: Any, places: Sequence[Place]) -> None:
    _kept.setdefault(owner, set()).update(places)


def _watch(dispatcher: Any) -> None:
    """Let the libraries that a dispatcher gets keep what it keeps."""
    stock, own = type(dispatcher).add_overload, ref(dispatcher)

    def add_overload(compiled: Any) -> None:
        dispatcher = own()
        _keep(compiled.library, tuple(_kept[dispatcher]))
        stock(dispatcher, compiled)

    dispatcher.add_overload = add_overload
