"""The whole pass: merge, then extract -> plan -> apply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._apply import apply_clusters
from pytensor_fuse._extract import extract, plan
from pytensor_fuse._merge import LazyMergeFeature, merge
from pytensor_fuse._targets import max_operands, resolve_target

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph


def fuse(fgraph: FunctionGraph, reason: str) -> tuple[int, int]:
    """Fuse the Elemwise nodes of ``fgraph`` for the mode that it is being compiled for.

    Where the mode merges equal nodes, those are merged first, so that no two kernels compute the
    same thing: a comparison of whole kernels would no longer show it.

    Returns
    -------
    n_kernels
        Kernels made.
    n_replaced
        Nodes that they replace.
    """
    feature = getattr(fgraph, "merge_feature", None)
    if isinstance(feature, LazyMergeFeature):
        merge(fgraph, feature)
    n_before = len(fgraph.apply_nodes)
    target = resolve_target(None, fgraph)
    graph = extract(fgraph)
    clusters = plan(graph, target, max_operands(target))
    n_kernels = apply_clusters(fgraph, graph, clusters, reason)
    return n_kernels, n_before - len(fgraph.apply_nodes) + n_kernels
