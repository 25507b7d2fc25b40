"""What Numba makes of a rewritten graph, shared by all functions that have the graph.

A jitted function holds nothing of the function that it was made for: its arguments and results go
through storage that each function has of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pytensor.link.numba.linker import NumbaLinker

from pytensor_fuse._pytensor.patches import ReplacedAttributes

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._cache.entry import Entry

_NUMBA = "numba"

# The entries of graphs that are about to be linked.
_entries: WeakKeyDictionary[FunctionGraph, Entry] = WeakKeyDictionary()

_stock_convert = NumbaLinker.fgraph_convert
_stock_compile = NumbaLinker.jit_compile


def expect_linking(fgraph: FunctionGraph, entry: Entry) -> None:
    """Let a graph share what is linked with all that have the same entry."""
    _entries[fgraph] = entry


class _Waiting:
    """A graph that need not be converted, or was for an entry that has not been linked."""

    def __init__(self, entry: Entry, converted: Any) -> None:
        self.entry = entry
        self.converted = converted


def _convert(self: NumbaLinker, fgraph: FunctionGraph, **kwargs: Any) -> Any:
    entry = _entries.pop(fgraph, None)
    if entry is None:
        return _stock_convert(self, fgraph, **kwargs)
    converted = None if _NUMBA in entry.linked else _stock_convert(self, fgraph, **kwargs)
    return _Waiting(entry, converted)


def _compile(self: NumbaLinker, converted: Any) -> Any:
    if not isinstance(converted, _Waiting):
        return _stock_compile(self, converted)
    linked = converted.entry.linked
    if converted.converted is not None:
        # Another thread may have been faster: all functions share one.
        linked.setdefault(_NUMBA, _stock_compile(self, converted.converted))
    return linked[_NUMBA]


def shared_conversion() -> ReplacedAttributes:
    """Return the patch that shares what is made of a graph before it is jitted."""
    return ReplacedAttributes([NumbaLinker], "fgraph_convert", _convert)


def shared_functions() -> ReplacedAttributes:
    """Return the patch that shares jitted functions."""
    return ReplacedAttributes([NumbaLinker], "jit_compile", _compile)
