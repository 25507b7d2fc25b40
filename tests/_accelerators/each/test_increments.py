"""Increments that are strung together in one edit: as if each step had been taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.aliasing import Supervisor
from pytensor.compile.mode import Mode, optdb
from pytensor.graph.basic import Variable
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.features import Feature, PreserveVariableAttributes, ReplaceValidate
from pytensor.graph.fg import FunctionGraph, Output
from pytensor.graph.rewriting.basic import WalkingGraphRewriter
from pytensor.tensor.rewriting.shape import ShapeFeature

import pytensor_fuse
from pytensor_fuse import freeze
from pytensor_fuse._merging.feature import LazyMergeFeature
from support import graphs
from support.accelerated import Names
from support.switching import switched

if not pytensor_fuse.status()["accelerators"].parts["increments"].is_on:
    pytest.skip("off in this PyTensor", allow_module_level=True)

from pytensor_fuse._accelerators.increments import drop_in as serialized_increments

PASS: Any = optdb["pre_local_IncSubtensor_serialize"]


def graph_of(outputs: list[Variable], extra: Feature | None = None) -> FunctionGraph:
    """What the pass gets in a compile."""
    inputs = [v for v in pytensor.graph.traversal.graph_inputs(outputs) if type(v).__name__]
    inputs = list(dict.fromkeys(v for v in inputs if not hasattr(v, "data")))
    fgraph = FunctionGraph(inputs, outputs, clone=True)
    for feature in (
        ReplaceValidate(),
        Supervisor(fgraph.inputs),
        PreserveVariableAttributes(),
        LazyMergeFeature(),
        ShapeFeature(),
        DestroyHandler(),
    ):
        fgraph.attach_feature(feature)
    fgraph.merge_feature.merge()  # type: ignore[attr-defined]
    if extra is not None:
        fgraph.attach_feature(extra)
    return fgraph


def seen(fgraph: FunctionGraph) -> dict[str, Any]:
    """All that can be told of a graph and its features, in names that do not hang on addresses."""
    names = Names()
    order = fgraph.toposort()
    nodes = [
        (
            names.node(node),
            [names.variable(v) for v in node.inputs],
            [(str(v.type), v.name, vars(v.tag).get("trace")) for v in node.outputs],
            vars(node.tag).get("imported_by"),
        )
        for node in order
    ]
    variables = [*fgraph.inputs, *(v for node in order for v in node.outputs)]
    handler = fgraph.destroy_handler  # type: ignore[attr-defined]
    pending = fgraph.merge_feature.merger.pending  # type: ignore[attr-defined]
    known = set(order) | {n for v in variables for n, _ in fgraph.clients[v]}
    clients = [[(names.node(n), i) for n, i in fgraph.clients[v]] for v in variables]
    assert fgraph.apply_nodes == set(order)
    assert set(variables) <= fgraph.variables
    leaves = dict.fromkeys(v for node in order for v in node.inputs)
    for variable in variables:
        leaves.pop(variable, None)
    assert fgraph.variables == {*variables, *leaves}
    fgraph.check_integrity()
    return {
        "nodes": nodes,
        "clients": clients,
        "leaves": [[(names.node(n), i) for n, i in fgraph.clients[v]] for v in leaves],
        "outputs": [names.variable(v) for v in fgraph.outputs],
        "handler": [
            [(names.node(n), c) for n, c in handler.clients.get(v, {}).items()] for v in variables
        ],
        "apps": len(handler.debug_all_apps),
        "pending": [names.node(node) for node in pending if node in known],
        "digest": freeze(fgraph).digest,
        "order": [names.node(node) for node in order],
    }


class Counts(Feature):
    """A feature of somebody else's."""

    def __init__(self) -> None:
        self.n_imports = 0

    def on_import(self, fgraph: FunctionGraph, node: Any, reason: Any) -> None:
        self.n_imports += 1


def both(outputs: list[Variable], expect_steps: bool | None = None) -> int:
    """Compare the graph and the profile with PyTensor's; return how many steps that takes."""
    ours, stock = graph_of(outputs), graph_of(outputs)
    # As while PyTensor compiles.
    with pytensor.config.change_flags(traceback__limit=0):
        with switched(accelerators=["increments"]):
            assert "apply" in vars(PASS)
            assert serialized_increments._may_skip_steps(PASS, ours)
            profile = PASS.apply(ours)
        with switched(accelerators=False):
            assert "apply" not in vars(PASS)
            expected = PASS.apply(stock)
    assert profile[:4] == expected[:4]
    found, wanted = seen(ours), seen(stock)
    for key, value in wanted.items():
        assert found[key] == value, key
    n_steps: int = profile[1]
    if expect_steps is not None:
        assert bool(n_steps) == expect_steps
    return n_steps


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_gradients_of_elements(n: int) -> None:
    fgraph = graphs.large_fuseable_graph(n)
    assert both(fgraph.outputs) == n * (n - 1) // 2


# Random sums of increments ----------------------------------------------------------------

numbers = st.integers(0, 30)


@given(program=st.lists(st.tuples(numbers, numbers, numbers, numbers), min_size=1, max_size=14))
def test_random_sums(program: list[tuple[int, int, int, int]]) -> None:
    x, y = pt.vectors("x", "y")
    i, s = pt.lscalar("i"), pt.scalar("s")
    zeros = pt.zeros_like(x)
    made = [x, zeros, zeros[::-1], y]
    for kind, a, b, c in program:
        left, right, third = (made[-1 - k % len(made)] for k in (a, b, c))
        match kind % 9:
            case 0 | 1:
                made.append(pt.inc_subtensor(left[b % 3], s * c))
            case 2:
                made.append(pt.inc_subtensor(left[i], right[c % 2]))
            case 3:
                made.append(pt.set_subtensor(left[1:], 2.0))
            case 4:
                made.append(pt.inc_subtensor(left[[0, b % 2]], 1.0))
            case 5:
                made.append(pt.add(left, right, third))
            case 6:
                made.append(pt.exp(left) if c % 4 == 0 else pt.inc_subtensor(left[:2], third[:2]))
            case _:
                made.append(left + right)
    both([made[-1], *made[4 : -1 : 1 + program[0][0] % 5]])


# What it must not touch -------------------------------------------------------------------


def zeros_and(n: int) -> tuple[Any, list[Any]]:
    x = pt.vector("x")
    return x, [pt.inc_subtensor(pt.zeros_like(x)[k], x[k] * 2) for k in range(n)]


def test_increments_with_other_readers_stay() -> None:
    _, (a, b, c) = zeros_and(3)
    assert both([a + b, pt.exp(b), a + c, c * 2]) == 0
    assert both([a + b + c, pt.exp(b)]) > 0


def test_an_increment_that_is_added_twice_stays() -> None:
    _, (a, b) = zeros_and(2)
    both([a + a + b])
    assert both([a + a]) == 0


def test_types_that_differ_are_left_to_pytensor() -> None:
    x = pt.vector("x")
    a = pt.inc_subtensor(pt.zeros(3)[0], x[0])
    b = pt.inc_subtensor(pt.zeros_like(x)[1], x[1])
    c = pt.inc_subtensor(pt.zeros(1)[0], x[1])
    both([a + b, pt.add(c, b, x)])


def test_names_and_shapes_are_left_to_pytensor() -> None:
    _, (a, b, c) = zeros_and(3)
    total = a + b
    total.name = "named"
    assert both([total + c]) > 0
    total = a + b
    assert both([total + c, total.shape[0]]) > 0


def test_matrices_and_many_at_once() -> None:
    m, v = pt.matrix("m"), pt.vector("v")
    parts = [pt.inc_subtensor(pt.zeros_like(m)[k, 1:], v[1:]) for k in range(4)]
    rows = [pt.inc_subtensor(pt.zeros_like(m)[[k, 0]], v) for k in range(3)]
    assert both([pt.add(*parts, m, *rows), m * 2], True) > 0


def test_values_are_the_same() -> None:
    x = pt.vector("x")
    cost = sum(pt.exp(x[k] * k).sum() for k in range(7))
    f = pytensor.function([x], pt.grad(cost, x), mode=Mode(linker="py", optimizer="fast_run"))
    value = np.linspace(0, 1, 7)
    np.testing.assert_allclose(f(value), np.arange(7) * np.exp(value * np.arange(7)))


# Who listens is told of each step ---------------------------------------------------------


def test_other_features_hear_of_each_step() -> None:
    outputs = graphs.large_fuseable_graph(6).outputs
    counts = []
    for on in (False, True):
        listens = Counts()
        fgraph = graph_of(outputs, listens)
        with switched(accelerators=on):
            PASS.apply(fgraph)
        counts.append(listens.n_imports)
    assert counts[0] == counts[1] > 6 * 5 // 2


@pytest.mark.parametrize(
    "flags",
    [{"optimizer_verbose": True}, {"traceback__compile_limit": 2, "traceback__limit": 2}],
    ids=["verbose", "traces"],
)
def test_options_that_show_each_step(flags: dict[str, Any], capsys: Any) -> None:
    fgraph = graph_of(graphs.large_fuseable_graph(4).outputs)
    with switched(accelerators=True), pytensor.config.change_flags(**flags):
        assert not serialized_increments._may_skip_steps(PASS, fgraph)
        assert PASS.apply(fgraph)[1] == 6


def test_graphs_with_methods_of_their_own() -> None:
    fgraph = graph_of(graphs.large_fuseable_graph(4).outputs)
    replaced = []

    def change(*args: Any, **kwargs: Any) -> None:
        replaced.append(args)
        FunctionGraph.change_node_input(fgraph, *args, **kwargs)

    fgraph.change_node_input = change  # type: ignore[method-assign]
    with switched(accelerators=True):
        PASS.apply(fgraph)
    assert len(replaced) >= 6


def test_clients_that_were_written_into_are_left_to_pytensor() -> None:
    _, (a, b) = zeros_and(2)
    fgraph = graph_of([a + b])
    total = fgraph.outputs[0].owner
    fgraph.clients[total.inputs[0]].append((total, 1))
    steps = serialized_increments._Steps(fgraph)
    with pytest.raises(serialized_increments._UnknownError):
        steps.take(list(fgraph.toposort()))


def test_a_graph_that_overwrites_is_left_to_pytensor() -> None:
    _, (a, b) = zeros_and(2)
    x = pt.vector("x")
    over = pt.inc_subtensor(pt.exp(x)[0], 2.0, inplace=True)
    fgraph = graph_of([a + b, over])
    assert not serialized_increments._may_skip_steps(PASS, fgraph)
    assert type(PASS) is WalkingGraphRewriter
    assert not any(isinstance(n.op, Output) for n in fgraph.apply_nodes)
