"""In-place computation of the other outputs of a kernel that writes into parts.

PyTensor's in-place pass skips nodes that already destroy an input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph.utils import InconsistencyError

from pytensor_fuse._joins.ops.elemwise import WriteElemwise
from pytensor_fuse._joins.replacements import copy_stack_traces
from pytensor_fuse._pytensor.graphs.overwritable import overwritable_pairs, updated_inputs

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph


def overwrite_inputs(fgraph: FunctionGraph, node: Apply[Any], reason: str) -> None:
    """Let each output of a `WriteElemwise` overwrite an input, where ``fgraph`` accepts it.

    An output prefers the shared variable that it updates.
    """
    if len(node.op.inplace_pattern) == len(node.outputs):
        return
    updated = updated_inputs(fgraph)
    pairs = sorted(
        (
            pair
            for pair in overwritable_pairs(fgraph, node)
            if pair[0][0] not in node.op.inplace_pattern
        ),
        key=lambda pair: updated.get(pair[0][1]) is not pair[1][1],
    )
    for (output, _), (position, _) in pairs:
        pattern = node.op.inplace_pattern
        if output in pattern or position in pattern.values():
            continue
        make: Any = WriteElemwise
        op = make(node.op.scalar_op, {**pattern, output: position}, openmp=node.op.openmp)
        new = op.make_node(*node.inputs)
        try:
            fgraph.replace_all_validate(
                list(zip(node.outputs, new.outputs, strict=True)), reason=reason
            )
        except InconsistencyError:
            continue
        copy_stack_traces(node, new)
        node = new
