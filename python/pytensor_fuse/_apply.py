"""From planned clusters to Composite kernels in the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.graph.basic import Apply

from pytensor_fuse._kernels import build_kernel, dtype_code, kernel_cache

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Variable
    from pytensor.graph.fg import FunctionGraph
    from pytensor.tensor.elemwise import Elemwise

    from pytensor_fuse import _core
    from pytensor_fuse._extract import ExtractedGraph


def apply_clusters(
    fgraph: FunctionGraph, graph: ExtractedGraph, clusters: _core.FusedClusters, reason: str
) -> int:
    """Replace each cluster by one Elemwise of a Composite; return the number of kernels made.

    The graph is validated once, after all replacements; if it is refused, it is as it was before
    and the error is raised.
    """
    new_nodes, replacements = make_nodes(graph, clusters)
    replace_all(fgraph, new_nodes, replacements, reason)
    return len(new_nodes)


def make_nodes(
    graph: ExtractedGraph, clusters: _core.FusedClusters
) -> tuple[list[Apply], list[tuple[Variable, Variable]]]:
    """Make the kernels' apply nodes, which read each other's results and none of the old ones.

    Returns
    -------
    nodes
        In topological order.
    replacements
        Pairs of an old result and the new one that takes its place.
    """
    arrays = graph.arrays
    variables = arrays.variables
    uids = [-1 if kind is None else kind.uid for kind in graph.kinds]
    codes = [dtype_code(dtype) for dtype in arrays.dtypes]
    new_of: dict[int, Variable] = {}
    nodes, replacements = [], []
    for key, members, inputs, outputs in clusters.kernels(arrays, uids, codes):
        op = kernel_cache.get(key)
        if op is None:
            op = kernel_cache.add(key, _build(graph, members, inputs, outputs))
        results = [_like(variables[i]) for i in outputs]
        nodes.append(Apply(op, [new_of.get(i, variables[i]) for i in inputs], results))
        for i, result in zip(outputs, results, strict=True):
            new_of[i] = result
            replacements.append((variables[i], result))
    return nodes, replacements


def _build(
    graph: ExtractedGraph, members: list[int], inputs: list[int], outputs: list[int]
) -> Elemwise:
    arrays = graph.arrays
    operand = {variable: (False, position) for position, variable in enumerate(inputs)}
    steps = []
    for step, node in enumerate(members):
        kind = graph.kinds[arrays.signatures[node]]
        assert kind is not None, "a node without a kind is never fused"
        steps.append((kind, [operand[variable] for variable in arrays.inputs(node)]))
        operand[arrays.outputs(node)[0]] = (True, step)
    dtypes = [arrays.dtypes[arrays.dtype(variable)] for variable in inputs]
    return build_kernel(dtypes, steps, [operand[variable][1] for variable in outputs])


def _like(old: Variable) -> Variable:
    """Make a variable of the type, name and stack trace of ``old``."""
    new = old.type.make_variable(name=old.name)
    trace = getattr(old.tag, "trace", None)
    if trace is not None:
        new.tag.trace = trace
    return new


def replace_all(
    fgraph: FunctionGraph,
    new_nodes: Sequence[Apply],
    replacements: Sequence[tuple[Variable, Variable]],
    reason: str,
) -> None:
    """Import ``new_nodes`` and let the clients of each old result read the new one.

    New nodes are imported before anything is replaced, and read no old result: so no old node can
    come back, whatever the order of the replacements.

    Raises
    ------
    Exception
        Whatever a feature of the graph raises; the graph is then as it was before.
    """
    checkpoint = fgraph.checkpoint()
    try:
        for node in new_nodes:
            import_node(fgraph, node, reason)
        for old, result in replacements:
            for client, position in list(fgraph.clients[old]):
                fgraph.change_node_input(client, position, result, reason=reason)
        fgraph.validate()
    except Exception:
        fgraph.revert(checkpoint)
        for node in reversed(new_nodes):
            fgraph.remove_node(node, reason=("Revert", reason))
        raise


def import_node(fgraph: FunctionGraph, node: Apply, reason: str) -> None:
    """Add ``node``, whose inputs are in ``fgraph``, to it.

    ``FunctionGraph.import_node`` copies the set of all variables at each call, to find out where
    the graph begins; here that is known.
    """
    fgraph.apply_nodes.add(node)
    node.tag.imported_by = [reason]
    for result in node.outputs:
        fgraph.clients[result] = []
        fgraph.variables.add(result)
    for position, variable in enumerate(node.inputs):
        fgraph.clients[variable].append((node, position))
    fgraph.execute_callbacks("on_import", node, reason)
