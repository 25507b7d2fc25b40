"""Plans for Join nodes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pytensor_fuse._joins.planning.constraints import independent, within_operands
from pytensor_fuse._joins.planning.costs import (
    interleaves,
    is_small,
    least_written_elements,
    n_written_elements,
)
from pytensor_fuse._joins.planning.streams import all_copied, copied, stream_of
from pytensor_fuse._joins.plans import JoinPlan, JoinReason
from pytensor_fuse._pytensor.ops.targets import is_debugged
from pytensor_fuse._pytensor.ops.versions_of_ops import is_join, join_operands

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._joins.plans import Compilation


def plan_join(compilation: Compilation, node: Apply[Any]) -> JoinPlan:
    """Decide which streams of a Join are written into its result.

    Time and memory are linear in the size of the graph, mostly in the number of streams.
    """
    fgraph = compilation.fgraph
    axis, _ = join_operands(node)
    if axis is None:
        return JoinPlan(node, 0, (), JoinReason.AXIS)
    joined = node.outputs[0].type
    operands = _flattened(fgraph, node, axis)
    is_interleaved = any(n != 1 for n in joined.shape[:axis])
    if is_debugged(fgraph) and is_interleaved:
        return JoinPlan(node, axis, all_copied(operands, JoinReason.DEBUG), JoinReason.DEBUG)
    if is_small(joined.shape, compilation.thresholds):
        return JoinPlan(node, axis, all_copied(operands, JoinReason.SMALL), JoinReason.SMALL)
    counts = Counter(operands)
    streams = [stream_of(compilation, operand, counts[operand], joined) for operand in operands]
    if is_interleaved:
        streams = [
            copied(stream.variable, JoinReason.INTERLEAVED)
            if stream.written and interleaves(compilation, stream, axis)
            else stream
            for stream in streams
        ]
    streams = independent(fgraph, within_operands(streams, compilation.target))
    if not any(stream.written for stream in streams):
        reason = JoinReason.NO_STREAMS
    elif n_written_elements(streams) < least_written_elements(compilation, streams, joined.ndim):
        reason = JoinReason.FEW
    else:
        reason = JoinReason.WRITTEN
    return JoinPlan(node, axis, tuple(streams), reason)


def _flattened(
    fgraph: FunctionGraph, node: Apply[Any], axis: int
) -> tuple[Variable[Any, Any], ...]:
    """Return the streams of a join, with nested joins that only this join reads expanded."""
    operands: list[Variable[Any, Any]] = []
    pending = list(reversed(join_operands(node)[1]))
    dtype = node.outputs[0].type.dtype
    while pending:
        operand = pending.pop()
        inner = operand.owner
        if (
            inner is not None
            and is_join(inner)
            and operand.type.dtype == dtype
            and len(fgraph.clients[operand]) == 1
            and join_operands(inner)[0] == axis
        ):
            pending.extend(reversed(join_operands(inner)[1]))
        else:
            operands.append(operand)
    return tuple(operands)
