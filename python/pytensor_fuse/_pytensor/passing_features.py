"""Features that are on a graph for the time of a pass, and leave nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph.features import AlreadyThere, Feature

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytensor.graph.fg import FunctionGraph


class PassingFeature(Feature):
    """A feature that hears of some events only, and does not go along into copies of the graph.

    A subclass names its events: ``class Name(PassingFeature, events=...)``.
    """

    def __init_subclass__(cls, events: Iterable[str] = (), **options: Any) -> None:
        super().__init_subclass__(**options)  # type: ignore[no-untyped-call]
        # PyTensor asks the class which events it is told of, and takes the time of each.
        cls._feature_callbacks = frozenset(events)

    def leave(self, fgraph: FunctionGraph) -> None:
        """Remove this from the graph, and from what that knows of its features."""
        fgraph.remove_feature(self)
        fgraph.execute_callbacks_times.pop(self, None)

    def clone(self) -> Feature:
        """Return what a copy of the graph does not take."""
        return _Nothing()

    def __deepcopy__(self, memo: object) -> Feature:
        return _Nothing()

    def __reduce__(self) -> tuple[type[Feature], tuple[()]]:
        return _Nothing, ()


class _Nothing(Feature):
    def on_attach(self, fgraph: FunctionGraph) -> None:
        raise AlreadyThere
