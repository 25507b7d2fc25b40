"""What accelerators remember of graphs, rules and rewriters is forgotten when it changes."""

from __future__ import annotations

import pickle
import pickletools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode, optdb
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import NodeRewriter
from pytensor.graph.rewriting.db import EquilibriumDB

from pytensor_fuse import freeze
from support.switching import switched

x = pt.vector("x")


class Named(Feature):
    def __init__(self, name: str, heard: list[str]) -> None:
        self.name, self.heard = name, heard

    def on_detach(self, fgraph: Any) -> None:
        self.heard.append(f"{self.name} leaves")

    def on_import(self, fgraph: Any, node: Any, reason: Any) -> None:
        self.heard.append(self.name)


class Exchange(Feature):
    """Puts a feature in the place of another one while a node is imported."""

    def __init__(self, old: Feature, new: Feature) -> None:
        self.old, self.new = old, new

    def on_import(self, fgraph: Any, node: Any, reason: Any) -> None:
        if self.old in fgraph._features:
            fgraph.remove_feature(self.old)
            fgraph.attach_feature(self.new)


def exchanged(accelerators: bool) -> list[str]:
    heard: list[str] = []
    old, new = Named("old", heard), Named("new", heard)
    with switched(accelerators=accelerators):
        graph = FunctionGraph([x], [x + 1], clone=False)
        for feature in (Exchange(old, new), old):
            graph.attach_feature(feature)
        graph.replace(graph.outputs[0], pt.exp(x))
        graph.replace(graph.outputs[0], pt.sin(x))
    return heard


def test_features_that_are_exchanged_in_an_event() -> None:
    assert exchanged(True) == exchanged(False) == ["old leaves", "new", "new"]


def test_graphs_that_are_pickled_again_and_again() -> None:
    graph = FunctionGraph([x], [pt.exp(x) + 1], clone=False)
    for _ in range(3):
        graph.replace(graph.outputs[0], pt.sin(graph.inputs[0]))
        data = pickle.dumps(graph)
        names = [str(arg) for _, arg, _ in pickletools.genops(data)]
        assert not any(name.startswith("pytensor_fuse") for name in names)
        graph = pickle.loads(data)


class Expands(NodeRewriter):
    """Rewrites sines, of which it says so only later."""

    def __init__(self) -> None:
        self.ops = [pt.cos]

    def tracks(self) -> Any:
        return self.ops

    def transform(self, fgraph: Any, node: Any, enforce_tracks: bool = True) -> Any:
        return [2 * pt.sinh(node.inputs[0])] if node.op == pt.sin else None


@contextmanager
def registered(rewriter: NodeRewriter) -> Iterator[None]:
    database: Any = optdb["canonicalize"]
    database.register("of_a_test", rewriter, "fast_run")
    try:
        yield
    finally:
        for tag, rewriters in list(vars(database)["__db__"].items()):
            if rewriter in rewriters:
                rewriters.remove(rewriter)
                if not rewriters:
                    del vars(database)["__db__"][tag]
        database._names.remove("of_a_test")


def sine() -> Any:
    function = pytensor.function([x], pt.sin(x) * 3, mode=Mode("py", "fast_run"))
    return freeze(function.maker.fgraph).digest


def test_what_rewriters_track_may_change() -> None:
    found = []
    for accelerators in (False, True):
        rewriter = Expands()
        options = {"accelerators": accelerators, "cache": False}
        with switched(**options), registered(rewriter):
            before = sine()
            rewriter.ops = [pt.sin]
            found.append((before, sine()))
    assert found[0] == found[1]
    assert found[0][0] != found[0][1]


def test_methods_that_are_replaced_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    with switched(accelerators=True):
        sine()
        asked = []
        stock = EquilibriumDB.query

        def query(self: Any, *tags: Any, **options: Any) -> Any:
            asked.append(self)
            return stock(self, *tags, **options)

        monkeypatch.setattr(EquilibriumDB, "query", query)
        sine()
    assert asked


def test_rules_of_constants_that_come_later() -> None:
    core: Any = pytest.importorskip("pytensor.assumptions.core")
    if not hasattr(core, "UNIQUE_INDICES"):
        pytest.skip("PyTensor 3.0 has no such rules")
    key = core.UNIQUE_INDICES
    found = []

    def answers() -> Any:
        constant = pt.constant(np.array([[1.0, 2.0], [5.0, 4.0]]))
        graph = FunctionGraph(outputs=[constant.T], clone=False)
        return [core.check_assumption(graph, one, key) for one in (constant, graph.outputs[0])]

    for accelerators in (False, True):
        stock = dict(core.CONSTANT_INFER_REGISTRY)
        with switched(accelerators=accelerators):
            before = answers()
            core.register_constant_inference(key, lambda constant: core.FactState.TRUE)
            try:
                found.append((before, answers()))
            finally:
                core.CONSTANT_INFER_REGISTRY.clear()
                core.CONSTANT_INFER_REGISTRY.update(stock)
    assert found[0] == found[1]
    assert found[0][0] != found[0][1]
