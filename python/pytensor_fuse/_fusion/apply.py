"""Application of planned clusters: replacement of nodes by Composite kernels."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytensor.graph.basic import Apply
from pytensor.scalar.basic import get_scalar_type

from pytensor_fuse._fusion.kernels import kernel_cache
from pytensor_fuse._identity.table import table
from pytensor_fuse._identity.terms import term
from pytensor_fuse._pytensor.graphs.composites import build_kernel
from pytensor_fuse._pytensor.graphs.edits import replace_all, report

if TYPE_CHECKING:
    from pytensor.graph.basic import Variable
    from pytensor.graph.fg import FunctionGraph
    from pytensor.tensor.elemwise import Elemwise

    from pytensor_fuse import _core
    from pytensor_fuse._fusion.extract import ExtractedGraph


def apply_clusters(
    fgraph: FunctionGraph, graph: ExtractedGraph, clusters: _core.FusedClusters, reason: str
) -> int:
    """Replace each cluster by one Elemwise of a Composite; return the number of kernels made.

    The graph is validated once, after all replacements; if a feature refuses it, the graph is
    restored and the error is raised.
    """
    new_nodes, replacements = make_nodes(graph, clusters)
    nodes = graph.arrays.nodes
    old_nodes = [nodes[i] for i in clusters.fused_nodes()]
    replace_all(fgraph, new_nodes, replacements, old_nodes, reason)
    report(replacements, reason)
    return len(new_nodes)


def make_nodes(
    graph: ExtractedGraph, clusters: _core.FusedClusters
) -> tuple[list[Apply[Any]], list[tuple[Variable[Any, Any], Variable[Any, Any]]]]:
    """Make the apply nodes of the kernels, which read each other's results, not the old ones.

    Returns
    -------
    nodes
        The nodes, in topological order.
    replacements
        Pairs of an old result and its replacement.
    """
    arrays = graph.arrays
    variables = arrays.variables
    ops = [None if kind is None else term(kind.node.op) for kind in graph.kinds]
    types = [term(get_scalar_type(dtype)) for dtype in arrays.dtypes]
    builder = _Builder(graph)
    new_of: dict[int, Variable[Any, Any]] = {}
    nodes, replacements = [], []
    for structure, members, inputs, outputs in clusters.kernels(arrays, table, ops, types):
        op = kernel_cache.get(structure)
        if op is None:
            op = kernel_cache.add(structure, builder.build(members, inputs, outputs))
        results = [_like(variables[i]) for i in outputs]
        nodes.append(Apply(op, [new_of.get(i, variables[i]) for i in inputs], results))
        for i, result in zip(outputs, results, strict=True):
            new_of[i] = result
            replacements.append((variables[i], result))
    return nodes, replacements


class _Builder:
    """Builds the kernels of one graph that are not in the cache."""

    def __init__(self, graph: ExtractedGraph) -> None:
        self._graph = graph

    @cached_property
    def _signatures(self) -> list[int]:
        return self._graph.arrays.signatures

    @cached_property
    def _dtypes(self) -> list[str]:
        return self._graph.arrays.dtypes

    def build(self, members: list[int], inputs: list[int], outputs: list[int]) -> Elemwise:
        """Build the kernel of these nodes, input variables and output variables."""
        arrays = self._graph.arrays
        operand = {variable: (False, position) for position, variable in enumerate(inputs)}
        steps = []
        for step, node in enumerate(members):
            kind = self._graph.kinds[self._signatures[node]]
            assert kind is not None, "a node without a kind is never fused"
            steps.append((kind, [operand[variable] for variable in arrays.inputs(node)]))
            operand[arrays.outputs(node)[0]] = (True, step)
        dtypes = [self._dtypes[arrays.dtype(variable)] for variable in inputs]
        return build_kernel(dtypes, steps, [operand[variable][1] for variable in outputs])


def _like(old: Variable[Any, Any]) -> Variable[Any, Any]:
    """Make a variable with the type, name and stack trace of ``old``."""
    new: Variable[Any, Any] = old.type.make_variable(name=old.name)
    trace = getattr(old.tag, "trace", None)
    if trace is not None:
        new.tag.trace = trace
    return new
