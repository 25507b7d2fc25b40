"""Records of the events of a compilation, for the comparison of two compilations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytensor
import pytest
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.features import AlreadyThere, Feature
from pytensor.graph.fg import FunctionGraph, Output
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.graph.traversal import toposort

from pytensor_fuse import freeze
from support.switching import switched

both = pytest.mark.parametrize("on", [False, True], ids=["stock", "accelerated"])
"""Try a test without the accelerators, then with them: see the fixture `switch_accelerators`."""


class Names:
    """Names of nodes and variables: what they are, and the order of their appearance."""

    def __init__(self) -> None:
        self._numbers: dict[int, tuple[int, Any]] = {}
        # An event names many nodes, and describing one is slow: the text of an op is generated each
        # time.
        self._nodes: dict[int, tuple[str, Any]] = {}

    def _number(self, thing: Any) -> int:
        return self._numbers.setdefault(id(thing), (len(self._numbers), thing))[0]

    def node(self, node: Any) -> str:
        if isinstance(node.op, Output):
            return f"output {node.op.idx}"
        name, op = self._nodes.get(id(node), ("", None))
        if op is not node.op:
            name = f"{self._number(node)}: {type(node.op).__name__} {node.op}"
            self._nodes[id(node)] = name, node.op
        return name

    def variable(self, var: Variable) -> str:
        if var.owner is not None:
            return f"{self.node(var.owner)}[{var.index}] {var.type} {var.name}"
        if isinstance(var, Constant):
            return f"constant {var.type} {var.data!r:.300} {var.name}"
        return f"{self._number(var)} {var.type} {var.name}"


class Recorder(Feature):
    """Writes down all events with their arguments."""

    def __init__(self) -> None:
        self.names = Names()
        self.events: list[tuple[Any, ...]] = []

    def clone(self) -> Feature:
        return _Leaves()

    def on_attach(self, fgraph: FunctionGraph) -> None:
        for var in fgraph.inputs:
            self.events.append(("input", self.names.variable(var)))
        for node in toposort(fgraph.outputs):
            self._see(fgraph, node)

    def _see(self, fgraph: FunctionGraph, node: Any) -> None:
        inputs = [self.names.variable(v) for v in node.inputs]
        outputs = [self.names.variable(v) for v in node.outputs]
        # A feature may act on the state at the time of the event.
        clients = [len(fgraph.clients[v]) for v in node.inputs]
        tags = [vars(node.tag).get(key) for key in ("imported_by", "removed_by")]
        self.events.append((self.names.node(node), inputs, outputs, clients, repr(tags)))

    def on_import(self, fgraph: FunctionGraph, node: Any, reason: Any) -> None:
        self.events.append(("import", str(reason), type(reason).__name__, len(fgraph.variables)))
        self._see(fgraph, node)

    def on_prune(self, fgraph: FunctionGraph, node: Any, reason: Any) -> None:
        self.events.append(("prune", str(reason), type(reason).__name__, len(fgraph.variables)))
        self._see(fgraph, node)

    def on_change_input(
        self, fgraph: FunctionGraph, node: Any, i: int, var: Any, new_var: Any, reason: Any = None
    ) -> None:
        known = [self.names.variable(v) for v in (var, new_var)]
        self.events.append(("change", self.names.node(node), i, *known, str(reason)))

    def on_validate(self, fgraph: FunctionGraph) -> None:
        self.events.append(("validate", len(fgraph.apply_nodes)))


class _Leaves(Feature):
    def on_attach(self, fgraph: FunctionGraph) -> None:
        raise AlreadyThere


class _Attach(GraphRewriter):
    """A pass that attaches a recorder, before all others."""

    def __init__(self) -> None:
        super().__init__()
        self.recorders: list[Recorder] = []

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        recorder = Recorder()
        self.recorders.append(recorder)
        fgraph.attach_feature(recorder)

    def apply(self, fgraph: FunctionGraph) -> None:
        pass


def compile_and_record(
    build: Callable[[], tuple[Sequence[Any], Sequence[Variable], dict[str, Any]]],
    accelerators: Any,
    *,
    linker: str = "py",
    optimizer: str = "fast_run",
) -> dict[str, Any]:
    """Compile the graph that ``build`` makes, and return everything visible from outside."""
    with switched(accelerators=accelerators):
        inputs, outputs, options = build()
        attach = _Attach()
        mode = Mode(linker=linker, optimizer=optimizer).register((attach, -1e6))
        try:
            function = pytensor.function(
                list(inputs), list(outputs), mode=mode, on_unused_input="ignore", **options
            )
        except Exception as error:
            # The line that made a variable differs between the tests.
            return {
                "error": (type(error), str(error).partition("Backtrace")[0]),
                "events": _events(attach),
            }
        fgraph = function.maker.fgraph
        order = fgraph.toposort()
    names = Names()
    leaves = [names.variable(v) for v in fgraph.inputs]
    nodes = [
        (
            names.node(node),
            [names.variable(v) for v in node.inputs],
            [names.variable(v) for v in node.outputs],
            node.op.destroy_map,
            node.op.view_map,
        )
        for node in order
    ]
    clients = [
        [(names.node(client), i) for client, i in fgraph.clients[v]]
        for node in order
        for v in node.outputs
    ]
    found = {
        "leaves": leaves,
        "order": nodes,
        "clients": clients,
        "outputs": [names.variable(v) for v in fgraph.outputs],
        "events": _events(attach),
        "digest": None,
    }
    try:
        found["digest"] = freeze(fgraph).digest
    except Exception as error:
        found["digest"] = (type(error), str(error))
    return found


def _events(attach: _Attach) -> list[list[tuple[Any, ...]]]:
    """Return the recorded events, sorted for inner graphs, whose order depends on addresses."""
    logs = [recorder.events for recorder in attach.recorders]
    return [*logs[:1], *sorted(logs[1:], key=repr)]


def assert_same_compiles(
    build: Callable[[], tuple[Sequence[Any], Sequence[Variable], dict[str, Any]]],
    accelerators: Any,
    expected: dict[str, Any] | None = None,
    *,
    fails: bool | None = None,
    **options: Any,
) -> None:
    """Fail unless a compilation with ``accelerators`` is, step by step, the same as without.

    Whether it may end in an error can be stated; it must then be the same error.
    """
    if expected is None:
        expected = compile_and_record(build, False, **options)
    if fails is not None:
        assert ("error" in expected) == fails, expected.get("error")
    found = compile_and_record(build, accelerators, **options)
    assert found.keys() == expected.keys(), (found.get("error"), expected.get("error"))
    for key, value in expected.items():
        if key == "events":
            for ours, stock in zip(found[key], value, strict=True):
                for number, (a, b) in enumerate(zip(ours, stock, strict=False)):
                    assert a == b, f"event {number}"
                assert len(ours) == len(stock)
        else:
            assert found[key] == value, key
