"""What is within what: calls, passes, traces and threads."""

from __future__ import annotations

import threading
from typing import Any

import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
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
from pytensor.graph.rewriting.utils import rewrite_graph

from pytensor_fuse import trace as trace_rewrites
from pytensor_fuse._trace.records import TracedCall, TracedPass
from pytensor_fuse._trace.timeline import timeline
from support.traced import (
    PYTHON,
    Counting,
    accumulation,
    chain,
    compiled,
    everything,
    methods,
    own_times,
    regression,
    rewriter_of,
)


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
    inner = [each for each in everything(call) if isinstance(each, TracedCall)]
    # The C and Python linkers compile the inner function when they make the thunk of the Scan.
    assert len(inner) > 1
    assert sum(own_times(each) for each in call.inner if isinstance(each, TracedPass)) == (
        pytest.approx(call.rewriting)
    )


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
            for each in everything(call)
            if isinstance(each, TracedPass)
            for r in each.rewriters
        ]

    for call in trace.calls:
        assert counts(call) == counts(alone[0])
    rows = timeline(trace._recorder.recording())
    assert sorted(row.name for row in rows) == ["a", "b"]


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
