"""Analysis of the ops of a graph."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pytensor.tensor.type import TensorType

from pytensor_fuse._audit.sections.ops.kinds import kind_of
from pytensor_fuse._audit.sections.ops.record import OpKind, UnknownOp
from pytensor_fuse._audit.sections.ops.section import OpsSection
from pytensor_fuse._audit.sections.ops.unknown import UnknownScalars, class_name
from pytensor_fuse._pytensor.ops.fused_elemwise import is_fused_elemwise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.graph.basic import Apply

    from pytensor_fuse._audit.context.graph import GraphContext


def audit_ops(context: GraphContext) -> OpsSection:
    """Count the nodes of a graph and its inner graphs by kind; O(nodes)."""
    kinds: Counter[OpKind] = Counter()
    unknown: dict[str, tuple[int, tuple[str, ...], bool]] = {}
    scalars = UnknownScalars()
    total = 0
    for graph, in_kernel in _walk(context):
        for node in graph.order:
            kind = kind_of(node.op)
            if not in_kernel:
                total += 1
                kinds[kind] += 1
            names = scalars.of(node.op)
            if kind is OpKind.UNKNOWN:
                names = (class_name(node.op),)
            for name in names:
                n, first, sizes_known = unknown.get(name, (0, (), True))
                first = first or (*graph.path, graph.name(node))
                unknown[name] = (n + 1, first, sizes_known and _sizes_are_known(graph, node))
    ops = [UnknownOp(name, *found) for name, found in unknown.items()]
    return OpsSection(
        nodes=total,
        inner_nodes=total - len(context.order),
        kinds=dict(sorted(kinds.items(), key=lambda item: -item[1])),
        unknown=tuple(sorted(ops, key=lambda op: -op.nodes)),
    )


def _walk(graph: GraphContext, *, in_kernel: bool = False) -> Iterator[tuple[GraphContext, bool]]:
    """Iterate over a graph and its inner graphs, with whether a kernel wraps them."""
    yield graph, in_kernel
    for node, inner in graph.inner:
        yield from _walk(inner, in_kernel=in_kernel or is_fused_elemwise(node.op))


def _sizes_are_known(graph: GraphContext, node: Apply[Any]) -> bool:
    return all(graph.nbytes(v) is not None for v in node.outputs if isinstance(v.type, TensorType))
