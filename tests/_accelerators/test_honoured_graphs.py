"""What people make of PyTensor's graphs is honoured: own classes, features that listen."""

from __future__ import annotations

import gc
import pickle
import weakref
from typing import Any
from unittest import mock

import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.features import Feature, FullHistory, History
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.utils import MissingInputError
from pytensor.scalar.basic import add
from pytensor.tensor.elemwise import Elemwise

from support.accelerated import both, compile_and_record

pytestmark = pytest.mark.usefixtures("switch_accelerators")


# Graphs -----------------------------------------------------------------------------------


class Counts(Feature):
    """Listens by a method of the instance, which PyTensor's class does not have."""

    def __init__(self) -> None:
        self.seen: list[Any] = []


@both
def test_methods_put_on_a_feature_hear(on: bool) -> None:
    x = pt.vector("x")
    graph = FunctionGraph([x], [pt.exp(x)])
    feature: Any = Counts()
    graph.attach_feature(feature)
    feature.on_import = lambda fgraph, node, reason: feature.seen.append(("import", reason))
    graph.replace(graph.outputs[0], pt.sin(graph.inputs[0]), reason="mine")
    assert feature.seen == [("import", "mine")]
    with mock.patch.object(
        Feature, "on_prune", side_effect=lambda *_: feature.seen.append("prune")
    ):
        graph.replace(graph.outputs[0], pt.cos(graph.inputs[0]), reason="more")
    assert ("import", "more") in feature.seen
    assert "prune" in feature.seen


class Own(FunctionGraph):
    """A graph that notes its imports."""

    def import_node(self, apply_node: Any, *args: Any, **options: Any) -> None:
        vars(self).setdefault("noted", []).append(apply_node)
        super().import_node(apply_node, *args, **options)


@both
def test_graphs_of_other_classes_are_asked(on: bool) -> None:
    x = pt.vector("x")
    graph: Any = Own([x], [pt.exp(x)], clone=False)
    new = pt.sin(x)
    graph.replace(graph.outputs[0], new)
    assert graph.noted[-1] is new.owner
    graph.check_integrity()


@both
def test_histories_go_back_and_forth(on: bool) -> None:
    x, y = pt.vectors("x", "y")
    graph = FunctionGraph([x, y], [pt.exp(x) * pt.exp(y) + pt.exp(x)], clone=False)
    history = FullHistory()
    graph.attach_feature(history)
    before = [id(node) for node in graph.toposort()]
    checkpoint = graph.checkpoint()
    for node in list(graph.toposort())[:2]:
        graph.replace(node.outputs[0], pt.sin(node.inputs[0]) + 1, reason="step")
    after = [id(node) for node in graph.toposort()]
    history.start()
    assert [id(node) for node in graph.toposort()] == before
    history.end()
    assert [id(node) for node in graph.toposort()] == after
    graph.check_integrity()
    assert isinstance(graph._features[0], History)
    assert checkpoint >= 1


@both
def test_a_missing_input_is_an_error(on: bool) -> None:
    x, y = pt.vectors("x", "y")
    graph = FunctionGraph([x], [pt.exp(x)], clone=False)
    with pytest.raises(MissingInputError, match=r"Input 1 \(y\) of the graph"):
        graph.replace(graph.outputs[0], x + y)
    graph.import_var(x * y, import_missing=True)
    assert graph.inputs == [x, y]


@both
def test_refused_replacements_leave_the_graph(on: bool) -> None:
    x = pt.vector("x")
    graph = FunctionGraph([x], [pt.exp(x) + 1], clone=False)

    class Refuses(Feature):
        def on_validate(self, fgraph: Any) -> None:
            if any(node.op == pt.sin for node in fgraph.apply_nodes):
                raise pytensor.graph.utils.InconsistencyError("no sines")

    graph.attach_feature(Refuses())
    before = list(map(str, graph.toposort()))
    with pytest.raises(pytensor.graph.utils.InconsistencyError, match="no sines"):
        graph.replace_all_validate([(graph.outputs[0], pt.sin(x))], reason="sine")
    assert list(map(str, graph.toposort())) == before
    graph.check_integrity()


@both
def test_cycles_and_protected_inputs_are_refused(on: bool) -> None:
    def overwrites(x: Any) -> Any:
        return [x], [Elemwise(add, {0: 0})(x, x + 1), pt.exp(x)], {}

    found = compile_and_record(lambda: overwrites(pt.vector("x")), on)
    kind, text = found["error"]
    assert kind is TypeError or "destroy" in text
    x = pt.vector("x")
    a = pt.exp(x)
    graph = FunctionGraph([x], [pt.sin(a)], clone=False)
    from pytensor.graph import destroyhandler

    assert not destroyhandler._contains_cycle(graph, {})
    first, last = graph.toposort()
    assert destroyhandler._contains_cycle(graph, {first: [last]})
    assert not destroyhandler._contains_cycle(graph, {last: [first]})
    stranger = pt.cos(x).owner
    assert destroyhandler._contains_cycle(graph, {last: [stranger]})


# Who listens ------------------------------------------------------------------------------


class Logs(Feature):
    """Writes down what it hears."""

    def __init__(self, log: list[Any], name: str) -> None:
        self.log = log
        self.name = name

    def on_change_input(self, fgraph: Any, *args: Any, **options: Any) -> None:
        self.log.append((self.name, "change"))


@both
def test_listeners_come_and_go(on: bool) -> None:
    """Also while they are told, and with methods that they got later."""
    x = pt.vector("x")
    log: list[Any] = []

    class Brings(Logs):
        def on_import(self, fgraph: Any, node: Any, reason: Any) -> None:
            self.log.append((self.name, "import"))
            if self.name == "first":
                self.name = "once"
                fgraph.attach_feature(Brings(self.log, "second"))

    graph = FunctionGraph([x], [pt.exp(x) + 1], clone=False)
    plain = Logs(log, "plain")
    first = Brings(log, "first")
    for feature in (plain, first):
        graph.attach_feature(feature)
    steps = [pt.sin(x), pt.cos(x), pt.tan(x), pt.sinh(x), pt.cosh(x)]

    def step() -> None:
        graph.replace(graph.outputs[0].owner.inputs[0], steps.pop(0), reason="step")

    step()
    assert log == [
        ("first", "import"), ("second", "import"), ("plain", "change"), ("once", "change"),
        ("second", "change"),
    ]  # fmt: skip
    log.clear()
    plain.on_import = lambda *args: log.append("own")  # type: ignore[method-assign]
    step()
    assert log[0] == "own"
    log.clear()
    graph.remove_feature(first)
    step()
    assert log == ["own", ("second", "import"), ("plain", "change"), ("second", "change")]
    log.clear()
    with mock.patch.object(Logs, "on_prune", return_value=None) as on_prune:
        step()
    assert on_prune.call_count == 2
    reference = weakref.ref(plain)
    graph.remove_feature(plain)
    graph.execute_callbacks_times.clear()
    del plain, feature, first
    gc.collect()
    assert reference() is None
    for again in (pickle.loads(pickle.dumps(FunctionGraph([x], [pt.exp(x)]))), graph.clone()):
        again.replace(again.outputs[0], pt.sin(again.inputs[0]))
        assert again.outputs[0].owner.op == pt.sin
