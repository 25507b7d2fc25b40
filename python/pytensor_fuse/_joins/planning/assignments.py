"""Plans for chains of `set_subtensor` and `inc_subtensor` of slices along the first axis.

Such a chain joins the assigned values with the pieces of the tensor between them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pytensor.graph.basic import Constant
from pytensor.tensor.basic import Alloc, alloc
from pytensor.tensor.subtensor import IncSubtensor, indices_from_subtensor

from pytensor_fuse._joins.lengths import length_of
from pytensor_fuse._joins.ops.layout import Slot
from pytensor_fuse._joins.planning.aliasing import overwrites_for_less
from pytensor_fuse._joins.planning.constraints import independent, within_operands
from pytensor_fuse._joins.planning.costs import is_small, least_written_elements, n_written_elements
from pytensor_fuse._joins.planning.streams import copied, produced, stream_of
from pytensor_fuse._joins.plans import JoinPlan, JoinReason
from pytensor_fuse._pytensor.ops.targets import Target

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph
    from pytensor.tensor.type import TensorType

    from pytensor_fuse._joins.plans import Compilation, Stream


class _Assignment(NamedTuple):
    """An assignment in a chain, and the slice that it assigns to."""

    slot: Slot
    node: Apply[Any]


def plan_assignment(compilation: Compilation, node: Apply[Any]) -> JoinPlan | None:
    """Decide which streams of a chain of assignments, which ends with ``node``, are written.

    Returns
    -------
    JoinPlan or None
        None if ``node`` is not an assignment to a slice along the first axis.
    """
    fgraph = compilation.fgraph
    assignments, tensor = _chain(fgraph, node)
    if not assignments:
        return None if _slice(node) is None else JoinPlan(node, 0, (), JoinReason.BOUNDS)
    result = node.outputs[0].type
    if is_small(result.shape, compilation.thresholds):
        return JoinPlan(node, 0, (), JoinReason.SMALL)
    streams: list[Stream] = []
    place = 0
    for slot, assignment in assignments:
        if slot.start > place:
            streams.append(
                _piece_stream(compilation, tensor, Slot(place, slot.start), result.dtype)
            )
        added = None if assignment.op.set_instead_of_inc else _piece(tensor, slot)
        stream = replace(
            stream_of(compilation, assignment.inputs[1], 1, result), slot=slot, added=added
        )
        refusal = _refusal(compilation, stream, result)
        if refusal is not None:
            return JoinPlan(node, 0, (stream,), refusal)
        streams.append(stream)
        if slot.stop is None:
            break
        place = slot.stop
    else:
        if result.shape[0] is None or place < result.shape[0]:
            streams.append(_piece_stream(compilation, tensor, Slot(place, None), result.dtype))
    total = length_of(tensor, 0)
    streams = independent(fgraph, within_operands(streams, compilation.target), (total,))
    copied_sum = any(stream.added is not None and not stream.written for stream in streams)
    # The shapes of pieces and sums are checked against the tensor, those of lone streams are not.
    compared = any(stream.slot is None or stream.added is not None for stream in streams)
    if copied_sum or not any(stream.written for stream in streams):
        reason = JoinReason.NO_STREAMS
    elif not compared and None in result.shape[1:]:
        reason = JoinReason.BROADCAST
    elif n_written_elements(streams) < max(
        compilation.thresholds.min_written,
        least_written_elements(compilation, streams, result.ndim),
    ):
        reason = JoinReason.FEW
    elif overwrites_for_less(fgraph, tensor, streams):
        reason = JoinReason.OVERWRITES
    else:
        reason = JoinReason.WRITTEN
    return JoinPlan(node, 0, tuple(streams), reason, total)


def _refusal(compilation: Compilation, stream: Stream, result: TensorType) -> JoinReason | None:
    """Return why a stream prevents the elimination of its whole chain, or None if it does not."""
    value, adds = stream.variable, stream.added is not None
    if not _fits(value.type, result, adds=adds):
        return JoinReason.BROADCAST
    if adds and compilation.target is Target.PYTHON:
        return JoinReason.NO_KERNEL
    # The added piece has the shape of the kernel's output, but not that of a raveled view of it.
    if adds and (not stream.written or value.owner is not stream.kernel):
        return stream.reason
    return None


def _chain(fgraph: FunctionGraph, node: Apply[Any]) -> tuple[list[_Assignment], Variable[Any, Any]]:
    """Return the assignments of a chain in the order of their slices, and the initial tensor.

    The chain ends before an assignment whose slice overlaps another one of the chain.
    """
    chain: list[_Assignment] = []
    tensor = node.outputs[0]
    while True:
        inner = tensor.owner
        if inner is None or (chain and len(fgraph.clients[tensor]) != 1):
            break
        slot = _slot(inner)
        if slot is None or any(slot.overlaps(other.slot) for other in chain):
            break
        chain.append(_Assignment(slot, inner))
        tensor = inner.inputs[0]
    return sorted(chain, key=lambda assignment: assignment.slot.start), tensor


def _slot(node: Apply[Any]) -> Slot | None:
    """Return the slice along the first axis that a node assigns to; None if it is unknown."""
    index = _slice(node)
    if index is None:
        return None
    bounds = (index.start, index.stop, index.step)
    numbers = [_number(bound) for bound in bounds]
    if any(bound is not None and n is None for bound, n in zip(bounds, numbers, strict=True)):
        return None
    start, stop, step = numbers
    start = start or 0
    length = node.inputs[0].type.shape[0]
    if length is not None:
        start, stop, _ = slice(start, stop).indices(length)
    # Bounds from the end are refused: in a tensor that is too short, slices could overlap.
    if step not in (None, 1) or start < 0 or (stop is not None and stop <= start):
        return None
    return Slot(start, stop)


def _slice(node: Apply[Any]) -> slice | None:
    """Return the slice that a node assigns to, if it indexes only the first axis."""
    if not isinstance(node.op, IncSubtensor) or node.op.inplace or len(node.op.idx_list) != 1:
        return None
    [index] = indices_from_subtensor(node.inputs[2:], node.op.idx_list)
    return index if isinstance(index, slice) else None


def _number(bound: Any) -> int | None:
    if isinstance(bound, Constant):
        return None if bound.data is None else int(bound.data)
    owner = getattr(bound, "owner", None)
    if owner is not None and len(owner.inputs) == 1 and isinstance(owner.inputs[0], Constant):
        # A conversion between kinds of scalars.
        return int(owner.inputs[0].data)
    return bound if isinstance(bound, int) else None


def _piece_stream(
    compilation: Compilation, tensor: Variable[Any, Any], slot: Slot, dtype: str
) -> Stream:
    """Return the stream of a piece without an assignment, which is written only if it is a fill."""
    piece = _piece(tensor, slot)
    if piece.owner is None or not isinstance(piece.owner.op, Alloc):
        return copied(piece, JoinReason.PIECE)
    return produced(compilation, piece, piece, dtype)


def _piece(tensor: Variable[Any, Any], slot: Slot) -> Variable[Any, Any]:
    """Return a slice of a tensor; if the tensor is a fill, a fill of the slice alone."""
    node = tensor.owner
    length = tensor.type.shape[0]
    if node is not None and isinstance(node.op, Alloc) and length is not None:
        value, _, *others = node.inputs
        if value.type.ndim == 0:
            filled: Variable[Any, Any] = cast("Any", alloc)(
                value, slot.length_within(length), *others
            )
            return filled
    piece: Variable[Any, Any] = cast("Any", tensor)[slot.start : slot.stop]
    return piece


def _fits(value: TensorType, tensor: TensorType, *, adds: bool) -> bool:
    """Return whether values of one type are assigned to slices of another without broadcasting.

    PyTensor also broadcasts dimensions that have length 1 only at run time.
    """
    return (
        value.ndim == tensor.ndim
        and None not in value.shape
        and not value.broadcastable[0]
        and value.broadcastable[1:] == tensor.broadcastable[1:]
        and (value.dtype == tensor.dtype or not adds)
    )
