"""Costs of kernels: operations, reads and writes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise

from pytensor_fuse._audit.context.lengths import total
from pytensor_fuse._audit.sections.kernels.record import KernelCost, KernelKind
from pytensor_fuse._pytensor.ops.fused_elemwise import (
    index_inputs,
    indexed_outputs,
    indexes,
    is_fused_elemwise,
)
from pytensor_fuse._reports.names import op_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._audit.context.graph import GraphContext


def cost_of(graph: GraphContext, node: Apply[Any]) -> KernelCost | None:
    """Return the cost of a kernel, or None for another node."""
    op = node.op
    if isinstance(op, Elemwise):
        kind, scalar_op = KernelKind.ELEMWISE, op.scalar_op
    elif is_fused_elemwise(op):
        scalar_op = _elemwise_inside(op.fgraph.toposort()).op.scalar_op
        kind = KernelKind.INDEXED if indexes(op) else KernelKind.ELEMWISE
    elif isinstance(op, CAReduce) and isinstance(op.scalar_op, Composite):
        kind, scalar_op = KernelKind.REDUCTION, op.scalar_op
    else:
        return None
    arrays = [v for v in dict.fromkeys(node.inputs) if not _is_number(v)]
    if is_fused_elemwise(op):
        bytes_read, bytes_written = _bytes_touched(graph, node)
    else:
        bytes_read = total(graph.nbytes(v) for v in arrays)
        bytes_written = total(graph.nbytes(v) for v in node.outputs)
    return KernelCost(
        name=graph.name(node),
        path=graph.path,
        kind=kind,
        scalar_ops=dict(sorted(_scalar_ops(scalar_op).items())),
        reads=tuple(dict.fromkeys(graph.variable_name(_unshuffled(v)) for v in arrays)),
        arrays_read=len(arrays),
        arrays_written=len(node.outputs),
        bytes_read=bytes_read,
        bytes_written=bytes_written,
        operands=len(set(node.inputs)) + len(node.outputs),
        limited_by=(),
        times=graph.times,
    )


def _unshuffled(variable: Variable[Any, Any]) -> Variable[Any, Any]:
    while variable.owner is not None and isinstance(variable.owner.op, DimShuffle):
        variable = variable.owner.inputs[0]
    return variable


def _is_number(variable: Variable[Any, Any]) -> bool:
    return isinstance(variable, Constant) and variable.data.size == 1


def _scalar_ops(scalar_op: Any) -> Counter[str]:
    """Count the scalar ops of a kernel, including nested ones."""
    if not isinstance(scalar_op, Composite):
        return Counter([op_name(scalar_op).lower()])
    ops: Counter[str] = Counter()
    for node in scalar_op.fgraph.apply_nodes:
        ops += _scalar_ops(node.op)
    return ops


def _elemwise_inside(nodes: Sequence[Apply[Any]]) -> Apply[Any]:
    """Return the Elemwise node inside an op that wraps one."""
    return next(node for node in nodes if isinstance(node.op, Elemwise))


def _bytes_touched(graph: GraphContext, node: Apply[Any]) -> tuple[int | None, int | None]:
    """Return the bytes that a loop with indexed inputs and outputs reads and writes.

    An indexed input counts with the selected elements and the indices. An assignment writes the
    computed elements, and an increment also reads as many.
    """
    inner = graph.inner_graph[node]
    elemwise = _elemwise_inside(inner.order)
    picked = [v for v in dict.fromkeys(elemwise.inputs) if not _is_number(v)]
    indices = dict.fromkeys(index_inputs(node))
    read = [inner.nbytes(v) for v in picked] + [graph.nbytes(v) for v in indices]
    written = []
    modes = indexed_outputs(node.op)
    for i, variable in enumerate(node.outputs):
        mode = modes.get(i)
        assigned = inner.nbytes(elemwise.outputs[i]) if mode is not None else None
        if mode == "inc":
            read.append(assigned)
        in_place = i in node.op.destroy_map
        written.append(assigned if mode is not None and in_place else graph.nbytes(variable))
    return total(read), total(written)
