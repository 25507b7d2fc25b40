"""What Numba makes of a rewritten graph, shared by all functions that have the graph.

A jitted function holds nothing of the function that it was made for: its arguments and results go
through storage that each function has of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from pytensor.graph.basic import Constant
from pytensor.link.numba.linker import NumbaLinker

from pytensor_fuse._cache.inner_constants import Contents, inner_constants
from pytensor_fuse._cache.origin import origin_of
from pytensor_fuse._pytensor.patches import ReplacedAttributes
from pytensor_fuse._pytensor.surroundings import numba_rules

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._cache.entry import Entry


class _Linked(NamedTuple):
    """A jitted function, and what it was made of.

    Attributes
    ----------
    rules
        By which PyTensor translated the graph.
    constants
        What was in the graph's constants, which Numba reads when the function is first called.
        Somebody else may write to them.
    function
        The function.
    """

    rules: list[Any]
    constants: Contents
    function: Any

    def holds(self, rules: list[Any]) -> bool:
        """Whether the function is what would be made of an equal graph now."""
        return self.rules == rules and self.constants.are_known() and self.constants.are_the_same()


# The entries of graphs that are about to be linked.
_entries: WeakKeyDictionary[FunctionGraph, Entry] = WeakKeyDictionary()

_stock_convert: Any = NumbaLinker.fgraph_convert
_stock_compile: Any = NumbaLinker.jit_compile


def expect_linking(fgraph: FunctionGraph, entry: Entry) -> None:
    """Let a graph share what Numba makes of it with all that have the same entry."""
    origin = origin_of(fgraph)
    # Whoever links another mode's graph by Numba may have changed it before.
    if origin and origin.request and ("mode.linker", NumbaLinker.__name__) in origin.request.parts:
        _entries[fgraph] = entry


class _Waiting(NamedTuple):
    """A graph on its way to being jitted: what was made of it, if it was not jitted before."""

    entry: Entry
    rules: list[Any]
    constants: Contents
    converted: Any


def _convert(self: NumbaLinker, fgraph: FunctionGraph, **kwargs: Any) -> Any:
    entry = _entries.pop(fgraph, None)
    if entry is None:
        return _stock_convert(self, fgraph, **kwargs)
    rules = numba_rules()
    if isinstance(entry.linked, _Linked) and entry.linked.holds(rules):
        return entry.linked
    converted = _stock_convert(self, fgraph, **kwargs)
    # Translating loads rules that were not there before.
    constants = [one for one in fgraph.variables if isinstance(one, Constant)]
    inside = inner_constants(node.op for node in fgraph.apply_nodes)
    return _Waiting(entry, rules or numba_rules(), Contents([*constants, *inside]), converted)


def _compile(self: NumbaLinker, converted: Any) -> Any:
    if isinstance(converted, _Linked):
        return converted.function
    if not isinstance(converted, _Waiting):
        return _stock_compile(self, converted)
    entry, rules, constants, inner = converted
    made = _stock_compile(self, inner)
    entry.linked = _Linked(rules, constants, made)
    return made


def shared_conversion() -> ReplacedAttributes:
    """Return the patch that shares what is made of a graph before it is jitted."""
    return ReplacedAttributes([NumbaLinker], "fgraph_convert", _convert)


def shared_functions() -> ReplacedAttributes:
    """Return the patch that shares jitted functions."""
    return ReplacedAttributes([NumbaLinker], "jit_compile", _compile)
