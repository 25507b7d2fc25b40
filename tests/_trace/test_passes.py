"""The nodes, rounds and times of passes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytensor.tensor as pt
import pytest
from pytensor.compile import maker
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import (
    EquilibriumGraphRewriter,
    GraphRewriter,
)

import pytensor_fuse
from pytensor_fuse import trace as trace_rewrites
from support.traced import (
    GRAPHS,
    PYTHON,
    Counting,
    chain,
    compiled,
    found,
    own_times,
    regression,
    rewrite,
)


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
