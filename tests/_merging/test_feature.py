"""The feature: attached, adopted, copied, and what it keeps alive."""

import gc
import pickle
import weakref

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.features import AlreadyThere, History
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import MergeFeature, MergeOptimizer
from pytensor.link.c.type import generic

from pytensor_fuse._activation.passes.merging import MergeRewriter
from pytensor_fuse._merging.feature import LazyMergeFeature
from pytensor_fuse._merging.merge import adopt
from support.merging import Unhashable, merge, several_to_merge, stock_apply, twice


def test_there_is_one_feature_for_merging():
    fgraph = several_to_merge()
    fgraph.attach_feature(MergeFeature())
    with pytest.raises(AlreadyThere):
        LazyMergeFeature().on_attach(fgraph)
    MergeRewriter().add_requirements(fgraph)
    assert type(fgraph.merge_feature) is MergeFeature


def test_our_pass_and_a_feature_of_pytensor():
    x = pt.dvector("x")
    fgraph = FunctionGraph([x], [x + np.zeros(3), x + -np.zeros(3), *twice(x)], clone=False)
    feature = MergeFeature()
    fgraph.attach_feature(feature)
    assert merge(fgraph)[5] == 1
    assert len(fgraph.apply_nodes) == 3
    assert fgraph.merge_feature is feature
    assert type(feature) is LazyMergeFeature


def test_our_pass_and_a_feature_of_someone_else():
    class Other(MergeFeature):
        pass

    fgraph = several_to_merge()
    fgraph.attach_feature(Other())
    assert merge(fgraph)[5] == 3 + 9
    assert type(fgraph.merge_feature) is Other
    assert adopt(fgraph) is None


def test_clones_and_pickles():
    fgraph = several_to_merge()
    fgraph.attach_feature(LazyMergeFeature())
    for copy in (fgraph.clone(), pickle.loads(pickle.dumps(fgraph))):
        assert type(copy.merge_feature) is LazyMergeFeature
        assert copy.merge_feature is not fgraph.merge_feature
        merge(copy)
        assert len(copy.apply_nodes) == 3
    assert not hasattr(LazyMergeFeature(), "merger")


class Anything:
    """Data without a content that could be compared."""


class ReadingData(Unhashable):
    __hash__ = object.__hash__

    def make_node(self, x, data):
        return Apply(self, [x, Constant(generic, data)], [x.type()])


@pytest.mark.parametrize("ours", [False, True])
def test_what_left_the_graph_is_not_kept_alive(ours):
    x = pt.dvector("x")
    fgraph = FunctionGraph([x], [pt.exp(x)], clone=False)
    fgraph.attach_feature(LazyMergeFeature() if ours else MergeFeature())
    gone = []
    for n in range(1500):
        op, data = ReadingData(n), Anything()
        gone += weakref.ref(op), weakref.ref(data)
        fgraph.replace(fgraph.outputs[0], op(x, data) + ReadingData(-n)(x, data))
        del op, data
        if ours:
            merge(fgraph)
        else:
            stock_apply(MergeOptimizer(), fgraph)
        # PyTensor itself keeps what left a graph, in these two places.
        for variable in fgraph.clients.keys() - fgraph.variables:
            del fgraph.clients[variable]
        for feature in fgraph._features:
            if isinstance(feature, History):
                feature.history[fgraph].clear()
    gc.collect()
    assert sum(reference() is not None for reference in gone) < 2400


def test_what_is_looked_up_is_not_kept_alive():
    fgraph = several_to_merge()
    fgraph.attach_feature(LazyMergeFeature())
    data = Anything()
    assert fgraph.merge_feature.atomic_sig_inv.get((generic, data), None) is None
    gone = weakref.ref(data)
    del data
    gc.collect()
    assert gone() is None
