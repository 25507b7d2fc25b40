"""The origins of functions' graphs: the cache, or rewriting, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from pytensor.graph.fg import FunctionGraph

if TYPE_CHECKING:
    from pytensor_fuse._cache.key.cache_key import Request


class Origin(NamedTuple):
    """The origin of a function's graph.

    Attributes
    ----------
    request
        The cache key; None if the graph is not cacheable.
    reason
        Why it is not cacheable.
    made
        When the graph was rewritten, in seconds since the epoch, if it came from the cache.
    """

    request: Request | None
    reason: str = ""
    made: float | None = None


_origins: WeakKeyDictionary[FunctionGraph, Origin] = WeakKeyDictionary()


def note_origin(fgraph: FunctionGraph, origin: Origin) -> None:
    """Record the origin of a graph, as long as the graph is alive."""
    _origins[fgraph] = origin


def origin_of(fgraph: object) -> Origin | None:
    """Return the origin of a graph; None if it was not compiled with the cache."""
    return _origins.get(fgraph) if isinstance(fgraph, FunctionGraph) else None
