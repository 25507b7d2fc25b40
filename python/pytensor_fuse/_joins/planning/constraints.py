"""Constraints on the streams of one join that are written together."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from pytensor_fuse._joins.planning.streams import copied
from pytensor_fuse._joins.plans import JoinReason, kernel_outputs_written
from pytensor_fuse._pytensor.ops.targets import max_operands

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._joins.ops.layout import Length
    from pytensor_fuse._joins.plans import Stream
    from pytensor_fuse._pytensor.ops.targets import Target


def within_operands(streams: list[Stream], target: Target) -> list[Stream]:
    """Copy streams whose kernels cannot take another input for each stream that they write."""
    extra: Counter[Apply[Any]] = Counter()
    limit = max_operands(target)
    result = []
    for stream in streams:
        kernel = stream.kernel
        if kernel is not None:
            n_operands = len(kernel.inputs) + len(kernel.outputs) + extra[kernel]
            if n_operands + (stream.added is not None) >= limit:
                result.append(_left(stream, JoinReason.OPERANDS))
                continue
            extra[kernel] += 1 if stream.added is None else 2
        result.append(stream)
    return result


def independent(
    fgraph: FunctionGraph,
    streams: list[Stream],
    others: tuple[Length[Variable[Any, Any]], ...] = (),
) -> list[Stream]:
    """Copy streams of kernels that cannot wait until all lengths of the join are known.

    The result is allocated before kernels write there, so neither its lengths nor ``others`` may
    depend on a kernel. The other outputs of a kernel must not come to depend on a length, since a
    call may ask for them alone.
    """
    while True:
        lengths = chain(others, *(stream.shape for stream in streams))
        sources = [length.source for length in lengths if length.source is not None]
        needed = _ancestors(sources)
        made = {source.owner for source in sources if source.owner is not None}
        refused = {
            kernel: JoinReason.LENGTH if kernel in needed else JoinReason.WAITS
            for kernel, written in kernel_outputs_written(streams).items()
            if kernel in needed
            or (is_read_elsewhere(fgraph, kernel, written) and made - _ancestors(kernel.inputs))
        }
        if not refused:
            return streams
        streams = [
            _left(stream, refused[stream.kernel]) if stream.kernel in refused else stream
            for stream in streams
        ]


def is_read_elsewhere(fgraph: FunctionGraph, kernel: Apply[Any], written: set[int]) -> bool:
    """Return whether anything reads outputs of a kernel that it does not write into a join."""
    return any(fgraph.clients[v] for i, v in enumerate(kernel.outputs) if i not in written)


def _left(stream: Stream, reason: JoinReason) -> Stream:
    """Return a stream that could be written by itself as a copied one."""
    return replace(copied(stream.variable, reason), slot=stream.slot, added=stream.added)


def _ancestors(variables: Iterable[Variable[Any, Any]]) -> set[Apply[Any]]:
    nodes: set[Apply[Any]] = set()
    pending = [variable.owner for variable in variables if variable.owner is not None]
    while pending:
        node = pending.pop()
        if node not in nodes:
            nodes.add(node)
            pending.extend(v.owner for v in node.inputs if v.owner is not None)
    return nodes
