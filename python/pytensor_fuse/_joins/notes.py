"""The reports on the joins of each graph, apart from their classes: most graphs have no join."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph

_reports: WeakKeyDictionary[FunctionGraph, tuple[Any, ...]] = WeakKeyDictionary()


def note_reports(fgraph: FunctionGraph, reports: tuple[Any, ...]) -> None:
    """Keep the reports on the joins of a graph for as long as the graph lives."""
    _reports[fgraph] = reports


def reports_of(fgraph: FunctionGraph) -> tuple[Any, ...] | None:
    """Return the reports on a graph; None if the pass has not run over it."""
    return _reports.get(fgraph)
