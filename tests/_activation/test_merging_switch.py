"""The passes that merge are switched wherever they are held, and given back exactly."""

import copy
import pickle

import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import get_mode, optdb
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import MergeOptimizer

import pytensor_fuse
from _activation.entries import switch
from pytensor_fuse._activation.passes.merging import MergeRewriter, find_merging_passes
from pytensor_fuse._merging.feature import LazyMergeFeature
from support.programs.processes import run_python

pytestmark = pytest.mark.usefixtures("restore_fusion")


MERGES = ["merge1", "merge1.1", "canonicalize/merge", "merge1.2", "merge2", "merge3"]
if hasattr(pytensor.graph.features, "NoOutputInplaceOnInput"):  # PyTensor 3.3
    MERGES.append("elemwise_fusion/merge_inlined_symbolic")


def merging_passes():
    """Return the registered merging passes, by path; passes of other kinds would not be found."""
    found = {}
    for path in MERGES:
        database = optdb
        *outer, name = path.split("/")
        for part in outer:
            database = database[part]
        found[path] = database[name]
    return found


def test_all_merging_passes_are_switched():
    kinds = {True: MergeRewriter, False: MergeOptimizer}
    for on in (True, False, True):
        switch(on)
        assert {type(rewriter) for rewriter in merging_passes().values()} == {kinds[on]}
        found = {id(rewriter) for rewriter in find_merging_passes()}
        assert found == {id(rewriter) for rewriter in merging_passes().values()}


def merged(rewriter):
    """Whether a rewriter merges, and whether with our feature."""
    x = pt.vector("x")
    fgraph = FunctionGraph([x], [pt.sin(x), pt.sin(x)])
    rewriter.rewrite(fgraph)
    ours = isinstance(getattr(fgraph, "merge_feature", None), LazyMergeFeature)
    return len(fgraph.apply_nodes) == 1, ours


@pytest.mark.parametrize("name", ["FAST_RUN", "FAST_COMPILE", "NUMBA"])
def test_modes_merge_with_it(name):
    for on in (True, False):
        switch(on)
        assert merged(get_mode(name).optimizer) == (True, on)


@pytest.mark.parametrize("made_while_on", [True, False])
def test_excluding_merging(made_while_on):
    switch(made_while_on)
    mode = get_mode("FAST_RUN").excluding("merge", "canonicalize", "specialize", "fusion")
    for on in (True, False):
        switch(on)
        assert merged(mode.optimizer) == (False, False)


def test_queries_of_merging_made_before_and_after_follow():
    queries = []
    for on in (False, True):
        switch(on)
        queries += [optdb.query("+merge"), optdb["canonicalize"].query("+merge")]
        queries.append(optdb.query("+merge2"))
    for on in (True, False, True):
        switch(on)
        for query in queries:
            assert merged(query) == (True, on)


def test_copies_of_merging_passes_are_these():
    for on in (True, False):
        switch(on)
        for rewriter in merging_passes().values():
            if on:
                assert copy.deepcopy(rewriter) is rewriter
                assert pickle.loads(pickle.dumps(rewriter)) is rewriter
            else:
                assert type(pickle.loads(pickle.dumps(rewriter))) is MergeOptimizer
    pytensor_fuse.enable()
    own = MergeRewriter()
    assert type(copy.deepcopy(own)) is MergeRewriter
    assert copy.deepcopy(own) is not own


def test_merging_passes_that_users_made_are_untouched():
    class Mine(MergeOptimizer):
        pass

    before = [MergeOptimizer(), Mine()]
    pytensor_fuse.enable()
    for rewriter in [*before, MergeOptimizer(), Mine()]:
        assert merged(rewriter) == (True, False)


def test_merging_passes_of_others_are_left_alone_and_missing_ones_not_missed():
    run_python(
        """
        from pytensor.compile.mode import optdb
        from pytensor.graph.rewriting.basic import MergeOptimizer

        class Other(MergeOptimizer):
            pass

        Other.__name__ = "MergeOptimizer"
        optdb.register(
            "merge1", Other(), "fast_run", "merge", position=0, overwrite_existing=True
        )
        optdb.remove_tags("merge2", "fast_run", "merge")
        (gone,) = optdb.__db__.pop("merge2")
        optdb.__db__["MergeOptimizer"].remove(gone)
        import pytensor_fuse
        assert pytensor_fuse.status()["fusion"].is_on
        assert type(optdb["merge1"]) is Other
        assert type(gone) is MergeOptimizer
        assert type(optdb["merge3"]) is not MergeOptimizer
        pytensor_fuse.disable()
        assert type(optdb["merge1"]) is Other
        assert type(optdb["merge3"]) is MergeOptimizer
        """
    )
