"""The features of a graph: which there are, what they are told, and what they know."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor.graph.features import Feature
    from pytensor.graph.fg import FunctionGraph

    Kind = TypeVar("Kind", bound=type[Feature])
    Changed = TypeVar("Changed", bound=Feature)


def features_of(fgraph: FunctionGraph) -> Sequence[Feature]:
    """Return the features of ``fgraph``, in the order in which they are told of events."""
    return fgraph._features


def told_of(*events: str) -> Callable[[Kind], Kind]:
    """Let graphs tell the features of a class of these events alone.

    PyTensor asks the class which they are, and takes all that it has methods for, inherited or not.
    """

    def decorate(kind: Kind) -> Kind:
        kind._feature_callbacks = frozenset(events)
        return kind

    return decorate


def change_class(feature: Feature, kind: type[Changed]) -> Changed:
    """Make ``feature`` one of the class ``kind``, without attributes, where it is attached."""
    vars(feature).clear()
    feature.__class__ = kind
    return cast("Changed", feature)


def has_destroyers(fgraph: FunctionGraph) -> bool:
    """Whether a node writes over an input, as the destroy handler of ``fgraph`` knows it."""
    handler = getattr(fgraph, "destroy_handler", None)
    return handler is not None and bool(handler._destroying_apps)
