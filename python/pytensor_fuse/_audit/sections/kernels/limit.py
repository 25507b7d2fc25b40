"""Kernels that only the limit on operands keeps apart."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pytensor.tensor.elemwise import Elemwise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Apply

    from pytensor_fuse._audit.context.graph import GraphContext


def kept_apart(graph: GraphContext, limit: int) -> dict[Apply[Any], tuple[str, ...]]:
    """Return for each kernel the names of the kernels that only the limit keeps apart from it.

    If two kernels exceed the limit together, the larger one has more than half as many operands as
    the limit, so that only pairs with such a kernel are considered.
    """
    big = [
        node
        for node in graph.order
        if isinstance(node.op, Elemwise) and 2 * _n_operands([node], graph) > limit
    ]
    if not big:
        return {}
    kept: defaultdict[Apply[Any], dict[Apply[Any], None]] = defaultdict(dict)
    for node in big:
        for other in _neighbors(graph, node):
            if other in kept[node] or _n_operands([node, other], graph) <= limit:
                continue
            pair = [graph.positions[node], graph.positions[other]]
            # Without convexity, the merged kernel and the nodes between would be a cycle.
            if graph.dependencies.is_convex(pair):
                kept[node][other] = None
                kept[other][node] = None
    return {
        node: tuple(map(graph.name, sorted(others, key=graph.positions.__getitem__)))
        for node, others in kept.items()
    }


def _neighbors(graph: GraphContext, node: Apply[Any]) -> list[Apply[Any]]:
    """Return the kernels of the same pattern that fusion considers connected to one."""
    pattern = node.outputs[0].type.broadcastable
    near: dict[Apply[Any], None] = {}
    for variable in node.inputs:
        if variable.type.broadcastable != pattern:
            continue
        if variable.owner is not None:
            near[variable.owner] = None
        near.update((client, None) for client, _ in graph.clients.get(variable, ()))
    for variable in node.outputs:
        near.update((client, None) for client, _ in graph.clients.get(variable, ()))
    near.pop(node, None)
    return [
        other
        for other in near
        if isinstance(other.op, Elemwise) and other.outputs[0].type.broadcastable == pattern
    ]


def _n_operands(nodes: Sequence[Apply[Any]], graph: GraphContext) -> int:
    """Return the number of operands of one kernel of these nodes."""
    results = [v for node in nodes for v in node.outputs]
    outputs = set(graph.fgraph.outputs)
    leaving = [
        v
        for v in results
        if v in outputs
        or v not in graph.clients
        or any(client not in nodes for client, _ in graph.clients[v])
    ]
    entering = {v for node in nodes for v in node.inputs} - set(results)
    return len(entering) + len(leaving)
