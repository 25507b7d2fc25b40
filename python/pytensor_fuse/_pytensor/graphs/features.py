"""The features of a graph: which there are, what they are told and know, and how they leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from pytensor.compile.aliasing import Supervisor
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.features import (
    AlreadyThere,
    Feature,
    PreserveVariableAttributes,
    ReplaceValidate,
)
from pytensor.tensor.rewriting.shape import ShapeFeature

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor.graph.fg import FunctionGraph

    Class = TypeVar("Class", bound=type[Feature])
    Changed = TypeVar("Changed", bound=Feature)


def features_of(fgraph: FunctionGraph) -> Sequence[Feature]:
    """Return the features of ``fgraph``, in the order in which they are told of events."""
    return fgraph._features


def told_of(*events: str) -> Callable[[Class], Class]:
    """Let graphs tell the features of a class of these events alone.

    PyTensor asks the class which they are, and takes all that it has methods for, inherited or not.
    """

    def decorate(class_: Class) -> Class:
        class_._feature_callbacks = frozenset(events)
        return class_

    return decorate


# What they keep depends on the graph, on the order in which nodes came that stay, and on names.
_MIND_NO_STEPS: set[type[Feature]] = {
    DestroyHandler,
    PreserveVariableAttributes,
    ReplaceValidate,
    ShapeFeature,
    Supervisor,
}


def mind_no_steps(class_: Class) -> Class:
    """Say of a class of features that it is all the same to them if nodes come and go again.

    They may note which nodes come and whose inputs change, in the order of the first time.
    """
    _MIND_NO_STEPS.add(class_)
    return class_


def minds_no_steps(feature: Feature) -> bool:
    """Whether a feature ends up the same if it is not told of nodes that come and go again."""
    return type(feature) in _MIND_NO_STEPS


def change_class(feature: Feature, class_: type[Changed]) -> Changed:
    """Make ``feature`` one of the class ``class_``, without attributes, where it is attached."""
    vars(feature).clear()
    feature.__class__ = class_
    return cast("Changed", feature)


def has_destroyers(fgraph: FunctionGraph) -> bool:
    """Whether a node writes over an input, as the destroy handler of ``fgraph`` knows it."""
    handler = getattr(fgraph, "destroy_handler", None)
    return handler is not None and bool(handler._destroying_apps)


class PassingFeature(Feature):
    """A feature that is on a graph for the time of a pass, and does not go along into copies."""

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
