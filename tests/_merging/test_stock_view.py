"""What PyTensor's own pass and rewrites read of our feature."""

import numpy as np
import pytensor.tensor as pt
from hypothesis import example, given
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import MergeFeature, MergeOptimizer

from pytensor_fuse._merging.feature import LazyMergeFeature
from support.merging import (
    SHARING,
    assert_same_structure,
    edit,
    edits,
    merge,
    merge_nodes,
    merge_stock,
    several_to_merge,
    stock_apply,
)
from support.random_graphs.building import build
from support.random_graphs.strategies import any_programs


def test_the_public_attributes():
    x = pt.dvector("x")
    one, other = (pt.constant(np.ones(3)) for _ in range(2))
    fgraph = FunctionGraph([x], [pt.sin(x + one), pt.exp(x * other), pt.exp(x * one)], clone=False)
    stock = fgraph.clone_get_equiv()[0]
    stock.attach_feature(MergeFeature())
    fgraph.attach_feature(LazyMergeFeature())
    ours, theirs = fgraph.merge_feature, stock.merge_feature
    for _ in range(2):
        assert isinstance(ours, MergeFeature)
        assert ours.atomic_sig_inv.get(other.signature(), None) is one
        assert ours.atomic_sig_inv.get(pt.constant(np.zeros(3)).signature(), "none") == "none"
        assert ours.blacklist == theirs.blacklist == []
        assert bool(ours.scheduled) is bool(theirs.scheduled)
        merge(fgraph)
        stock_apply(MergeOptimizer(), stock)
    assert len(theirs.nodes_seen) == len(fgraph.apply_nodes)


def test_constants_are_found_as_soon_as_they_are_in_the_graph():
    """As PyTensor's subtensor rewrites ask for them."""
    x = pt.dvector("x")
    out = pt.exp(x)
    fgraph = FunctionGraph([x], [out], clone=False)
    fgraph.attach_feature(LazyMergeFeature())
    index = pt.constant(np.array([0, 1]))
    find = fgraph.merge_feature.atomic_sig_inv.get
    signature = pt.constant(np.array([0, 1])).signature()
    assert find(signature, None) is None
    fgraph.replace(out, pt.exp(x)[index].sum() + x)
    assert find(signature, None) is index
    fgraph.replace(fgraph.outputs[0], pt.cos(x))
    assert find(signature, None) is None
    assert find((slice, 1), None) is None


@given(any_programs(16, widen=False), edits())
@example(SHARING, [(0, 0, 0)])
def test_the_pass_of_pytensor_and_our_feature(program, sequence):
    fgraph = build(program).fgraph
    fgraph.attach_feature(LazyMergeFeature())
    for step in sequence:
        edit(fgraph, *step)
    stock = fgraph.clone_get_equiv(attach_feature=False)[0]
    stock_apply(MergeOptimizer(), fgraph)
    fgraph.check_integrity()
    merge_stock(stock)
    assert_same_structure(fgraph, stock)
    assert merge_nodes(fgraph) == 0


def test_what_was_scheduled_and_not_merged_is_merged_later():
    fgraph = several_to_merge()
    fgraph.attach_feature(LazyMergeFeature())
    assert len(fgraph.merge_feature.scheduled) > 0
    merge(fgraph)
    assert len(fgraph.apply_nodes) == 3
