"""Instrumentation: while a trace is open, methods of PyTensor's classes record their calls.

The classes of PyTensor's rewriters and function makers get wrapped methods when the first trace
opens, and their own methods back when the last trace closes. The same is true of the function of
a node rewriter made from a function, where it is the only one of a pass. Databases, cached
queries, modes and other threads hold the same objects throughout.

The measurements and their sources:

- a pass, by its class's ``apply``: its time, the nodes before and after, and inner items;
- the node rewriters of a pass with many of them, by the profile that it returns, which PyTensor
  takes in any case: times and successes. Tries are not in the profile. The pass iterates over the
  rewriters that track the op of a node; the iterator counts how far it gets;
- the only node rewriter of a pass that walks over the graph, by the profile, too. Its tries are
  counted where it runs on an op that it tracks;
- the members of a group of node rewriters, over which the group itself iterates, by an iterator
  that also takes the times;
- nodes created and removed, by a feature of the graph that counts.

Wrapping each run of a node rewriter instead would cost a fifth of the time of a small compilation.

Only the feature is visible to the rewriting. It is attached after the other features, receives
only imports and prunes, is not copied with the graph, and is removed after its pass.
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

from pytensor_fuse._pytensor.compat.versions import WRAPPERS
from pytensor_fuse._pytensor.patching.temporary_attributes import TemporaryAttributes, class_tree
from pytensor_fuse._pytensor.rewriting.node_trackers import LOOKUP, lookup_property
from pytensor_fuse._trace.recorders import Recorder, open_recorders
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


# The original methods of the classes.
_methods = TemporaryAttributes()


def start(recorder: Recorder) -> None:
    """Give a recorder the outermost frames that begin from now on."""
    open_recorders.add(recorder, before_first=_instrument)


def stop(recorder: Recorder) -> None:
    """Give a recorder no more frames; undo the instrumentation after the last one."""
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
    """Return a concrete method that a class itself defines, or None."""
    method = vars(class_).get(name)
    if not isinstance(method, FunctionType) or getattr(method, "__isabstractmethod__", False):
        return None
    return method


def _wrapping_new(base: type[Any], wrap: Callable[[type], None]) -> Callable[..., None]:
    """Return a hook that wraps the methods of classes defined while a trace is open."""

    def wrap_new(class_: type[Any], /, **options: Any) -> None:
        super(base, class_).__init_subclass__(**options)
        with open_recorders.lock:
            if open_recorders:
                wrap(class_)

    return wrap_new
