"""Lifetimes of machine code that Numba's code calls: as long as that code can run.

Numba never unloads compiled code, but running it takes its dispatcher or callback, and these hold
the library of the compiled code, which in turn holds the libraries that were linked into it.
Compiled callers of a dispatcher therefore keep its machine code alive, even after the dispatcher
itself is gone.

The address of a callback holds nothing: its callers must keep the callback. Code that Numba loads
from disk does not hold the libraries that it was linked with: a caller that outlives the machine
code raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, ref

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.linking.addresses import Place

_kept: Final[WeakKeyDictionary[Any, set[Place]]] = WeakKeyDictionary()


def keep_with(dispatcher: Any, places: Sequence[Place]) -> None:
    """Keep machine code alive as long as one of Numba's dispatchers, or code compiled with it.

    Parameters
    ----------
    dispatcher
        The dispatcher, or the Python function if Numba's compilation is disabled.
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
    """Let future libraries of a dispatcher keep the same places alive."""
    stock, own = type(dispatcher).add_overload, ref(dispatcher)

    def add_overload(compiled: Any) -> None:
        dispatcher = own()
        _keep(compiled.library, tuple(_kept[dispatcher]))
        stock(dispatcher, compiled)

    dispatcher.add_overload = add_overload
