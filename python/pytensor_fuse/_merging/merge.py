"""The merging pass, which keeps one of several equal nodes.

A drop-in for PyTensor's `MergeFeature` and `MergeOptimizer`, which replace one node at a time.
Here, the feature only records new and changed nodes; the pass looks them up by op and inputs in one
table, makes all replacements in one edit, and then compares the expressions inside kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph.rewriting.basic import MergeFeature

from pytensor_fuse._merging.feature import LazyMergeFeature
from pytensor_fuse._merging.kernel_outputs import merge_outputs
from pytensor_fuse._merging.merger import REASON
from pytensor_fuse._pytensor.graphs.edits import report
from pytensor_fuse._pytensor.graphs.features import change_class

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
            # Their readers may be equal now.
            more = feature.merge()
            tally.n_refused += more.n_refused
            tally.n_merged += more.n_merged
            tally.n_constants += more.n_constants
            # These merges may have unified the inputs of other kernels or nodes.
            are_due = kernels.start_if_due(len(fgraph.apply_nodes)) or more.n_merged > 0
    except BaseException:
        kernels.start_again()
        raise
    tally.n_refused += len(refused)
    return tally


def merge_if_attached(fgraph: FunctionGraph) -> None:
    """Merge as `merge` does, if ``fgraph`` has this package's feature for merging."""
    feature = getattr(fgraph, "merge_feature", None)
    if isinstance(feature, LazyMergeFeature):
        merge(fgraph, feature)


def adopt(fgraph: FunctionGraph) -> LazyMergeFeature | None:
    """Return the merge feature of ``fgraph``, converted to ours if it is PyTensor's own.

    The state of PyTensor's feature is discarded, since it may treat different constants as equal.
    None if the feature is of another class.
    """
    feature = fgraph.merge_feature
    if type(feature) is MergeFeature:
        feature = change_class(feature, LazyMergeFeature)
        feature.begin(fgraph)
    return feature if isinstance(feature, LazyMergeFeature) else None
