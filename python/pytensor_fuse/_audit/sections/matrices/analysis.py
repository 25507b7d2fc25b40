"""Analysis of the work on matrices in a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._audit.context.values import Values
from pytensor_fuse._audit.sections.matrices.kinds import core_of, kind_of, why_unknown
from pytensor_fuse._audit.sections.matrices.record import UnknownWork
from pytensor_fuse._audit.sections.matrices.section import MatricesSection
from pytensor_fuse._audit.sections.matrices.sharing import by_matrix, inverse_products, repeated
from pytensor_fuse._audit.sections.matrices.work import find_work

if TYPE_CHECKING:
    from pytensor_fuse._audit.context.graph import GraphContext


def audit_matrices(context: GraphContext) -> MatricesSection:
    """Find the work on matrices in a graph and its inner graphs.

    Notes
    -----
    O(nodes + edges); the values of all variables are numbered once, and only if there is any work.
    """
    if not any(kind_of(node) for graph in context.walk() for node in graph.order):
        return MatricesSection((), (), (), (), (), _unknown(context))
    values = Values(context)
    found = list(find_work(values))
    matrices, factorizations = by_matrix(found, values)
    return MatricesSection(
        work=tuple(one.work for one in found),
        matrices=matrices,
        factorizations=factorizations,
        repeated=repeated(found),
        inverse_products=inverse_products(found, values),
        unknown=_unknown(context),
    )


def _unknown(context: GraphContext) -> tuple[UnknownWork, ...]:
    found = []
    for graph in context.walk():
        with_graphs = {node for node, _ in graph.inner}
        for node in graph.order:
            why = why_unknown(core_of(node.op), has_graph=node in with_graphs)
            if why:
                found.append(UnknownWork(node, graph.name(node), graph.path, why))
    return tuple(found)
