"""Instrumentation: while a trace is open, classes of PyTensor have methods that note what they do.

The classes of PyTensor's rewriters, and of what compiles functions, get other methods with the
first trace; with the last trace they get their own back. So do the node rewriters that are made
from a function and are the only one of a pass, for that function. Databases, kept queries, modes
and other threads hold the same objects throughout.

What is measured where:

- a pass, by its class's ``apply``: its time, the nodes before and after, and what it starts;
- the node rewriters of a pass that has many of them, by the profile that it returns, which
  PyTensor takes in any case: times and successes. That lacks the tries. The pass goes through
  those of its rewriters that track the op of a node, by an iterator that counts how far it goes;
- the one node rewriter of a pass that walks over the graph, by the profile, too. Its tries are
  counted by what it does once it has not refused the op;
- the members of a group of node rewriters, which the group goes through itself, by an iterator
  that takes the time as well;
- nodes created and thrown away, by a feature of the graph that counts.

To wrap each run of a node rewriter instead would cost a fifth of the time of a small compile.

Of all this only the feature is something that the rewriting could see. It is attached after the
others, is told of nothing but imports and prunes, does not go along into copies of the graph, and
is gone when the pass that it was attached for is.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

from pytensor.compile.maker import FunctionMaker
from pytensor.graph.rewriting.basic import (
    FromFunctionNodeRewriter,
    GraphRewriter,
    NodeRewriter,
    OpToRewriterTracker,
    SequentialNodeRewriter,
)

from pytensor_fuse._pytensor.node_trackers import LOOKUP, lookup_property
from pytensor_fuse._pytensor.temporary_attributes import TemporaryAttributes, class_tree
from pytensor_fuse._pytensor.versions import WRAPPERS
from pytensor_fuse._trace.recorders import open_recorders
from pytensor_fuse._trace.wrapped_makers import forget_calls, wrapped_create, wrapped_init
from pytensor_fuse._trace.wrapped_node_rewriters import (
    candidates_of,
    forget_node_rewriters,
    wrapped_group,
    wrapped_transform,
)
from pytensor_fuse._trace.wrapped_passes import wrapped_apply, wrapped_rewrite

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor_fuse._trace.recorders import Recorder

# What the classes had before.
_methods = TemporaryAttributes()


def start(recorder: Recorder) -> None:
    """Let a recorder have the outermost frames that begin from now on."""
    open_recorders.add(recorder, before_first=_instrument)


def stop(recorder: Recorder) -> None:
    """Let a recorder have no more; undo what the first one brought about."""
    open_recorders.remove(recorder, after_last=_restore)


def _instrument() -> None:
    try:
        for base, wrap in (
            (GraphRewriter, _wrap_pass),
            (FunctionMaker, _wrap_maker),
            (NodeRewriter, _wrap_node_rewriter),
        ):
            for class_ in class_tree(base):
                wrap(class_)
            _methods.replace(base, "__init_subclass__", classmethod(_wrapping_new(base, wrap)))
        _methods.replace(GraphRewriter, "rewrite", wrapped_rewrite(GraphRewriter.rewrite))
        _methods.replace(OpToRewriterTracker, LOOKUP, lookup_property(candidates_of))
    except BaseException:
        _restore()
        raise


def _restore() -> None:
    forget_node_rewriters()
    _methods.undo()
    forget_calls()


def _wrap_pass(class_: type) -> None:
    method = _own_method(class_, "apply")
    if method is not None and not issubclass(class_, WRAPPERS):
        _methods.replace(class_, "apply", wrapped_apply(class_, method))


def _wrap_node_rewriter(class_: type) -> None:
    method = _own_method(class_, "transform")
    if method is None:
        return
    if issubclass(class_, SequentialNodeRewriter):
        _methods.replace(class_, "transform", wrapped_group(method))
    elif not issubclass(class_, FromFunctionNodeRewriter):
        _methods.replace(class_, "transform", wrapped_transform(method))


def _wrap_maker(class_: type) -> None:
    for name, wrapped in (("__init__", wrapped_init), ("create", wrapped_create)):
        method = _own_method(class_, name)
        if method is not None:
            _methods.replace(class_, name, wrapped(method))


def _own_method(class_: type, name: str) -> FunctionType | None:
    """Return a method that a class itself has, and that does something."""
    method = vars(class_).get(name)
    if not isinstance(method, FunctionType) or getattr(method, "__isabstractmethod__", False):
        return None
    return method


def _wrapping_new(base: type[Any], wrap: Callable[[type], None]) -> Callable[..., None]:
    """Return what wraps the methods of subclasses that are made while a trace is open."""

    def wrap_new(class_: type[Any], /, **options: Any) -> None:
        super(base, class_).__init_subclass__(**options)
        with open_recorders.lock:
            if open_recorders:
                wrap(class_)

    return wrap_new
