"""Inner graphs of the loops that write by index, with the values as their loops align them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.tensor.shape import shape_padright

from pytensor_fuse._native.lowering.indexing.writes import ndim_selected
from pytensor_fuse._pytensor.ops.fused_elemwise import indexed_outputs

if TYPE_CHECKING:
    from pytensor.compile.builders import OpFromGraph

    from pytensor_fuse._native.lowering.types import Nodes, Variables


def inner_graph(op: OpFromGraph) -> tuple[Variables, Nodes]:
    """Return the outputs of an op's inner graph, and its nodes in the order of execution.

    A loop over elements may write each of its values to a row. Numba aligns such values at their
    first axis, but PyTensor 3.3 omits the axes of length 1 at their end from the inner graph, which
    would align them at their last.

    Parameters
    ----------
    op
        The op.
    """
    outputs, nodes = list(op.fgraph.outputs), list(op.fgraph.toposort())
    for position in indexed_outputs(op):
        write = outputs[position].owner
        target, value, *indices = write.inputs
        n_missing = ndim_selected(write.op, write) - value.type.ndim
        if n_missing > 0:
            padded = shape_padright(value, n_missing)
            aligned = write.op.make_node(target, padded, *indices)
            # Nothing in the graph reads the results of writes.
            nodes.remove(write)
            nodes += [padded.owner, aligned]
            outputs[position] = aligned.outputs[0]
    return outputs, nodes
