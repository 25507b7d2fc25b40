"""That tracing changes nothing else, and is undone."""

from __future__ import annotations

import copy
import os
import pickle
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from pytensor.compile.mode import OPT_FAST_RUN, Mode, get_mode
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting import basic
from pytensor.graph.rewriting.basic import (
    EquilibriumGraphRewriter,
    GraphRewriter,
    SequentialGraphRewriter,
    SequentialNodeRewriter,
    in2out,
    node_rewriter,
)
from pytensor.tensor.elemwise import Elemwise

import pytensor_fuse
from pytensor_fuse import trace as trace_rewrites
from pytensor_fuse._trace.tallies import NodeCounter
from support.programs.processes import run_process
from support.random_graphs.building import Program, build
from support.random_graphs.strategies import any_programs
from support.traced import (
    GRAPHS,
    PYTHON,
    Counting,
    chain,
    compiled,
    found,
    methods,
    regression,
    rewrite,
    rewriter_of,
)


def picture(fgraph: FunctionGraph) -> list[str]:
    """Everything about a graph that can be told from another, in the order of its nodes."""
    numbers: dict[Any, int] = {}
    lines = []
    for variable in fgraph.inputs:
        numbers[variable] = len(numbers)
    for node in fgraph.toposort():
        inputs = [
            f"{numbers[v]}" if v in numbers else f"{v.type} {getattr(v, 'data', v)}"
            for v in node.inputs
        ]
        for output in node.outputs:
            numbers[output] = len(numbers)
        names = [f"{output.name}: {output.type}" for output in node.outputs]
        destroyed = getattr(node.op, "destroy_map", None)
        lines.append(f"{node.op} {inputs} {names} {destroyed} {removed_address(node.tag)}")
    lines.append(str([numbers.get(v, str(v)) for v in fgraph.outputs]))
    lines.append(str([type(feature).__name__ for feature in fgraph._features]))
    return lines


def removed_address(tag: Any) -> list[str]:
    return [str(reason).split(" at 0x")[0] for reason in getattr(tag, "imported_by", [])]


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("mode", ["py", "numba"])
@pytest.mark.parametrize("on", [True, False])
def test_the_graph_is_the_same(name: str, mode: str, on: bool) -> None:
    query = OPT_FAST_RUN if mode == "py" else get_mode("NUMBA")._optimizer
    chosen = Mode("py", query)
    with pytensor_fuse.enabled(on), pytensor_fuse.enabled(False, "cache"):
        plain = compiled(GRAPHS[name](), chosen)
        with trace_rewrites() as trace:
            traced = compiled(GRAPHS[name](), chosen)
    assert picture(traced.maker.fgraph) == picture(plain.maker.fgraph)
    assert len(trace.calls) == 1
    values = [np.full((2,) * variable.ndim, 0.5) for variable in plain.maker.fgraph.inputs]
    for ours, theirs in zip(traced(*values), plain(*values), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@given(any_programs(widen=False))
def test_any_graph_is_the_same(program: Program) -> None:
    def rewritten() -> tuple[list[str], FunctionGraph]:
        fgraph = build(program).fgraph
        # A logged failure of a rewriter of PyTensor's is the same either way.
        PYTHON.excluding("inplace").optimizer.rewrite(fgraph)
        return picture(fgraph), fgraph

    plain, _ = rewritten()
    before = methods()
    with trace_rewrites() as trace:
        traced, fgraph = rewritten()
    assert traced == plain
    assert methods() == before
    (whole,) = trace.outside
    assert whole.nodes_after == len(fgraph.apply_nodes)
    for each in trace.all_passes():
        if each.runs == 1:
            assert each.nodes_after - each.nodes_before == each.created - each.removed


def test_classes_and_rewriters_are_as_before() -> None:
    rewriter = node_rewriter([Elemwise])(lambda fgraph, node: None)
    fn = rewriter.fn
    before = methods()
    with trace_rewrites():
        assert methods() != before
        rewrite(FunctionGraph(*regression(), clone=True), in2out(rewriter, name="walk"))
        assert rewriter.fn is not fn
    assert methods() == before
    assert rewriter.fn is fn
    with pytest.raises(KeyError), trace_rewrites():
        raise KeyError
    assert methods() == before
    with trace_rewrites(), trace_rewrites():
        pass
    assert methods() == before


def test_what_is_replaced_meanwhile_stays_replaced() -> None:
    with mock.patch.object(SequentialGraphRewriter, "apply", SequentialGraphRewriter.apply):
        with trace_rewrites():
            SequentialGraphRewriter.apply = theirs = lambda self, fgraph: None
        assert SequentialGraphRewriter.apply is theirs


def test_the_graph_keeps_nothing_of_the_trace() -> None:
    with trace_rewrites():
        fgraph = compiled(regression()).maker.fgraph
    assert not any(isinstance(f, NodeCounter) for f in fgraph._features)
    assert not any(isinstance(f, NodeCounter) for f in fgraph.execute_callbacks_times)


def test_copies_of_a_graph_are_not_counted() -> None:
    copies = []

    @basic.graph_rewriter
    def copy(fgraph: FunctionGraph) -> None:
        copies.append(fgraph.clone())

    with trace_rewrites():
        rewrite(FunctionGraph(*regression(), clone=True), copy)
    assert not any(isinstance(f, NodeCounter) for f in copies[0]._features)


@pytest.mark.parametrize("way", [copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))])
def test_deep_copies_take_no_counter_along(way: Any) -> None:
    copies = []

    @basic.graph_rewriter
    def copies_it(fgraph: FunctionGraph) -> None:
        copies.append(way(fgraph))

    with trace_rewrites():
        rewrite(chain(2), copies_it)
    assert not any(isinstance(f, NodeCounter) for f in copies[0]._features)


def test_graphs_are_not_kept() -> None:
    import gc
    import weakref

    with trace_rewrites() as trace:
        f = compiled(regression())
    graph = weakref.ref(f.maker.fgraph)
    del f
    gc.collect()
    assert graph() is None
    assert trace.calls


def test_classes_are_pickled_by_value_within_a_trace() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    done = run_process("-c", PICKLES, check=False)
    assert done.returncode == 0, done.stderr
    assert cloudpickle


PICKLES = """
import cloudpickle, pickle
import pytensor.tensor as pt
from pytensor.compile.maker import FunctionMaker
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import GraphRewriter, NodeRewriter, in2out, node_rewriter
from pytensor.graph.rewriting.basic import SequentialNodeRewriter
from pytensor_fuse import trace as trace_rewrites

class Pass(GraphRewriter):
    def apply(self, fgraph):
        return 7

class Node(NodeRewriter):
    def transform(self, fgraph, node, enforce_tracks=False):
        return None

class Group(SequentialNodeRewriter):
    def transform(self, fgraph, node, enforce_tracks=False):
        return super().transform(fgraph, node)

class Maker(FunctionMaker):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)

@node_rewriter(None)
def nothing(fgraph, node):
    return None

walk = in2out(nothing)
with trace_rewrites() as trace:
    x = pt.vector("x")
    walk.apply(FunctionGraph([x], [pt.exp(x)], clone=True))
    texts = [cloudpickle.dumps(each) for each in (Pass(), Node(), Group, Maker, walk)]
copies = [pickle.loads(text) for text in texts]
assert copies[0].apply(None) == 7
assert len(trace.outside) == 1
"""


class AsksForLength(EquilibriumGraphRewriter):
    name = "asks"

    def apply(self, fgraph: FunctionGraph, start_from: Any = None) -> Any:
        seen = 0
        for node in fgraph.toposort():
            rewriters = self.node_tracker.get_trackers(node.op)
            seen += len(rewriters) + len([*rewriters, *rewriters])
        return seen


class AsksInGroup(SequentialNodeRewriter):
    seen = 0

    def transform(self, fgraph: Any, node: Any, enforce_tracks: bool = False) -> Any:
        AsksInGroup.seen += len(self.tracker.get_trackers(node.op))
        return super().transform(fgraph, node)


def test_methods_of_others_get_lists_of_rewriters() -> None:
    counting = Counting(0)
    rewriter = counting.rewriter("ours", [Elemwise])
    with trace_rewrites() as trace:
        assert AsksForLength([rewriter], max_use_ratio=10).apply(chain(3)) > 0
        rewrite(chain(3), in2out(AsksInGroup(rewriter)))
    assert found(trace.outside, "asks").rewriters == ()
    assert AsksInGroup.seen == counting.tried > 0
    assert rewriter_of(trace, "ours").tried == counting.tried


class Static(GraphRewriter):
    @staticmethod
    def apply(fgraph: Any) -> Any:
        return 5


class OtherName(GraphRewriter):
    def apply(self, graph: Any) -> Any:
        return 3


class WalksAlone(basic.WalkingGraphRewriter):
    def __init__(self) -> None:
        pass

    def apply(self, fgraph: Any, start_from: Any = None) -> Any:
        return 1


class EquilibriumAlone(EquilibriumGraphRewriter):
    def __init__(self) -> None:
        pass

    def apply(self, fgraph: Any, start_from: Any = None) -> Any:
        return 1


def test_passes_that_are_written_otherwise() -> None:
    fgraph = chain(2)
    with trace_rewrites() as trace:
        assert Static().apply(fgraph) == 5
        assert OtherName().apply(graph=fgraph) == 3
        assert WalksAlone().apply(fgraph) == 1
        assert EquilibriumAlone().apply(fgraph) == 1
    assert [each.kind for each in trace.outside] == ["OtherName", "WalksAlone", "EquilibriumAlone"]
    assert not any(isinstance(f, NodeCounter) for f in fgraph._features)


FORKS = """
import os, signal, sys, threading
import pytensor.tensor as pt
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor_fuse import trace as trace_rewrites
from pytensor_fuse._trace.recorders import open_recorders

held, leave = threading.Event(), threading.Event()

def hold():
    with open_recorders.lock:
        held.set()
        leave.wait(0.5)

thread = threading.Thread(target=hold)
with trace_rewrites() as outer:
    thread.start()
    held.wait()
    child = os.fork()
    if not child:
        signal.alarm(60)
        with trace_rewrites() as inner:
            rewrite_graph(pt.exp(pt.vector()), include=("canonicalize",))
        os._exit(0 if inner.outside else 1)
    rewrite_graph(pt.exp(pt.vector()), include=("canonicalize",))
thread.join()
assert outer.outside
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")
def test_a_fork_while_another_thread_opens_a_trace() -> None:
    run_process("-W", "ignore", "-c", FORKS)
