"""Wrapped methods of node rewriters and their trackers, which count tries.

A pass of many node rewriters, or a group of them, iterates over the rewriters that track the op of
a node; the iterator counts how far it gets. The only node rewriter of a pass that walks over the
graph is counted where it runs on an op that it tracks: most nodes of such a walk are rejected at
once, in less time than it takes to count them.

Code that runs for each node is inlined here to save calls.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from pytensor.graph.rewriting.basic import (
    FromFunctionNodeRewriter,
    NodeRewriter,
    OpToRewriterTracker,
    SequentialNodeRewriter,
)

from pytensor_fuse._pytensor.compat.packages import is_pytensors
from pytensor_fuse._pytensor.patching.temporary_attributes import TemporaryAttributes
from pytensor_fuse._pytensor.rewriting.node_trackers import SeenOps, lookup_of
from pytensor_fuse._trace.frames import PassFrame, WalkFrame
from pytensor_fuse._trace.recorders import open_recorders
from pytensor_fuse._trace.running import running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph
    from pytensor.graph.op import Op

    Method = Callable[..., Any]

# By the address of the rewriter, which the value keeps alive.
_seen_ops: dict[int, SeenOps] = {}

# The original functions of rewriters made from a function that are the only one of a pass.
_functions = TemporaryAttributes()


def forget_node_rewriters() -> None:
    """Restore the functions of rewriters made from a function."""
    _functions.undo()
    _seen_ops.clear()


def wrapped_transform(transform: Method) -> Method:
    """Wrap ``transform`` of a class, to count its runs for a pass that walks."""

    @wraps(transform)
    def traced(
        self: NodeRewriter, fgraph: FunctionGraph, node: Apply[Any], *args: Any, **options: Any
    ) -> Any:
        frame = running.frame
        if (
            not isinstance(frame, WalkFrame)
            or frame.node_rewriter is not self
            or frame.is_busy
            or not _seen_ops_of(self).has(node.op)
        ):
            return transform(self, fgraph, node, *args, **options)
        frame.n_tried += 1
        frame.is_busy = True
        try:
            found = transform(self, fgraph, node, *args, **options)
        finally:
            frame.is_busy = False
        if found:
            frame.n_offered += 1
        return found

    return traced


def _seen_ops_of(rewriter: NodeRewriter) -> SeenOps:
    seen = _seen_ops.get(id(rewriter))
    if seen is None:
        seen = _seen_ops[id(rewriter)] = SeenOps(rewriter)
    return seen


def watch_function(rewriter: NodeRewriter) -> None:
    """Wrap the function of a rewriter, to count the nodes whose ops it tracks.

    The wrapper stays until all traces are closed, in all threads: it is not removed after each
    pass.
    """
    if _functions.has(rewriter, "fn") or not isinstance(rewriter, FromFunctionNodeRewriter):
        return
    own: Method = rewriter.fn
    state = running

    @wraps(own)
    def watched(fgraph: FunctionGraph, node: Apply[Any]) -> Any:
        frame = state.frame
        if not isinstance(frame, WalkFrame) or frame.node_rewriter is not rewriter or frame.is_busy:
            return own(fgraph, node)
        frame.n_tried += 1
        frame.is_busy = True
        try:
            found = own(fgraph, node)
        finally:
            frame.is_busy = False
        if found:
            frame.n_offered += 1
        return found

    with open_recorders.lock:
        if open_recorders:
            _functions.replace(rewriter, "fn", watched)


def wrapped_group(transform: Method) -> Method:
    """Wrap ``transform`` of a class of groups, to count and time the members."""
    state = running
    is_watched = is_pytensors(transform)

    @wraps(transform)
    def traced(
        self: SequentialNodeRewriter,
        fgraph: FunctionGraph,
        node: Apply[Any],
        *args: Any,
        **options: Any,
    ) -> Any:
        frame = state.frame
        if not isinstance(frame, PassFrame):
            return transform(self, fgraph, node, *args, **options)
        current = frame.tallies.current
        if current is None or current.rewriter is not self:
            return transform(self, fgraph, node, *args, **options)
        tracker = self.tracker if is_watched else None
        outer = frame.tries
        if outer is not None and outer.group is current:
            # A subclass's method calls that of its base class.
            before = outer.ask(tracker)
            try:
                return transform(self, fgraph, node, *args, **options)
            finally:
                outer.ask(before)
        frame.tries = group = frame.groups.get(id(current)) or frame.new_group(current)
        group.open(tracker)
        try:
            found = transform(self, fgraph, node, *args, **options)
        finally:
            group.close()
            frame.tries = outer
            frame.tallies.current = current
        if found:
            group.n_offered += 1
        return found

    return traced


def candidates_of(tracker: OpToRewriterTracker) -> Callable[[Op], Iterable[NodeRewriter]]:
    """Return the lookup by which a pass or a group finds the node rewriters for an op."""
    frame = running.frame
    if frame is not None:
        tries = frame.tries
        if tries is not None and tries.tracker is tracker:
            return tries.candidates
    return lookup_of(tracker)
