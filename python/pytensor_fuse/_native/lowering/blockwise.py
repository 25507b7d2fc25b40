"""Blockwise: an op on arrays, applied to each member of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.tensor.blockwise import Blockwise, BlockwiseWithCoreShape

from pytensor_fuse._native.lowering.arrays.elementwise import broadcast_lengths
from pytensor_fuse._native.lowering.batches import Batch, for_each
from pytensor_fuse._native.lowering.graph import graph_refusal, lower_inner
from pytensor_fuse._native.lowering.registry import dtype_refusal, lower
from pytensor_fuse._native.lowering.tensors import Tensor
from pytensor_fuse._pytensor.graphs.core_nodes import core_node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.types import Context, Node, Tensors


def _refuses(op: Blockwise, node: Node) -> str | None:
    why = dtype_refusal(node) or lower.refusal(core_node(op, node))
    return None if why is None else f"for each of a batch: {why}"


@lower.register(Blockwise, refuses=_refuses)
def _blockwise(op: Blockwise, node: Node, context: Context, inputs: Tensors) -> Tensors:
    core = core_node(op, node)
    n_axes = op.batch_ndim(node)
    broadcasts = [one.type.broadcastable[:n_axes] for one in node.inputs]
    outer = [Tensor(one.dtype, one.lengths[:n_axes], one.at) for one in inputs]
    lengths = broadcast_lengths(context, outer, broadcasts)

    def body(given: Tensors) -> Sequence[Tensor]:
        return lower_inner(context, core.inputs, core.outputs, [core], given)

    batches = [Batch(one, axes) for one, axes in zip(inputs, broadcasts, strict=True)]
    return for_each(context, lengths, batches, body)


def _refuses_inner(op: BlockwiseWithCoreShape, node: Node) -> str | None:
    return graph_refusal(op.fgraph)


@lower.register(BlockwiseWithCoreShape, refuses=_refuses_inner)
def _blockwise_with_core_shape(
    op: BlockwiseWithCoreShape, node: Node, context: Context, inputs: Tensors
) -> Tensors:
    # The trailing shape inputs are redundant: the core op's rule determines the same shapes.
    graph = op.fgraph
    return lower_inner(context, graph.inputs, graph.outputs, graph.toposort(), inputs)
