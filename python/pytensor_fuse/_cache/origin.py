"""Where the graphs of functions came from: the cache, or rewriting, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from pytensor.graph.fg import FunctionGraph

if TYPE_CHECKING:
    from pytensor_fuse._cache.request import Request


class Origin(NamedTuple):
    """Where the graph of a function came from.

    Attributes
    ----------
    request
        What was asked for; None if it could not be told.
    reason
        Why it could not.
    made
        When the graph was rewritten, in seconds since the epoch, if that was not for this function.
    """

    request: Request | None
    reason: str = ""
    made: float | None = None


_origins: WeakKeyDictionary[FunctionGraph, Origin] = WeakKeyDictionary()


def note_origin(fgraph: FunctionGraph, origin: Origin) -> None:
    """Keep where a graph came from for as long as it is there."""
    _origins[fgraph] = origin


def origin_of(fgraph: object) -> Origin | None:
    """Return where a graph came from; None if it was not compiled with the cache."""
    return _origins.get(fgraph) if isinstance(fgraph, FunctionGraph) else None
