"""How often node rewriters are tried and fire, against some that count for themselves."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any
from unittest import mock

import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting import basic
from pytensor.graph.rewriting.basic import (
    EquilibriumGraphRewriter,
    GraphRewriter,
    NodeProcessingGraphRewriter,
    NodeRewriter,
    PatternNodeRewriter,
    SequentialNodeRewriter,
    in2out,
    node_rewriter,
)
from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse import trace as trace_rewrites
from pytensor_fuse._activation.passes.linalg import rules
from pytensor_fuse._linalg.rules.by_structure import triangular
from pytensor_fuse._trace.records import TracedPass
from pytensor_fuse.reports import Trace
from support.switching import switched
from support.traced import (
    GRAPHS,
    PYTHON,
    Counting,
    chain,
    compiled,
    found,
    regression,
    rewrite,
    rewriter_of,
)

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
    assert "tried ? times" in trace.to_chrome_trace()


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


def test_names_say_nothing_of_addresses() -> None:
    extra = in2out(Counting().rewriter("walked", None))
    mode = PYTHON.register((extra, 1.7))
    with trace_rewrites() as trace:
        compiled(regression(), mode)
    text = json.dumps(trace.to_dict())
    assert " at 0x" not in text
    assert str(id(extra)) not in text


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


def test_rules_of_linear_algebra() -> None:
    """The loop over a rule's nodes is no walk of PyTensor's."""
    a, b, u = pt.dmatrix("a"), pt.dmatrix("b"), pt.dvector("u")
    solutions: list[Any] = [pt.linalg.solve(pt.tril(a), u), pt.linalg.solve(b, u)]
    tried: list[Any] = []

    def counted(fgraph: FunctionGraph, node: Any) -> Any:
        tried.append(node)
        return triangular.triangular_solve(fgraph, node)

    walk = rules._Walk(counted, frozenset({"Solve"}))
    walk.name = "counted"
    with trace_rewrites() as trace:
        rewrite(FunctionGraph([a, b, u], solutions), walk)
    total = rewriter_of(trace, "counted")
    assert (total.tried, total.fired) == (len(tried), 1) == (2, 1)

    with switched(cache=False), trace_rewrites() as trace:
        compiled(([a, b, u], solutions))
    assert rewriter_of(trace, "triangular_solve").fired == 1
    assert "woodbury_solve" in {total.name for total in trace.never_fired if total.tried}
