"""Merging leaves what PyTensor's own leaves, except that equal constants have equal bits."""

import io
import re
from collections import Counter

import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import example, given
from pytensor.compile.mode import Mode
from pytensor.configdefaults import config
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import MergeOptimizer

import pytensor_fuse
from pytensor_fuse._activation.passes.merging import MergeRewriter
from pytensor_fuse._merging.feature import LazyMergeFeature
from support.graphs import Witness, deep_small_kernels, large_fuseable_graph, picture
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
    twice,
)
from support.random_graphs.building import build
from support.random_graphs.strategies import any_programs, seeded_program

# As PyTensor's own ------------------------------------------------------------------------


@given(any_programs(24, widen=False))
@example(SHARING)
def test_random_graphs(program):
    ours, stock = build(program).fgraph, build(program).fgraph
    witness = Witness()
    ours.attach_feature(witness)
    merge_nodes(ours)
    witness.assert_agrees(ours)
    merge_stock(stock)
    assert_same_structure(ours, stock)
    merge(ours)
    witness.assert_agrees(ours)
    # A second time there is nothing to do.
    before = picture(ours)
    assert merge(ours)[5] == 0
    assert picture(ours) == before


@given(any_programs(24))
@example(SHARING)
def test_random_graphs_with_wide_types(program):
    """What a node that says less is merged with depends on the order, but not how many are left."""
    ours, stock = build(program).fgraph, build(program).fgraph
    merge_nodes(ours)
    merge_stock(stock)
    assert len(ours.apply_nodes) == len(stock.apply_nodes)


@given(any_programs(16, widen=False), edits())
@example(SHARING, [(0, 0, 0)])
def test_edits_between_passes(program, sequence):
    fgraph = build(program).fgraph
    fgraph.attach_feature(LazyMergeFeature())
    for step in sequence:
        edit(fgraph, *step)
    stock = fgraph.clone_get_equiv(attach_feature=False)[0]
    merge_nodes(fgraph)
    merge_stock(stock)
    assert len(fgraph.apply_nodes) == len(stock.apply_nodes)
    assert_same_structure(fgraph, stock)


GRAPHS = {
    "deep": lambda: deep_small_kernels(20),
    "large": lambda: large_fuseable_graph(6),
    **{f"random {i}": lambda i=i: build(seeded_program(i)).fgraph for i in range(4)},
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("inplace", [True, False])
def test_every_merge_of_a_compile(name, inplace, monkeypatch):
    """What PyTensor's own pass leaves at each place of a whole compile, ours leaves."""
    seen = Counter()

    def apply(self, fgraph):
        copy = FunctionGraph(fgraph.inputs, fgraph.outputs, clone=True)
        result = stock_apply(self, fgraph)
        merge_nodes(copy)
        assert_same_structure(copy, fgraph)
        seen[self.name] += 1
        return result

    graph = GRAPHS[name]()
    mode = Mode("py", "fast_run")
    mode = mode if inplace else mode.excluding("inplace")
    with pytensor_fuse.enabled(False), monkeypatch.context() as patch:
        patch.setattr(MergeOptimizer, "apply", apply)
        pytensor.function(graph.inputs, graph.outputs, mode=mode, on_unused_input="ignore")
    assert {"merge1", "merge1.1", "merge", "merge1.2", "merge2", "merge3"} <= set(seen)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
def test_whole_compiles(name, mode):
    graph = GRAPHS[name]()
    compiled = []
    for on in (False, True):
        with pytensor_fuse.enabled(on):
            # How our fusion differs is for other tests to say.
            how = Mode("py", mode).excluding("fusion")
            function = pytensor.function(
                graph.inputs, graph.outputs, mode=how, on_unused_input="ignore"
            )
        compiled.append(function.maker.fgraph)
    assert_same_structure(*compiled)
    assert not isinstance(compiled[0].merge_feature, LazyMergeFeature)
    assert isinstance(compiled[1].merge_feature, LazyMergeFeature)


# Around the pass ---------------------------------------------------------------------------


def test_switching_between_passes_of_one_compile():
    graph = large_fuseable_graph(5)
    with pytensor_fuse.enabled():
        fgraph = FunctionGraph(graph.inputs, graph.outputs)
        rewriter = pytensor.compile.mode.optdb.query("+merge")
        rewriter.rewrite(fgraph)
    ours = fgraph.clone_get_equiv(attach_feature=False)[0]
    with pytensor_fuse.enabled(False):
        rewriter.rewrite(fgraph)
    assert_same_structure(fgraph, ours)


def test_profile_and_printing(capsys):
    fgraph = several_to_merge()
    profile = merge(fgraph)
    assert profile[0] == 0
    assert profile[2:5] == (None, None, {})
    assert profile[5:] == (3 + 9, 3)
    twice_as_much = MergeOptimizer.merge_profile(profile, profile)
    assert twice_as_much[5:] == (24, 6)
    MergeRewriter.print_profile(None, twice_as_much)
    assert "MergeOptimizer" in capsys.readouterr().out
    assert str(MergeRewriter()) == str(MergeOptimizer())


def test_profiled_compiles():
    x = pt.dvector("x")
    with pytensor_fuse.enabled(), config.change_flags(profile=True, profile_optimizer=True):
        function = pytensor.function([x], [pt.sin(x) + 1, pt.sin(x) + 2], mode=Mode("py"))
    printed = io.StringIO()
    function.profile.summary(file=printed)
    assert re.search(r"nb fail= +0 merged= +[1-9]", printed.getvalue())


def test_verbose_option(capsys):
    x = pt.dvector("x")
    with config.change_flags(optimizer_verbose=True):
        merge(FunctionGraph([x], twice(x), clone=False))
    assert "MergeOptimizer replaces" in capsys.readouterr().out
