"""Merging: of nodes that compute the same thing, one stays.

A drop-in for what PyTensor's `MergeFeature` and `MergeOptimizer` do. Those replace one node at a
time. Here the feature only notes which nodes came or changed; the pass looks them up by op and
inputs in one table, makes all replacements in one edit, and then compares what kernels compute
inside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph.rewriting.basic import MergeFeature

from pytensor_fuse._merging.feature import LazyMergeFeature
from pytensor_fuse._merging.kernel_outputs import merge_outputs
from pytensor_fuse._merging.merger import REASON
from pytensor_fuse._pytensor.edits import report
from pytensor_fuse._pytensor.features import change_class

if TYPE_CHECKING:
    from pytensor.graph.basic import Variable
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._merging.merger import Tally

__all__ = ["LazyMergeFeature", "adopt", "merge", "merge_if_attached"]


def merge(fgraph: FunctionGraph, feature: LazyMergeFeature) -> Tally:
    """Merge equal nodes and constants of ``fgraph``, and equal outputs of kernels.

    Raises
    ------
    Exception
        As `Merger.merge` does.
    """
    tally = feature.merge()
    kernels = feature.merger.kernels
    refused: set[tuple[Variable[Any, Any], Variable[Any, Any]]] = set()
    try:
        are_due = kernels.start_if_due(len(fgraph.apply_nodes))
        while are_due:
            merged = merge_outputs(fgraph, refused, REASON)
            if not merged:
                break
            report(merged, REASON)
            tally.add(merged)
            # What reads them may be equal now.
            more = feature.merge()
            tally.n_refused += more.n_refused
            tally.n_merged += more.n_merged
            tally.n_constants += more.n_constants
            # That may have made inputs of other kernels, or of what is no kernel, the same.
            are_due = kernels.start_if_due(len(fgraph.apply_nodes)) or more.n_merged > 0
    except BaseException:
        kernels.start_again()
        raise
    tally.n_refused += len(refused)
    return tally


def merge_if_attached(fgraph: FunctionGraph) -> None:
    """Merge as `merge` does, if that is what ``fgraph`` has our feature for."""
    feature = getattr(fgraph, "merge_feature", None)
    if isinstance(feature, LazyMergeFeature):
        merge(fgraph, feature)


def adopt(fgraph: FunctionGraph) -> LazyMergeFeature | None:
    """Return the feature for merging of ``fgraph``, as ours if it is PyTensor's own.

    What PyTensor's own feature knows is found anew: it may take constants for equal that differ.
    None if the feature is of another class.
    """
    feature = fgraph.merge_feature
    if type(feature) is MergeFeature:
        feature = change_class(feature, LazyMergeFeature)
        feature.begin(fgraph)
    return feature if isinstance(feature, LazyMergeFeature) else None
