"""Analysis of the memory of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.graph.fg import FunctionGraph

from pytensor_fuse._audit.sections.memory.allocation import results
from pytensor_fuse._audit.sections.memory.copies import copies, reasons_of_joins
from pytensor_fuse._audit.sections.memory.in_place import Aliases
from pytensor_fuse._audit.sections.memory.peak import peak
from pytensor_fuse._audit.sections.memory.section import MemorySection
from pytensor_fuse._joins.reports import explain_joins

if TYPE_CHECKING:
    from pytensor_fuse._audit.context.graph import GraphContext


def audit_memory(context: GraphContext) -> MemorySection:
    """Audit the memory of a graph; O(nodes + edges), and O(nodes^2) bits for reachability."""
    aliases = Aliases(context)
    graphs = list(context.walk_node_by_node())
    reports = explain_joins(context.fgraph) if isinstance(context.fgraph, FunctionGraph) else ()
    why_joins = reasons_of_joins(reports)
    found = [c for graph in graphs for c in copies(graph, why_joins)]
    return MemorySection(
        tuple(result for graph in graphs for result in results(graph, aliases)),
        tuple(sorted(found, key=lambda copy: -(copy.nbytes or 0))),
        sum(report.eliminated for report in reports),
        peak(context),
    )
