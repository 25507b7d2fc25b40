"""What `trace_rewrites` says, against rewriters that count for themselves."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from collections import Counter
from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from pytensor.compile import maker
from pytensor.compile.maker import FunctionMaker
from pytensor.compile.mode import OPT_FAST_RUN, Mode, get_mode
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting import basic
from pytensor.graph.rewriting.basic import (
    EquilibriumGraphRewriter,
    GraphRewriter,
    NodeProcessingGraphRewriter,
    NodeRewriter,
    PatternNodeRewriter,
    SequentialGraphRewriter,
    SequentialNodeRewriter,
    in2out,
    node_rewriter,
)
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.scalar.basic import Exp
from pytensor.tensor.elemwise import Elemwise

import pytensor_fuse
from pytensor_fuse import Trace, trace_rewrites
from pytensor_fuse._pytensor.replacements import class_tree
from pytensor_fuse._trace.flame_chart import flame_chart
from pytensor_fuse._trace.records import TracedCall, TracedPass
from pytensor_fuse._trace.tallies import NodeCounter
from support.browser import Browser
from support.processes import run_process
from support.strategies import Program, any_programs, build

PYTHON = Mode("py", "fast_run")


def regression() -> tuple[list[Any], list[Any]]:
    """A log-density with gradient: a graph on which many rewriters fire."""
    x, y, beta, sigma = pt.matrix("x"), pt.vector("y"), pt.vector("beta"), pt.scalar("sigma")
    residual = (y - x @ beta) / pt.exp(sigma)
    logp = pt.sum(-0.5 * residual**2 - sigma) - 0.5 * pt.sum(beta**2) + pt.log(pt.exp(sigma))
    return [x, y, beta, sigma], [logp, *pytensor.grad(logp, [beta, sigma])]


def accumulation() -> tuple[list[Any], list[Any]]:
    """A Scan, whose inner graph is compiled, too."""
    x = pt.vector("x")
    total = pytensor.scan(
        lambda b, a: a * 1 + pt.exp(b),
        sequences=x,
        outputs_info=pt.zeros(()),
        return_updates=False,
    )
    return [x], [total[-1]]


GRAPHS = {"regression": regression, "accumulation": accumulation}


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


def found(passes: Any, name: str) -> TracedPass:
    (only,) = [each for each in passes if each.name == name]
    return only


def rewriter_of(trace: Trace, name: str) -> Any:
    (only,) = [total for total in trace.rewriters if total.name == name]
    return only


def compiled(graph: Any, mode: Mode = PYTHON) -> Any:
    return pytensor.function(*graph, mode=mode)


def own_times(each: TracedPass | TracedCall) -> float:
    """The times of passes without what is in them, added up."""
    inner = sum(own_times(one) for one in each.inner)
    return inner + (each.own + each.requirements if isinstance(each, TracedPass) else 0.0)


# Nothing else changes -----------------------------------------------------------------------


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("mode", ["py", "numba"])
@pytest.mark.parametrize("on", [True, False])
def test_the_graph_is_the_same(name: str, mode: str, on: bool) -> None:
    query = OPT_FAST_RUN if mode == "py" else get_mode("NUMBA")._optimizer
    chosen = Mode("py", query)
    with pytensor_fuse.enabled(on):
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


def methods() -> dict[tuple[type, str], object]:
    """What the classes have that a trace gives other methods."""
    kinds = [GraphRewriter, NodeRewriter, FunctionMaker, basic.OpToRewriterTracker]
    return {
        (kind, name): value
        for base in kinds
        for kind in class_tree(base)
        for name, value in vars(kind).items()
        if callable(value) or isinstance(value, property | classmethod | staticmethod)
    }


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


# Node rewriters -----------------------------------------------------------------------------


def rewrite(fgraph: FunctionGraph, *passes: Any) -> None:
    SequentialGraphRewriter(*passes).rewrite(fgraph)


def chain(n: int) -> FunctionGraph:
    """``n`` nodes of exp and ``n`` of neg in turns."""
    x = pt.vector("x")
    out = x
    for _ in range(n):
        out = -pt.exp(out)
    return FunctionGraph([x], [out], clone=False)


class Counting:
    """Makes node rewriters that count how often they are tried, and how often they change exp."""

    def __init__(self, most: int = 1000) -> None:
        self.tried = self.offered = 0
        self.most = most

    def __call__(self, fgraph: FunctionGraph, node: Any) -> Any:
        self.tried += 1
        is_exp = isinstance(getattr(node.op, "scalar_op", None), Exp)
        if not is_exp or self.offered == self.most:
            return None
        self.offered += 1
        return [pt.sin(node.inputs[0])]

    def rewriter(self, name: str, tracks: Any) -> Any:
        made = node_rewriter(tracks)(self._function())
        made.name = name
        return made

    def _function(self) -> Any:
        def run(fgraph: FunctionGraph, node: Any) -> Any:
            return self(fgraph, node)

        return run


TRACKS = {"all": None, "class": [Elemwise], "op": [pt.exp], "none of the graph": [pt.cosh]}


@pytest.mark.parametrize("tracks", TRACKS)
@pytest.mark.parametrize("most", [0, 3, 1000])
@pytest.mark.parametrize("kind", ["equilibrium", "in2out", "out2in", "dfs", "ignoring"])
def test_tries_and_successes(tracks: str, most: int, kind: str) -> None:
    counting, other = Counting(most), Counting(0)
    rewriters = [counting.rewriter("ours", TRACKS[tracks]), other.rewriter("other", [Elemwise])]
    passes = {
        "equilibrium": lambda: [EquilibriumGraphRewriter(rewriters, max_use_ratio=10)],
        "in2out": lambda: [in2out(one) for one in rewriters],
        "out2in": lambda: [basic.out2in(one) for one in rewriters],
        "dfs": lambda: [basic.dfs_rewriter(one) for one in rewriters],
        "ignoring": lambda: [in2out(one, ignore_newtrees=True) for one in rewriters],
    }[kind]()
    with trace_rewrites() as trace:
        rewrite(chain(6), *passes)
    for each, name in ((counting, "ours"), (other, "other")):
        total = rewriter_of(trace, name)
        assert (total.tried, total.fired) == (each.tried, each.offered)
        assert total.created == total.removed == each.offered
    assert {t.name for t in trace.never_fired} == {
        name for each, name in ((counting, "ours"), (other, "other")) if not each.offered
    }


class ByHand(NodeRewriter):
    """A rewriter of a class of its own, which looks at what it tracks, or not."""

    name = "by hand"

    def __init__(self, counting: Counting) -> None:
        self.counting = counting

    def tracks(self) -> Any:
        return [pt.exp]

    def transform(self, fgraph: Any, node: Any, enforce_tracks: bool = True) -> Any:
        return self.counting(fgraph, node)


def test_a_class_of_its_own_decides_what_it_tries() -> None:
    walking, equilibrium = Counting(), Counting()
    with trace_rewrites() as trace:
        rewrite(chain(5), in2out(ByHand(walking)))
    assert walking.tried > walking.offered
    total = rewriter_of(trace, "by hand")
    assert (total.tried, total.fired) == (walking.tried, walking.offered)
    with trace_rewrites() as trace:
        rewrite(chain(5), EquilibriumGraphRewriter([ByHand(equilibrium)], max_use_ratio=10))
    total = rewriter_of(trace, "by hand")
    assert (total.tried, total.fired) == (equilibrium.tried, equilibrium.offered)


def test_classes_made_meanwhile() -> None:
    counting = Counting()
    with trace_rewrites() as trace:

        class Meanwhile(ByHand):
            name = "meanwhile"

            def transform(self, fgraph: Any, node: Any, enforce_tracks: bool = True) -> Any:
                return super().transform(fgraph, node, enforce_tracks)

        class Passing(GraphRewriter):
            name = "passing"

            def apply(self, fgraph: FunctionGraph) -> None:
                in2out(Meanwhile(counting)).rewrite(fgraph)

        rewrite(chain(4), Passing())
    assert rewriter_of(trace, "meanwhile").tried == counting.tried
    assert [inner.kind for inner in found(trace.all_passes(), "passing").inner] == [
        "WalkingGraphRewriter"
    ]


def test_patterns() -> None:
    pattern = PatternNodeRewriter((pt.exp, "x"), (pt.sin, "x"))
    pattern.name = "pattern"
    with trace_rewrites() as trace:
        rewrite(chain(4), in2out(pattern))
    total = rewriter_of(trace, "pattern")
    assert (total.tried, total.fired) == (4, 4)


@pytest.mark.parametrize("apply_all", [False, True])
@pytest.mark.parametrize("kind", ["in2out", "equilibrium"])
def test_groups(apply_all: bool, kind: str) -> None:
    first, second, last = Counting(0), Counting(2), Counting()
    members = [
        first.rewriter("first", [Elemwise]),
        second.rewriter("second", [pt.exp]),
        last.rewriter("last", [pt.exp, pt.neg]),
    ]
    group = SequentialNodeRewriter(*members, apply_all_rewrites=apply_all)
    group.name = "group"
    passes = (
        in2out(group)
        if kind == "in2out"
        else EquilibriumGraphRewriter([group], None, True, False, 10)
    )
    with trace_rewrites() as trace:
        rewrite(chain(6), passes)
    for counting, name in ((first, "first"), (second, "second"), (last, "last")):
        total = rewriter_of(trace, name)
        assert (total.tried, total.fired) == (counting.tried, counting.offered)
    whole = rewriter_of(trace, "group")
    assert whole.fired == 6
    assert whole.created == whole.removed == 6
    each = next(each for each in trace.all_passes() if each.rewriters)
    assert {r.name: r.group for r in each.rewriters} == {
        "group": None,
        "first": "group",
        "second": "group",
        "last": "group",
    }
    parts = sum(r.seconds or 0.0 for r in each.rewriters if r.group)
    assert 0 < parts <= whole.seconds


def test_what_a_rewriter_calls_itself_is_no_try() -> None:
    inner = Counting()
    helper = inner.rewriter("helper", None)

    @node_rewriter([pt.exp])
    def caller(fgraph: FunctionGraph, node: Any) -> Any:
        return helper.transform(fgraph, node)

    with trace_rewrites() as trace:
        rewrite(chain(3), in2out(caller), in2out(helper))
    direct = rewriter_of(trace, "helper")
    assert rewriter_of(trace, "caller").tried == 3
    assert direct.tried == inner.tried - 3


@pytest.mark.parametrize("name", GRAPHS)
def test_a_whole_compile_against_the_calls_of_pytensor(name: str) -> None:
    """Each try of an equilibrium is a call of ``process_node``, which says whether it fired."""
    tried: Counter[str] = Counter()
    fired: Counter[str] = Counter()
    original = NodeProcessingGraphRewriter.process_node

    def process_node(
        self: Any, fgraph: Any, node: Any, rewriter: Any = None, **options: Any
    ) -> Any:
        done = original(self, fgraph, node, rewriter, **options)
        if isinstance(self, EquilibriumGraphRewriter):
            name = getattr(rewriter, "name", None) or rewriter.__name__
            tried[name] += 1
            fired[name] += done
        return done

    patched = mock.patch.object(NodeProcessingGraphRewriter, "process_node", process_node)
    with patched, trace_rewrites() as trace:
        compiled(GRAPHS[name]())
    ours: dict[str, Counter[str]] = {"tried": Counter(), "fired": Counter()}
    for each in trace.all_passes():
        if each.kind.endswith("EquilibriumGraphRewriter"):
            for rewriter in each.rewriters:
                if rewriter.group is None and rewriter.tried:
                    ours["tried"][rewriter.name] += rewriter.tried
                    ours["fired"][rewriter.name] += rewriter.fired
    assert sum(tried.values()) > 100
    assert ours == {"tried": tried, "fired": fired}


def test_names_say_nothing_of_addresses() -> None:
    extra = in2out(Counting().rewriter("walked", None))
    mode = PYTHON.register((extra, 1.7))
    with trace_rewrites() as trace:
        compiled(regression(), mode)
    text = json.dumps(trace.to_dict())
    assert " at 0x" not in text
    assert str(id(extra)) not in text


# Passes -------------------------------------------------------------------------------------


class Imports(Feature):
    """Counts as the trace is to."""

    def __init__(self) -> None:
        self.created = self.removed = 0

    def on_import(self, fgraph: Any, node: Any, reason: Any) -> None:
        self.created += 1

    def on_prune(self, fgraph: Any, node: Any, reason: Any) -> None:
        self.removed += 1


class Probe(GraphRewriter):
    """Looks at the graph between two passes."""

    def __init__(self, number: int) -> None:
        self.name = f"probe {number}"
        self.seen: dict[int, tuple[int, int, int]] = {}
        self.graphs: list[FunctionGraph] = []

    def apply(self, fgraph: FunctionGraph) -> None:
        counts = next((f for f in fgraph._features if type(f) is Imports), None)
        if counts is None:
            counts = Imports()
            fgraph.attach_feature(counts)
        # The inner graph of a Scan comes by here, too.
        self.graphs.append(fgraph)
        self.seen[id(fgraph)] = len(fgraph.apply_nodes), counts.created, counts.removed


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("on", [True, False])
def test_nodes_of_passes(name: str, on: bool) -> None:
    places = (-2, 0.5, 1.05, 1.55, 2.5, 48, 60, 200)
    probes = [Probe(number) for number in range(len(places))]
    mode = PYTHON.register(*zip(probes, places, strict=True))
    with pytensor_fuse.enabled(on), trace_rewrites() as trace:
        f = compiled(GRAPHS[name](), mode)
    (call,) = trace.calls
    whole = call.inner[0]
    at = [n for n, inner in enumerate(whole.inner) if inner.kind == "Probe"]
    seen = [probe.seen[id(f.maker.fgraph)] for probe in probes]
    for (n_nodes, _, _), n in zip(seen, at, strict=True):
        assert (whole.inner[n].nodes_before, whole.inner[n].created) == (n_nodes, 0)
    for (first, m), (second, n) in pairwise(zip(seen, at, strict=True)):
        between = whole.inner[m : n + 1]
        assert sum(each.created for each in between) == second[1] - first[1]
        assert sum(each.removed for each in between) == second[2] - first[2]
    for each in trace.all_passes():
        if each.runs == 1:
            assert each.nodes_after - each.nodes_before == each.created - each.removed, each.name
    for before, after in pairwise(whole.inner):
        assert before.nodes_after == after.nodes_before
    assert call.nodes_after <= len(f.maker.fgraph.apply_nodes)
    assert call.nodes_before == seen[0][0]


def test_rounds_of_an_equilibrium() -> None:
    counting = Counting(3)
    equilibrium = EquilibriumGraphRewriter(
        [counting.rewriter("ours", [pt.exp])], max_use_ratio=10, ignore_newtrees=True
    )
    with trace_rewrites() as trace:
        rewrite(chain(5), equilibrium)
    each = found(trace.all_passes(), "EquilibriumGraphRewriter")
    assert [(one.nodes, one.fired) for one in each.rounds] == [(10, 3), (10, 0)]
    assert sum(one.seconds for one in each.rounds) <= each.seconds
    assert each.rounds[0].began >= each.began


def test_times_add_up() -> None:
    """All of a call's passes take what PyTensor says that rewriting took, but for 5 % or 5 ms."""
    # What the machine does in between is no fault of the trace: once is enough.
    for _ in range(20):
        with trace_rewrites() as trace:
            before = maker.compile_profiling.total_graph_rewrite_time
            compiled(regression())
            stock = maker.compile_profiling.total_graph_rewrite_time - before
        (call,) = trace.calls
        assert sum(own_times(each) for each in call.inner) == pytest.approx(call.rewriting)
        assert call.rewriting <= stock
        assert call.rewriting + call.linking <= call.seconds <= trace.seconds
        if call.rewriting + 5e-3 >= 0.95 * stock:
            break
    else:
        pytest.fail("much of the time of rewriting is in no pass")
    for each in trace.all_passes():
        assert each.own >= -1e-9
        assert sum(r.own or 0.0 for r in each.rewriters if r.group is None) <= each.own + 1e-9


# What is within what ------------------------------------------------------------------------


def test_a_function_within_a_rewrite() -> None:
    @node_rewriter([pt.exp])
    def compiles(fgraph: FunctionGraph, node: Any) -> None:
        y = pt.scalar("y")
        pytensor.function([y], pt.sin(y), mode=PYTHON, name="inside")

    equilibrium = EquilibriumGraphRewriter([compiles], max_use_ratio=10)
    equilibrium.name = "theirs"
    x = pt.vector("x")
    with trace_rewrites() as trace:
        pytensor.function([x], -pt.exp(x), mode=Mode("py", equilibrium), name="outside")
    (call,) = trace.calls
    assert call.name == "outside"
    (theirs,) = call.inner
    (inside,) = theirs.inner
    assert isinstance(inside, TracedCall)
    assert inside.name == "inside"
    assert inside.inner
    assert theirs.own < theirs.seconds
    (rewriter,) = theirs.rewriters
    assert rewriter.own <= rewriter.seconds - inside.seconds
    assert theirs.created == 0
    assert "compiles" in call.where or __file__ in call.where


@pytest.mark.parametrize("kind", ["in2out", "equilibrium", "group"])
def test_a_pass_within_itself(kind: str) -> None:
    counting = Counting()
    passes: list[GraphRewriter] = []

    @node_rewriter([pt.neg])
    def recurs(fgraph: FunctionGraph, node: Any) -> None:
        if len(fgraph.apply_nodes) > 2:
            passes[0].rewrite(chain(len(fgraph.apply_nodes) // 2 - 1))

    members = [counting.rewriter("ours", [pt.exp]), recurs]
    group = SequentialNodeRewriter(*members)
    passes.append(
        EquilibriumGraphRewriter(members, max_use_ratio=10)
        if kind == "equilibrium"
        else EquilibriumGraphRewriter([group], max_use_ratio=10)
        if kind == "group"
        else in2out(group)
    )
    with trace_rewrites() as trace:
        passes[0].rewrite(chain(4))
    total = rewriter_of(trace, "ours")
    assert (total.tried, total.fired) == (counting.tried, counting.offered)
    assert total.fired > 4
    (outermost,) = trace.outside
    assert outermost.created == 4
    assert outermost.inner
    assert {inner.within for inner in outermost.inner} == {"recurs"}
    assert sum(inner.runs for inner in outermost.inner) >= 4
    whole = outermost.seconds + outermost.requirements
    assert own_times(outermost) == pytest.approx(whole)
    (owner,) = [r for r in outermost.rewriters if r.name == "recurs"]
    assert owner.own < owner.seconds


def test_one_pass_in_two_threads() -> None:
    counts = [Counting(), Counting()]
    by_thread = threading.local()

    @node_rewriter([pt.exp])
    def either(fgraph: FunctionGraph, node: Any) -> Any:
        return by_thread.counting(fgraph, node)

    shared = [
        EquilibriumGraphRewriter([either], max_use_ratio=10),
        in2out(either),
        EquilibriumGraphRewriter([SequentialNodeRewriter(either)], max_use_ratio=10),
    ]
    start = threading.Barrier(2)

    def run(counting: Counting) -> None:
        by_thread.counting = counting
        start.wait()
        for n in range(20):
            shared[n % len(shared)].rewrite(chain(10))

    with trace_rewrites() as trace:
        threads = [threading.Thread(target=run, args=[counting]) for counting in counts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    total = rewriter_of(trace, "either")
    assert total.tried == sum(counting.tried for counting in counts)
    assert total.fired == sum(counting.offered for counting in counts) == 400
    # What it returns as a member of a group is the group's.
    assert total.created == total.removed == 280
    assert rewriter_of(trace, "SequentialNodeRewriter(either)").created == 120


def test_the_inner_graph_of_a_scan() -> None:
    with trace_rewrites() as trace:
        compiled(accumulation())
    (call,) = trace.calls
    inner = [each for each in _everything(call) if isinstance(each, TracedCall)]
    # The C and Python linkers compile the inner function when they make the thunk of the Scan.
    assert len(inner) > 1
    assert sum(own_times(each) for each in call.inner if isinstance(each, TracedPass)) == (
        pytest.approx(call.rewriting)
    )


def _everything(each: Any) -> list[Any]:
    return [each, *(one for inner in each.inner for one in _everything(inner))]


def test_nested_traces() -> None:
    x = pt.vector("x")
    with trace_rewrites() as outer:
        pytensor.function([x], pt.exp(x), mode=PYTHON, name="first")
        with trace_rewrites() as inner:
            pytensor.function([x], pt.sin(x), mode=PYTHON, name="second")
        pytensor.function([x], pt.cos(x), mode=PYTHON, name="third")
    assert [call.name for call in outer.calls] == ["first", "second", "third"]
    assert [call.name for call in inner.calls] == ["second"]
    assert inner.calls[0].created == outer.calls[1].created


def test_a_trace_within_a_call() -> None:
    traces = []

    @basic.graph_rewriter
    def traces_itself(fgraph: FunctionGraph) -> None:
        with trace_rewrites() as trace:
            y = pt.scalar("y")
            pytensor.function([y], pt.sin(y), mode=PYTHON, name="inside")
            rewrite_graph(pt.exp(y) * 1)
        traces.append(trace)

    x = pt.vector("x")
    mode = Mode("py", SequentialGraphRewriter(traces_itself))
    with trace_rewrites() as outer:
        pytensor.function([x], pt.exp(x), mode=mode, name="outside")
    assert [call.name for call in outer.calls] == ["outside"]
    assert outer.outside == ()
    assert [call.name for call in traces[0].calls] == ["inside"]
    assert traces[0].outside
    before = methods()
    pytensor.function([x], pt.exp(x), mode=mode, name="outside")
    assert methods() == before
    assert [call.name for call in traces[1].calls] == ["inside"]


def test_rewriting_outside_a_call() -> None:
    x = pt.vector("x")
    with trace_rewrites() as trace:
        rewrite_graph(pt.log(pt.exp(x)) * 1, include=("canonicalize", "specialize"))
    assert trace.calls == ()
    assert trace.outside
    assert any(total.fired for total in trace.rewriters)


def test_threads() -> None:
    start = threading.Barrier(2)

    def compile_one(name: str) -> None:
        inputs, outputs = regression()
        start.wait()
        pytensor.function(inputs, outputs, mode=PYTHON, name=name)

    alone = []
    for name in ("a", "b"):
        with trace_rewrites() as trace:
            pytensor.function(*regression(), mode=PYTHON, name=name)
        alone += trace.calls
    with trace_rewrites() as trace:
        threads = [threading.Thread(target=compile_one, args=name, name=name) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted((call.name, call.thread) for call in trace.calls) == [("a", "a"), ("b", "b")]

    def counts(call: TracedCall) -> list[tuple[Any, ...]]:
        return [
            (each.name, each.created, each.removed, r.name, r.tried, r.fired)
            for each in _everything(call)
            if isinstance(each, TracedPass)
            for r in each.rewriters
        ]

    for call in trace.calls:
        assert counts(call) == counts(alone[0])
    boxes, _ = flame_chart(trace.calls)
    assert len({box.depth for box in boxes if box.name.endswith((" in a", " in b"))}) == 2


def test_a_call_that_outlasts_the_trace_is_not_in_it() -> None:
    begun, leave = threading.Event(), threading.Event()

    @basic.graph_rewriter
    def waits(fgraph: FunctionGraph) -> None:
        begun.set()
        assert leave.wait(600)

    def run() -> None:
        x = pt.vector("x")
        pytensor.function([x], pt.exp(x), mode=Mode("py", SequentialGraphRewriter(waits)))

    thread = threading.Thread(target=run)
    before = methods()
    with trace_rewrites() as trace:
        thread.start()
        assert begun.wait(600)
    leave.set()
    thread.join()
    assert trace.calls == trace.outside == ()
    assert methods() == before


# Failures -----------------------------------------------------------------------------------


def test_the_body_raises() -> None:
    x = pt.vector("x")
    with trace_rewrites() as trace, pytest.raises(ZeroDivisionError):
        raise_after(lambda: pytensor.function([x], pt.exp(x), mode=PYTHON))
    assert len(trace.calls) == 1
    held: list[Trace] = []
    with pytest.raises(ZeroDivisionError):
        trace_and_raise(held, lambda: pytensor.function([x], pt.exp(x), mode=PYTHON))
    assert len(held[0].calls) == 1


def raise_after(run: Any) -> None:
    run()
    raise ZeroDivisionError


def trace_and_raise(held: list[Trace], run: Any) -> None:
    with trace_rewrites() as trace:
        held.append(trace)
        raise_after(run)


def test_a_call_that_fails_before_rewriting() -> None:
    x, y = pt.vector("x"), pt.vector("y")
    with trace_rewrites() as trace:
        with pytest.raises(pytensor.graph.utils.MissingInputError):
            pytensor.function([x], x + y, mode=PYTHON)
        pytensor.function([x], x + 1, mode=PYTHON, name="good")
    assert [call.error is None for call in trace.calls] == [False, True]
    assert trace.calls[0].error.startswith("MissingInputError: ")
    assert trace.calls[0].inner == ()
    assert "raised MissingInputError" in str(trace)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("kind", ["in2out", "equilibrium"])
def test_a_rewriter_that_fails(grouped: bool, kind: str) -> None:
    counting = Counting(2)

    @node_rewriter([pt.neg])
    def fails(fgraph: FunctionGraph, node: Any) -> None:
        if counting.tried >= 4:
            raise AssertionError("why")

    rewriters = [counting.rewriter("ours", [pt.exp]), fails]
    group = SequentialNodeRewriter(*rewriters) if grouped else None
    if kind == "equilibrium":
        passes = [EquilibriumGraphRewriter([group] if group else rewriters, max_use_ratio=10)]
    else:
        passes = [in2out(one, failure_callback=None) for one in ([group] if group else rewriters)]
    with pytest.raises(AssertionError, match="why"), trace_rewrites() as trace:
        rewrite(chain(6), *passes)
    failed = [each for each in trace.all_passes() if each.error]
    assert failed
    assert {each.error for each in failed} == {"AssertionError: why"}
    (ours,) = [r for each in trace.all_passes() for r in each.rewriters if r.name == "ours"]
    assert ours.tried == counting.tried
    is_lost = kind == "equilibrium" and not grouped
    assert ours.fired == (None if is_lost else counting.offered)
    assert rewriter_of(trace, "ours").is_whole is not is_lost
    assert "ours" not in {total.name for total in trace.never_fired}
    trace.to_dict()
    trace.to_html()
    str(trace)


class SpeechlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("first\nsecond"), "ValueError: first"),
        (ValueError(), "ValueError: "),
        (ValueError("x" * 10**6), f"ValueError: {'x' * 300}"),
        (SpeechlessError(), "SpeechlessError: (its text cannot be made)"),
        (KeyboardInterrupt(), "KeyboardInterrupt: "),
    ],
)
def test_errors_of_passes(error: BaseException, text: str) -> None:
    @basic.graph_rewriter
    def fails(fgraph: FunctionGraph) -> None:
        raise error

    with trace_rewrites() as trace, pytest.raises(type(error)):
        rewrite(chain(1), fails)
    assert {each.error for each in trace.all_passes()} == {text}


def test_failures_that_pytensor_passes_over() -> None:
    @node_rewriter([pt.exp])
    def fails(fgraph: FunctionGraph, node: Any) -> None:
        raise ValueError("why")

    def ignore(*arguments: Any) -> None:
        pass

    with trace_rewrites() as trace:
        rewrite(
            chain(3),
            in2out(fails, failure_callback=ignore),
            EquilibriumGraphRewriter([fails], ignore, max_use_ratio=10),
        )
    total = rewriter_of(trace, "fails")
    assert (total.tried, total.fired) == (6, 0)


# Other compilers ----------------------------------------------------------------------------


def test_enabled_within() -> None:
    with pytensor_fuse.enabled(False), trace_rewrites() as trace:
        compiled(regression())
        pytensor_fuse.enable()
        compiled(regression())
    runs = [found(_passes(call), "composite_elemwise_fusion") for call in trace.calls]
    assert [run.removed > 0 for run in runs] == [True, True]


def _passes(call: TracedCall) -> list[TracedPass]:
    return [each for each in _everything(call) if isinstance(each, TracedPass)]


def test_debug_mode() -> None:
    x = pt.vector("x")
    with trace_rewrites() as trace:
        pytensor.function([x], pt.exp(x) * 1, mode="DebugMode", name="checked")
    (call,) = trace.calls
    assert call.name == "checked"
    assert call.inner


def test_profiled() -> None:
    x = pt.vector("x")
    with trace_rewrites() as trace:
        f = pytensor.function([x], pt.exp(x) * 1, mode=PYTHON, profile=True)
    assert f.profile.rewriting_time > 0
    f.profile.compile_time = f.profile.fct_callcount = 0
    assert len(trace.calls) == 1


def test_pymc() -> None:
    pm = pytest.importorskip("pymc")
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=np.arange(5.0))
    with trace_rewrites() as trace:
        model.logp_dlogp_function(mode=PYTHON, ravel_inputs=True)
        model.compile_logp(mode=PYTHON)
    # Another makes the point to start from.
    assert len(trace.calls) >= 2
    for call in trace.calls:
        assert call.where.startswith(f"{__file__}:")
        assert call.inner
    assert sum(call.nodes_after for call in trace.calls) > 0


# What can be made of it ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def trace() -> Trace:
    with trace_rewrites() as made:
        pytensor.function(*regression(), mode=PYTHON, name="</script><b>&\"'")
        compiled(accumulation())
        rewrite_graph(pt.log(pt.exp(pt.vector("x"))))
    return made


def test_dict(trace: Trace) -> None:
    plain = json.loads(json.dumps(trace.to_dict(), allow_nan=False))
    again = Trace.from_dict(plain)
    assert again.to_dict() == trace.to_dict()
    assert again.calls == trace.calls
    assert again.outside == trace.outside
    assert str(again) == str(trace)
    assert again.to_html() == trace.to_html()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "not a trace of format 1: its format is None"),
        ([], "not a trace of format 1: its format is None"),
        ({"format": 2}, "its format is 2"),
        ({"format": 1, "versions": {}, "seconds": 1.0, "calls": []}, "not a whole trace: KeyError"),
        (
            {"format": 1, "versions": {}, "seconds": 1.0, "calls": [{"inner": []}], "outside": []},
            "not a whole trace: TypeError",
        ),
    ],
)
def test_dicts_that_are_none(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Trace.from_dict(data)


def test_text(trace: Trace) -> None:
    text = str(trace)
    (first, *_) = text.splitlines()
    assert first.startswith("2 calls of pytensor.function in ")
    assert "canonicalize" in text
    assert "the slowest 10 by themselves" in text
    assert "never fired: " in text
    assert "outside calls of pytensor.function: " in text
    assert max(len(line) for line in text.splitlines()) < 200


def test_an_empty_trace() -> None:
    with trace_rewrites() as empty:
        assert "open" in repr(empty)
    assert repr(empty).startswith("<Trace: 0 calls")
    assert str(empty).startswith("0 calls of pytensor.function")
    assert empty.slowest() == empty.rewriters == empty.passes == ()
    assert "no call" in empty.to_html() or "<main>" in empty.to_html()
    assert "calls" in str(empty.diff(empty))


def test_slowest(trace: Trace) -> None:
    every = trace.slowest(10**6)
    assert [total.own for total in every] == sorted((t.own for t in every), reverse=True)
    assert trace.slowest(3) == every[:3]
    with pytest.raises(ValueError, match="-1"):
        trace.slowest(-1)
    # What is listed adds up to all the time there is, each second once.
    whole = sum(own_times(each) for each in (*trace.calls, *trace.outside))
    features = sum(each.requirements for each in trace.all_passes())
    assert sum(total.own for total in every) == pytest.approx(whole - features, rel=0.02)


def test_diff() -> None:
    made = []
    for excluded in ((), ("local_log_exp", "fusion")):
        with trace_rewrites() as one:
            compiled(regression(), PYTHON.excluding(*excluded))
        made.append(one)
    diff = made[0].diff(made[1])
    missing = [name for name, before, after in diff.passes if after is None]
    assert "elemwise_fusion" in missing
    assert not [name for name, before, after in diff.passes if before is None]
    pairs = {name: (before, after) for name, before, after in diff.rewriters}
    assert set(pairs) == {t.name for one in made for t in one.rewriters}
    for name, (before, after) in pairs.items():
        for one, total in zip(made, (before, after), strict=True):
            assert total is None or total.tried == rewriter_of(one, name).tried
    changes = [
        abs((after.own if after else 0.0) - (before.own if before else 0.0))
        for _, before, after in diff.rewriters
    ]
    assert changes == sorted(changes, reverse=True)
    assert "not after: " in str(diff)
    plain = json.loads(json.dumps(diff.to_dict(), allow_nan=False))
    assert plain["before"]["calls"] == plain["after"]["calls"] == 1
    assert plain["after"]["nodes_after"] == made[1].calls[0].nodes_after
    assert all(change == "+0" for change in _changes(str(made[0].diff(made[0]))))
    with pytest.raises(TypeError, match="not from 3"):
        made[0].diff(3)


def _changes(text: str) -> list[str]:
    rows = [line.split() for line in text.split("\n\n")[0].splitlines()[2:]]
    return [row[-1] for row in rows if row[0] in ("calls", "nodes_before", "nodes_after")]


def test_boxes(trace: Trace) -> None:
    boxes, width = flame_chart([*trace.calls, *trace.outside])
    calls = [box for box in boxes if box.depth == 0]
    assert sum(box.width for box in calls) <= width
    for n, box in enumerate(boxes):
        assert box.start >= -1e-9
        assert box.start + box.width <= width + 1e-6
        # What is drawn below is within what is above it.
        above = [
            other
            for other in boxes[:n]
            if other.depth in (box.depth - 1, box.depth - 2)
            and other.kind != "round"
            and other.start <= box.start + 1e-4
            and other.start + other.width >= box.start + box.width - 1e-4
        ]
        assert above or box.depth == 0, box
    by_depth: dict[int, list[Any]] = {}
    for box in boxes:
        by_depth.setdefault(box.depth, []).append(box)
    for row in by_depth.values():
        row.sort(key=lambda box: box.start)
        for first, second in pairwise(row):
            assert first.start + first.width <= second.start + 1e-4, (first, second)


def test_a_page_of_many_calls_is_of_a_size_to_open(trace: Trace) -> None:
    plain = trace.to_dict()
    calls = [{**call, "began": call["began"] + n} for n in range(300) for call in plain["calls"]]
    page = Trace.from_dict({**plain, "calls": calls}).to_html()
    assert "600" in page
    assert len(page) < 5e6


def test_a_file_that_cannot_be_written(trace: Trace, tmp_path: Any) -> None:
    with pytest.raises(OSError, match="nowhere"):
        trace.to_html(tmp_path / "nowhere" / "trace.html")
    with pytest.raises(IsADirectoryError):
        trace.to_html(tmp_path)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page(trace: Trace, browser: Browser, tmp_path: Any, scheme: str) -> None:
    path = tmp_path / "trace.html"
    assert trace.to_html(path) is None
    assert path.stat().st_size < 5e6
    with browser.scheme(scheme):
        assert browser.open(path) < 3
        n = browser.run("return document.querySelectorAll('#chart rect').length")
        assert n > 20
        assert (
            "</script><b>&\"'"
            in browser.run("return document.querySelector('#chart text:not(.k-axis)').textContent")
            or browser.run("return document.querySelectorAll('#chart text').length") > 3
        )
        # Search: fewer rows of tables, and boxes that are marked.
        browser.run(
            "const s = document.getElementById('search'); s.value = 'canonicalize';"
            "s.dispatchEvent(new Event('input'));"
        )
        assert browser.run("return document.querySelectorAll('rect.found').length") >= 2
        assert "boxes" in browser.run("return document.getElementById('found').textContent")
        hidden = "return document.querySelectorAll('table.sorted tr[hidden]').length"
        assert browser.run(hidden) > 0
        browser.run(
            "const s = document.getElementById('search'); s.value = '';"
            "s.dispatchEvent(new Event('input'));"
        )
        assert browser.run(hidden) == 0
        # A click looks closer, and says what the box is.
        browser.run(
            "const box = [...document.querySelectorAll('rect')]"
            ".find((r) => r.bar.name === 'canonicalize');"
            "box.dispatchEvent(new MouseEvent('click', {bubbles: true}));"
        )
        assert browser.run("return document.getElementById('details').textContent").startswith(
            "canonicalize"
        )
        wide = browser.run(
            "return Number(document.querySelector('rect.chosen').getAttribute('width'))"
        )
        assert wide > 500
        # Tables sort by what one clicks on.
        browser.run(
            "[...document.querySelectorAll('table.sorted th')]"
            ".find((h) => h.textContent === 'tried').click();"
        )
        column = browser.run(
            "return [...document.querySelectorAll('table.sorted')[0].tBodies[0].rows]"
            ".map((row) => Number(row.cells[1].dataset.value))"
        )
        assert column == sorted(column, reverse=True)
        browser.assert_clean()


# Code of others that goes its own way -------------------------------------------------------


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
from pytensor_fuse import trace_rewrites

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


class TellsForItself(EquilibriumGraphRewriter):
    name = "tells"

    def apply(self, fgraph: FunctionGraph, start_from: Any = None) -> Any:
        return EquilibriumGraphRewriter(self.get_node_rewriters(), max_use_ratio=10).apply(fgraph)


def test_tries_that_nobody_watched() -> None:
    counting = Counting()
    with trace_rewrites() as trace:
        TellsForItself([counting.rewriter("ours", [Elemwise])], max_use_ratio=10).apply(chain(3))
    (inner,) = found(trace.outside, "tells").inner
    assert isinstance(inner, TracedPass)
    assert [each.tried for each in inner.rewriters] == [counting.tried]
    (ours,) = found(trace.outside, "tells").rewriters
    assert (ours.tried, ours.fired) == (None, counting.offered)
    assert Trace.from_dict(json.loads(json.dumps(trace.to_dict()))).outside == trace.outside
    assert "tried ? times" in str(trace.to_html())


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


class TwiceInEquilibrium(EquilibriumGraphRewriter):
    name = "twice"

    def apply(self, fgraph: FunctionGraph, start_from: Any = None) -> Any:
        super().apply(fgraph)
        fgraph.replace(fgraph.outputs[0], pt.exp(fgraph.outputs[0]), reason="more")
        return super().apply(fgraph)


class TwiceWalking(basic.WalkingGraphRewriter):
    name = "twice"

    def apply(self, fgraph: FunctionGraph, start_from: Any = None) -> Any:
        super().apply(fgraph)
        fgraph.replace(fgraph.outputs[0], pt.exp(fgraph.outputs[0]), reason="more")
        return super().apply(fgraph)


@pytest.mark.parametrize("kind", ["equilibrium", "walking"])
def test_a_pass_that_runs_its_base_class_twice(kind: str) -> None:
    counting = Counting()
    rewriter = counting.rewriter("ours", [Elemwise])
    with trace_rewrites() as trace:
        if kind == "equilibrium":
            TwiceInEquilibrium([rewriter], max_use_ratio=10).apply(chain(3))
        else:
            TwiceWalking(rewriter, order="in_to_out").apply(chain(3))
    ours = rewriter_of(trace, "ours")
    assert (ours.tried, ours.fired) == (counting.tried, counting.offered)
    if kind == "equilibrium":
        rounds = found(trace.outside, "twice").rounds
        assert sum(each.fired for each in rounds) == counting.offered


@pytest.mark.parametrize("way", [copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))])
def test_deep_copies_take_no_counter_along(way: Any) -> None:
    copies = []

    @basic.graph_rewriter
    def copies_it(fgraph: FunctionGraph) -> None:
        copies.append(way(fgraph))

    with trace_rewrites():
        rewrite(chain(2), copies_it)
    assert not any(isinstance(f, NodeCounter) for f in copies[0]._features)


class Unprintable(NodeRewriter):
    def transform(self, fgraph: Any, node: Any, enforce_tracks: bool = False) -> Any:
        return None

    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_a_rewriter_that_cannot_be_printed() -> None:
    with trace_rewrites() as trace:
        rewrite(chain(2), in2out(Unprintable()))
    assert [total.name for total in trace.rewriters] == ["Unprintable"]


def test_reading_that_fails_loses_nothing() -> None:
    with trace_rewrites() as trace:
        rewrite(chain(2), in2out(Unprintable()))
    broken = mock.patch("pytensor_fuse._trace.reading.name_of", side_effect=MemoryError)
    with broken, pytest.raises(MemoryError):
        str(trace)
    assert len(trace.outside) == 1


@pytest.mark.parametrize(("name", "text"), [(3, "3"), (None, None), ("a\ud800b", "a\ud800b")])
def test_names_of_any_kind(name: Any, text: str | None, tmp_path: Any) -> None:
    x = pt.vector("x")
    with trace_rewrites() as trace:
        pytensor.function([x], x + 1, mode=Mode("py", None), name=name)
    assert trace.calls[0].name == text
    assert str(trace)
    trace.to_html(tmp_path / "trace.html")
    if text is not None:
        shown = text.replace("\ud800", "\\ud800")
        assert shown in (tmp_path / "trace.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("key", ["calls", "outside"])
@pytest.mark.parametrize("value", [["x"], [None], [{"is": "pass", "inner": ["x"]}]])
def test_malformed_dicts(trace: Trace, key: str, value: Any) -> None:
    with pytest.raises(ValueError, match="not a whole trace"):
        Trace.from_dict({**trace.to_dict(), key: value})
