"""Construction of the nodes that replace a planned join; the graph is changed elsewhere."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, cast

from pytensor.graph.rewriting.basic import copy_stack_trace

from pytensor_fuse._joins.ops.join import WriteJoin
from pytensor_fuse._joins.ops.layout import JoinLayout, Length
from pytensor_fuse._joins.ops.split import WriteSplit
from pytensor_fuse._joins.planning.constraints import is_read_elsewhere
from pytensor_fuse._joins.plans import kernel_outputs_written
from pytensor_fuse._joins.producers import PRODUCERS

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._joins.plans import JoinPlan, Stream
    from pytensor_fuse._joins.producers.producer import Placed


class Replacements:
    """Makes the nodes that write the streams of joins, for one graph."""

    def __init__(self, fgraph: FunctionGraph, *, reuse: bool) -> None:
        self._fgraph = fgraph
        self._reuse = reuse
        self._n_splits: Counter[tuple[JoinLayout, tuple[Variable[Any, Any], ...]]] = Counter()
        self._producers = [producer() for producer in PRODUCERS]

    def of(self, plan: JoinPlan) -> list[tuple[Variable[Any, Any], Variable[Any, Any]]]:
        """Return pairs of old and new variables, by which kernels write the streams of a join."""
        joined = plan.node.outputs[0]
        split = self._split(plan)
        layout: JoinLayout = split.op.layout
        memory, *parts = split.outputs

        placed: dict[Apply[Any], list[Placed]] = {}
        for stream, part in zip([s for s in plan.streams if s.written], parts, strict=True):
            placed.setdefault(cast("Apply[Any]", stream.kernel), []).append((stream, part))
        kernels = {kernel: self._writing(kernel, streams) for kernel, streams in placed.items()}

        operands = [
            s.variable if s.kernel is None else kernels[s.kernel].outputs[s.output]
            for s in plan.streams
        ]
        op = WriteJoin(plan.axis, layout.dtype, joined.type.shape, layout.written)
        join = op.make_node(memory, *operands)
        replacements = [(joined, join.outputs[0])]
        written = kernel_outputs_written(plan.streams)
        for kernel, new in kernels.items():
            replacements += [
                (old, new.outputs[i])
                for i, old in enumerate(kernel.outputs)
                if i not in written[kernel]
            ]
            copy_stack_traces(kernel, new)
        copy_stack_trace(joined, join.outputs[0])
        return replacements

    def _split(self, plan: JoinPlan) -> Apply[Any]:
        layout, sources = _layout(plan)
        # Without the number, merging would unify two equal allocations.
        number = self._n_splits[layout, sources]
        self._n_splits[layout, sources] += 1
        written = kernel_outputs_written(plan.streams)
        borrowed = tuple(
            not is_read_elsewhere(self._fgraph, stream.kernel, written[stream.kernel])
            for stream in plan.streams
            if stream.kernel is not None
        )
        split = WriteSplit(layout, number=number, reuse=self._reuse, borrowed=borrowed)
        return split.make_node(*sources)

    def _writing(self, kernel: Apply[Any], streams: list[Placed]) -> Apply[Any]:
        producer = next(producer for producer in self._producers if producer.produces(kernel))
        return producer.writing(kernel, streams)


def copy_stack_traces(old: Apply[Any], new: Apply[Any]) -> None:
    """Copy the stack traces of a node's outputs to those of another node."""
    # One by one: given several, PyTensor copies the traces of all of them to each output, so that
    # each join would multiply them by n.
    for before, after in zip(old.outputs, new.outputs, strict=True):
        copy_stack_trace(before, after)


def _layout(plan: JoinPlan) -> tuple[JoinLayout, tuple[Variable[Any, Any], ...]]:
    """Return the layout of a planned join, and the variables that its lengths refer to."""
    positions: dict[Variable[Any, Any], int] = {}

    def referring(length: Length[Variable[Any, Any]]) -> Length[int]:
        if length.source is None:
            return Length(length.static, None, None)
        position = positions.setdefault(length.source, len(positions))
        return Length(None, position, length.dim)

    def shape_of(stream: Stream) -> tuple[Length[int], ...]:
        return tuple(map(referring, stream.shape))

    joined = plan.node.outputs[0].type
    shapes = tuple(map(shape_of, plan.streams))
    layout = JoinLayout(
        plan.axis,
        joined.ndim,
        joined.dtype,
        shapes,
        tuple(stream.written for stream in plan.streams),
        () if plan.total is None else tuple(stream.slot for stream in plan.streams),
        None if plan.total is None else referring(plan.total),
    )
    return layout, tuple(positions)
