"""The features of a graph: their events, their state, and how they are removed."""

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
    """Return the features of ``fgraph``, in the order in which they are notified."""
    return fgraph._features


def told_of(*events: str) -> Callable[[Class], Class]:
    """Let graphs notify the features of a class of these events alone.

    PyTensor asks the class for its events, and adds all for which it has methods, inherited or not.
    """

    def decorate(class_: Class) -> Class:
        class_._feature_callbacks = frozenset(events)
        return class_

    return decorate


# Their state depends on the graph, on the order in which the remaining nodes came, and on names.
_MIND_NO_STEPS: set[type[Feature]] = {
    DestroyHandler,
    PreserveVariableAttributes,
    ReplaceValidate,
    ShapeFeature,
    Supervisor,
}


def mind_no_steps(class_: Class) -> Class:
    """Declare that features of this class are indifferent to nodes that come and go again.

    They may note which nodes come and whose inputs change, in the order of the first time.
    """
    _MIND_NO_STEPS.add(class_)
    return class_


def minds_no_steps(feature: Feature) -> bool:
    """Whether a feature ends in the same state if it misses nodes that come and go again."""
    return type(feature) in _MIND_NO_STEPS


def change_class(feature: Feature, class_: type[Changed]) -> Changed:
    """Change the class of ``feature``, in place and without attributes, to ``class_``."""
    vars(feature).clear()
    feature.__class__ = class_
    return cast("Changed", feature)


def has_destroyers(fgraph: FunctionGraph) -> bool:
    """Whether a node overwrites an input, according to the destroy handler of ``fgraph``."""
    handler = getattr(fgraph, "destroy_handler", None)
    return handler is not None and bool(handler._destroying_apps)


class PassingFeature(Feature):
    """A feature that is attached for the duration of a pass, and is not copied with the graph."""

    def leave(self, fgraph: FunctionGraph) -> None:
        """Remove this feature from the graph, and from its lists of features by event."""
        fgraph.remove_feature(self)
        fgraph.execute_callbacks_times.pop(self, None)

    def clone(self) -> Feature:
        """Return a feature that the copy does not attach."""
        return _Nothing()

    def __deepcopy__(self, memo: object) -> Feature:
        return _Nothing()

    def __reduce__(self) -> tuple[type[Feature], tuple[()]]:
        return _Nothing, ()


class _Nothing(Feature):
    def on_attach(self, fgraph: FunctionGraph) -> None:
        raise AlreadyThere
