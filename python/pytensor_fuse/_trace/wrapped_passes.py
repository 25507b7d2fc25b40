"""Wrapped methods of passes, which record each run: its time, its nodes, and inner items."""

from __future__ import annotations

from functools import wraps
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import (
    EquilibriumGraphRewriter,
    GraphRewriter,
    NodeProcessingGraphRewriter,
)

from pytensor_fuse._pytensor.compat.packages import is_pytensors
from pytensor_fuse._pytensor.rewriting.passes import walked_with
from pytensor_fuse._trace.frames import EquilibriumFrame, Frame, NodeCounts, PassFrame, WalkFrame
from pytensor_fuse._trace.recorders import open_recorders
from pytensor_fuse._trace.running import running
from pytensor_fuse._trace.tallies import NodeCounter
from pytensor_fuse._trace.wrapped_node_rewriters import watch_function

if TYPE_CHECKING:
    from collections.abc import Callable

    Method = Callable[..., Any]


def wrapped_apply(class_: type, apply: Method) -> Method:
    """Wrap ``apply`` of a class of passes in a frame."""
    state, recorders = running, open_recorders
    is_watched = issubclass(class_, EquilibriumGraphRewriter) and is_pytensors(apply)

    def run(frame: PassFrame, self: Any, args: Any, kwargs: Any) -> Any:
        profiled = frame.profiled
        if isinstance(frame, EquilibriumFrame):
            before = frame.watch(self.node_tracker if is_watched else None)
            try:
                result = apply(self, *args, **kwargs)
            finally:
                frame.watch(before)
        else:
            result = apply(self, *args, **kwargs)
        # A profile from a base class's method is not taken again.
        if frame.profiled == profiled:
            frame.take_profile(result)
        return result

    @wraps(apply)
    def traced(self: GraphRewriter, /, *args: Any, **kwargs: Any) -> Any:
        parent = state.frame
        if not recorders and parent is None:
            return apply(self, *args, **kwargs)
        # The first parameter may have any name.
        fgraph = args[0] if args else next(iter(kwargs.values()), None)
        if not isinstance(fgraph, FunctionGraph):
            return apply(self, *args, **kwargs)
        if isinstance(parent, PassFrame) and parent.rewriter is self and parent.fgraph is fgraph:
            # A subclass's method calls that of its base class.
            return run(parent, self, args, kwargs)
        counter = _counter_on(fgraph, parent)
        is_outermost = counter is None
        counter = counter or NodeCounter()
        frame = _frame_for(self, fgraph, parent, NodeCounts(fgraph, counter))
        if state.preparing is not None and state.preparing[0] is fgraph:
            frame.requirements = frame.began - state.preparing[1]
            state.preparing = None
        outer, counter.tallies = counter.tallies, frame.tallies
        state.frame = frame
        error: BaseException | None = None
        try:
            if is_outermost:
                fgraph.attach_feature(counter)
            return run(frame, self, args, kwargs)
        except BaseException as raised:
            error = raised
            raise
        finally:
            state.frame = parent
            counter.tallies = outer
            if is_outermost:
                counter.leave(fgraph)
            frame.finish(fgraph, error)
            error = None
            recorders.take(frame)

    return traced


def _counter_on(fgraph: FunctionGraph, parent: Frame | None) -> NodeCounter | None:
    """Return the node counter of the enclosing pass, if that works on the same graph."""
    if isinstance(parent, PassFrame) and parent.fgraph is fgraph:
        return parent.nodes.counter
    return None


def _frame_for(
    rewriter: GraphRewriter, fgraph: FunctionGraph, parent: Frame | None, nodes: NodeCounts
) -> PassFrame:
    bases = type(rewriter).__mro__
    # Looked up in the MRO: isinstance is slow, since these are abstract base classes.
    if EquilibriumGraphRewriter in bases:
        return EquilibriumFrame(parent, rewriter, fgraph, nodes)
    if NodeProcessingGraphRewriter in bases:
        walked = walked_with(rewriter)
        if walked is not None:
            watch_function(walked)
            return WalkFrame(parent, rewriter, fgraph, nodes, walked)
    return PassFrame(parent, rewriter, fgraph, nodes)


def wrapped_rewrite(rewrite: Method) -> Method:
    """Wrap ``rewrite``, which prepares a graph for a pass, to note the start of that."""
    state = running

    @wraps(rewrite)
    def traced(self: GraphRewriter, fgraph: FunctionGraph, *args: Any, **kwargs: Any) -> Any:
        outer = state.preparing
        state.preparing = fgraph, perf_counter()
        try:
            return rewrite(self, fgraph, *args, **kwargs)
        finally:
            state.preparing = outer

    return traced
