"""What people make of PyTensor's rewriters is honoured: own, failing and later ones."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import (
    EquilibriumGraphRewriter,
    FromFunctionNodeRewriter,
    SequentialNodeRewriter,
    WalkingGraphRewriter,
    node_rewriter,
)
from pytensor.tensor.elemwise import Elemwise

from support.accelerated import both
from support.switching import switched

pytestmark = pytest.mark.usefixtures("switch_accelerators")


# Rewriters --------------------------------------------------------------------------------


@both
def test_own_rewriters_are_asked(on: bool) -> None:
    asked: list[str] = []

    class Mine(FromFunctionNodeRewriter):
        def transform(self, fgraph: Any, node: Any, *args: Any, **options: Any) -> Any:
            asked.append("transform")
            return super().transform(fgraph, node, *args, **options)

    def to_sin(fgraph: Any, node: Any) -> Any:
        asked.append("function")
        return [pt.sin(node.inputs[0])]

    class Walks(WalkingGraphRewriter):
        def process_node(self, fgraph: Any, node: Any, *args: Any, **options: Any) -> Any:
            asked.append("process")
            return super().process_node(fgraph, node, *args, **options)

    x = pt.vector("x")
    for rewriter in (
        WalkingGraphRewriter(Mine(to_sin, [pt.exp])),
        Walks(FromFunctionNodeRewriter(to_sin, [pt.exp])),
        EquilibriumGraphRewriter([Mine(to_sin, [pt.exp])], max_use_ratio=10),
    ):
        asked.clear()
        graph = FunctionGraph([x], [pt.exp(x) + 1])
        rewriter.rewrite(graph)
        assert "function" in asked
        assert {"transform", "process"} & set(asked)
        assert any(node.op == pt.sin for node in graph.apply_nodes)


@both
def test_failing_rewriters(on: bool) -> None:
    @node_rewriter([pt.exp])
    def fails(fgraph: Any, node: Any) -> Any:
        raise ArithmeticError("as it must")

    @node_rewriter([pt.exp])
    def gives_too_many(fgraph: Any, node: Any) -> Any:
        return [node.inputs[0], node.inputs[0]]

    @node_rewriter([pt.exp])
    def gives_none_of_these(fgraph: Any, node: Any) -> Any:
        return 3

    x = pt.vector("x")
    for rewriter, error, text in (
        (fails, ArithmeticError, "as it must"),
        (gives_too_many, ValueError, "gave wrong number of replacements"),
        (gives_none_of_these, TypeError, "gave wrong type of replacement"),
    ):
        for make in (
            lambda rw: WalkingGraphRewriter(rw),
            lambda rw: EquilibriumGraphRewriter([rw], max_use_ratio=10),
        ):
            graph = FunctionGraph([x], [pt.exp(x)])
            with pytest.raises(error, match=text):
                make(rewriter).rewrite(graph)
    told: list[Any] = []
    quiet = EquilibriumGraphRewriter(
        [fails], max_use_ratio=10, failure_callback=lambda *args: told.append(args[-1].op)
    )
    quiet.rewrite(FunctionGraph([x], [pt.exp(x)]))
    assert told == [pt.exp]


@both
def test_too_many_uses_end_an_equilibrium(on: bool) -> None:
    @node_rewriter([pt.exp])
    def again(fgraph: Any, node: Any) -> Any:
        return [pt.exp(node.inputs[0])]

    x = pt.vector("x")
    rewriter = EquilibriumGraphRewriter([again], max_use_ratio=3)
    with (
        pytensor.config.change_flags(on_opt_error="raise"),
        pytest.raises(AssertionError, match=r"max'ed out by again\."),
    ):
        rewriter.rewrite(FunctionGraph([x], [pt.exp(x)]))


def test_profiles_have_the_same_entries() -> None:
    @node_rewriter([pt.exp])
    def to_sin(fgraph: Any, node: Any) -> Any:
        return [pt.sin(node.inputs[0])]

    @node_rewriter([pt.exp, pt.sin])
    def nothing(fgraph: Any, node: Any) -> Any:
        return None

    x = pt.vector("x")
    rewriter = EquilibriumGraphRewriter([nothing, to_sin], max_use_ratio=10)
    profiles = []
    for on in (False, True):
        with switched(accelerators=on):
            graph = FunctionGraph([x], [pt.exp(x) + 1])
            _, _, counts, sizes, _, n_nodes, times, _, made, *subs = rewriter.apply(graph)
            profiles.append((counts, sizes, n_nodes, list(times), made, subs))
            assert all(seconds >= 0 for seconds in times.values())
    assert profiles[0] == profiles[1]
    assert profiles[0][0][0] == {to_sin: 1}


@both
def test_names_of_rewriters(on: bool) -> None:
    rewriter = FromFunctionNodeRewriter(print)
    assert str(rewriter) == repr(rewriter)
    rewriter.__name__ = "named"
    assert str(rewriter) == "named"


# Rewriters that get more to track ---------------------------------------------------------


def test_a_group_that_gets_another_rewriter_tries_it() -> None:
    @node_rewriter([pt.sin])
    def never(fgraph: Any, node: Any) -> Any:
        return None

    @node_rewriter([pt.exp])
    def to_cos(fgraph: Any, node: Any) -> Any:
        return [pt.cos(node.inputs[0])]

    group = SequentialNodeRewriter(never)
    rewriter = WalkingGraphRewriter(group)
    x = pt.vector("x")
    graph = FunctionGraph([x], [pt.exp(x)])
    for _ in range(2):
        rewriter.rewrite(graph)
        assert graph.outputs[0].owner.op == pt.exp
    group.tracker.add_tracker(to_cos)
    # In PyTensor 3.0 a tracker does not look again at ops that it has been asked of.
    other = FunctionGraph([x], [Elemwise(pt.exp.scalar_op, name="other")(x)])
    rewriter.rewrite(other)
    with switched(accelerators=False):
        again = FunctionGraph([x], [Elemwise(pt.exp.scalar_op, name="other")(x)])
        rewriter.rewrite(again)
    assert other.outputs[0].owner.op == again.outputs[0].owner.op


def test_rewriters_are_let_go() -> None:
    @node_rewriter([pt.exp])
    def nothing(fgraph: Any, node: Any) -> Any:
        return None

    x = pt.vector("x")
    rewriter = WalkingGraphRewriter(nothing)
    rewriter.rewrite(FunctionGraph([x], [pt.sin(x)]))
    reference = weakref.ref(nothing)
    del nothing, rewriter
    gc.collect()
    assert reference() is None


@both
def test_a_rewriter_that_comes_in_the_middle_is_tried(on: bool) -> None:
    @node_rewriter([pt.cos])
    def to_tan(fgraph: Any, node: Any) -> Any:
        return [pt.tan(node.inputs[0])]

    @node_rewriter([pt.exp])
    def to_cos(fgraph: Any, node: Any) -> Any:
        if to_tan not in rewriter.node_tracker.get_rewriters():
            rewriter.node_tracker.add_tracker(to_tan)
        return [pt.cos(node.inputs[0])]

    x = pt.vector("x")
    rewriter = EquilibriumGraphRewriter([to_cos], max_use_ratio=10)
    graph = FunctionGraph([x], [pt.exp(x) + 1])
    profile = rewriter.rewrite(graph)
    assert any(node.op == pt.tan for node in graph.apply_nodes)
    assert {to_cos, to_tan} <= set(profile[6])
