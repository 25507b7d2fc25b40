"""What Numba makes of a rewritten graph, shared by all functions that have the graph.

A jitted function holds nothing of the function that it was made for: its arguments and results go
through storage that each function has of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from pytensor.link.numba.linker import NumbaLinker

from pytensor_fuse._pytensor.patches import ReplacedAttributes
from pytensor_fuse._pytensor.surroundings import numba_rules

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._cache.entry import Entry


class _Linked(NamedTuple):
    """A jitted function, and the rules by which PyTensor translated its graph."""

    rules: list[Any]
    function: Any


# The entries of graphs that are about to be linked.
_entries: WeakKeyDictionary[FunctionGraph, Entry] = WeakKeyDictionary()

_stock_convert: Any = NumbaLinker.fgraph_convert
_stock_compile: Any = NumbaLinker.jit_compile


def expect_linking(fgraph: FunctionGraph, entry: Entry) -> None:
    """Let a graph share what is linked with all that have the same entry."""
    _entries[fgraph] = entry


class _Waiting(NamedTuple):
    """A graph on its way to being jitted: what was made of it, if it was not jitted before."""

    entry: Entry
    rules: list[Any]
    converted: Any


def _convert(self: NumbaLinker, fgraph: FunctionGraph, **kwargs: Any) -> Any:
    entry = _entries.pop(fgraph, None)
    if entry is None:
        return _stock_convert(self, fgraph, **kwargs)
    rules = numba_rules()
    if isinstance(entry.linked, _Linked) and entry.linked.rules == rules:
        return entry.linked
    converted = _stock_convert(self, fgraph, **kwargs)
    # Translating loads rules that were not there before.
    return _Waiting(entry, rules or numba_rules(), converted)


def _compile(self: NumbaLinker, converted: Any) -> Any:
    if isinstance(converted, _Linked):
        return converted.function
    if not isinstance(converted, _Waiting):
        return _stock_compile(self, converted)
    entry, rules, inner = converted
    made = _stock_compile(self, inner)
    entry.linked = _Linked(rules, made)
    return made


def shared_conversion() -> ReplacedAttributes:
    """Return the patch that shares what is made of a graph before it is jitted."""
    return ReplacedAttributes([NumbaLinker], "fgraph_convert", _convert)


def shared_functions() -> ReplacedAttributes:
    """Return the patch that shares jitted functions."""
    return ReplacedAttributes([NumbaLinker], "jit_compile", _compile)
