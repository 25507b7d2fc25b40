"""The fusion pass: extract -> plan -> apply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._fusion.apply import apply_clusters
from pytensor_fuse._fusion.effort import effort_of_compiles
from pytensor_fuse._fusion.extract import extract, plan
from pytensor_fuse._pytensor.ops.targets import max_operands, resolve_target

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph


def fuse(fgraph: FunctionGraph, reason: str) -> tuple[int, int]:
    """Fuse the Elemwise nodes of ``fgraph`` for the mode that it is being compiled for.

    The environment selects the effort; see `effort_of_compiles`.

    Returns
    -------
    n_kernels
        The number of kernels made.
    n_replaced
        The number of nodes that they replace.
    """
    n_before = len(fgraph.apply_nodes)
    target = resolve_target(None, fgraph)
    graph = extract(fgraph)
    clusters = plan(graph, target, max_operands(target), effort_of_compiles())
    n_kernels = apply_clusters(fgraph, graph, clusters, reason)
    return n_kernels, n_before - len(fgraph.apply_nodes) + n_kernels
