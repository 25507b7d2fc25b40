"""Methods of passes that note each run: its time, its nodes, and what it starts."""

from __future__ import annotations

from functools import wraps
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import EquilibriumGraphRewriter, WalkingGraphRewriter

from pytensor_fuse._pytensor.origin import is_pytensors
from pytensor_fuse._pytensor.rewriting_passes import walked_with
from pytensor_fuse._trace.frames import EquilibriumFrame, Frame, NodeCounts, PassFrame, WalkFrame
from pytensor_fuse._trace.recorders import open_recorders
from pytensor_fuse._trace.running import running
from pytensor_fuse._trace.tallies import NodeCounter
from pytensor_fuse._trace.wrapped_node_rewriters import watch_function

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor.graph.rewriting.basic import GraphRewriter

    Method = Callable[..., Any]


def wrapped_apply(class_: type, apply: Method) -> Method:
    """Return ``apply`` of a class of passes with a frame around it."""
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
        # What a base class's method has told is not told again.
        if frame.profiled == profiled:
            frame.take_profile(result)
        return result

    @wraps(apply)
    def traced(self: GraphRewriter, /, *args: Any, **kwargs: Any) -> Any:
        parent = state.frame
        if not recorders and parent is None:
            return apply(self, *args, **kwargs)
        # The first parameter has any name that its author gave it.
        fgraph = args[0] if args else next(iter(kwargs.values()), None)
        if not isinstance(fgraph, FunctionGraph):
            return apply(self, *args, **kwargs)
        if isinstance(parent, PassFrame) and parent.rewriter is self and parent.fgraph is fgraph:
            # A class's method that calls that of its base class.
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
    """Return what counts the nodes of the graph already, for the pass that this is within."""
    if isinstance(parent, PassFrame) and parent.fgraph is fgraph:
        return parent.nodes.counter
    return None


def _frame_for(
    rewriter: GraphRewriter, fgraph: FunctionGraph, parent: Frame | None, nodes: NodeCounts
) -> PassFrame:
    bases = type(rewriter).__mro__
    # These are abstract base classes: to ask whether something is an instance takes long.
    if EquilibriumGraphRewriter in bases:
        return EquilibriumFrame(parent, rewriter, fgraph, nodes)
    if WalkingGraphRewriter in bases:
        walked = walked_with(rewriter)
        if walked is not None:
            watch_function(walked)
            return WalkFrame(parent, rewriter, fgraph, nodes, walked)
    return PassFrame(parent, rewriter, fgraph, nodes)


def wrapped_rewrite(rewrite: Method) -> Method:
    """Return a method that prepares a graph for a pass, with the time of that noted."""
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
