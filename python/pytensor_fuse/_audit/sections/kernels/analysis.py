"""Analysis of the kernels of a graph."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytensor.graph.fg import FunctionGraph

from pytensor_fuse._audit.sections.kernels.cost import cost_of
from pytensor_fuse._audit.sections.kernels.equal import Expressions
from pytensor_fuse._audit.sections.kernels.limit import kept_apart
from pytensor_fuse._audit.sections.kernels.record import KernelCost, KernelKind
from pytensor_fuse._audit.sections.kernels.section import KernelsSection
from pytensor_fuse._plan.plan import plan_fusion
from pytensor_fuse._pytensor.ops.targets import Target, max_operands

if TYPE_CHECKING:
    from pytensor_fuse._audit.context.graph import GraphContext


def audit_kernels(context: GraphContext) -> KernelsSection:
    """Audit the kernels of a graph and its inner graphs; O(nodes + edges) besides the limit."""
    limit = max_operands(context.target)
    costs: list[KernelCost] = []
    groups: defaultdict[Any, list[int]] = defaultdict(list)
    expressions = Expressions()
    for graph in context.walk_node_by_node():
        limited = kept_apart(graph, limit)
        for node in graph.order:
            cost = cost_of(graph, node)
            if cost is None:
                continue
            if cost.kind is not KernelKind.REDUCTION:
                groups[expressions.key(node)].append(len(costs))
            costs.append(replace(cost, limited_by=limited.get(node, ())))
    equal = [tuple(group) for group in groups.values() if len(group) > 1]
    return KernelsSection(
        tuple(costs),
        tuple(sorted(equal, key=lambda group: -len(group) * costs[group[0]].scalar_nodes)),
        limit,
        _after_fusion(context),
    )


def _after_fusion(context: GraphContext) -> int | None:
    """Return the number of kernels of the graph after fusing it now, if that is smaller."""
    if not isinstance(context.fgraph, FunctionGraph):
        return None
    if context.function is not None and context.target is Target.STRICT:
        # An unknown linker may have its own loops, and run the nodes in any way.
        return None
    target = None if context.target is Target.STRICT else context.target.value
    stats = plan_fusion(context.fgraph, target=target).stats
    return stats.kernels_after if stats.kernels_after < stats.kernels_before else None
