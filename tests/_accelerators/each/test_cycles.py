"""Cycles are found where PyTensor finds them, whatever has changed since it last looked."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.graph import destroyhandler
from pytensor.graph.basic import Apply
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.features import ReplaceValidate
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.utils import InconsistencyError
from pytensor.tensor.type import TensorType

from pytensor_fuse._accelerators.cycles import drop_in as cycles
from pytensor_fuse._accelerators.validation import drop_in as validation
from support.switching import switched


class Makes(Op):
    """Gives a vector, as it may be over the first input, or as a view of it."""

    __props__ = ("way",)

    def __init__(self, way: str) -> None:
        self.way = way
        if way == "over":
            self.destroy_map = {0: [0]}
        elif way == "view":
            self.view_map = {0: [0]}

    def make_node(self, *inputs: Any) -> Apply[Any]:
        return Apply(self, list(inputs), [TensorType("float64", (None,))()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        raise NotImplementedError


WAYS = [Makes("new"), Makes("over"), Makes("view")]
numbers = st.integers(0, 60)
programs = st.tuples(
    st.lists(st.tuples(st.integers(0, 8), numbers, numbers), min_size=2, max_size=9),
    st.lists(st.tuples(st.integers(0, 3), numbers, numbers, numbers), min_size=1, max_size=14),
)


def run(nodes: Any, edits: Any, accelerators: Any) -> list[Any]:
    """Make a graph and edit it; return what came of each edit."""
    x, y = pt.vectors("x", "y")
    made: list[Any] = [x, y]
    for way, a, b in nodes:
        # Most are made anew.
        op = WAYS[way] if way < 3 and len(made) > 3 else WAYS[0]
        made.append(op(made[-1 - a % len(made)], made[-1 - b % len(made)]))
    log: list[Any] = []
    with switched(accelerators=accelerators):
        fgraph = FunctionGraph([x, y], made[-2:], clone=False)
        fgraph.attach_feature(ReplaceValidate())
        handler = DestroyHandler()
        fgraph.attach_feature(handler)
        numbered = {id(v): str(k) for k, v in enumerate(made)}
        for kind, a, b, c in edits:
            variables = [v for v in made if v in fgraph.variables]
            target, left, right = (variables[k % len(variables)] for k in (a, b, c))
            if target.owner is None:
                continue
            if kind == 3:
                # That may close a circle.
                new = left
            else:
                new = WAYS[kind](*target.owner.inputs) if c % 3 else WAYS[kind](left, right)
                made.append(new)
                numbered[id(new)] = str(len(made))
            try:
                if c % 7 == 0:
                    fgraph.replace(target, new)
                    fgraph.validate()  # type: ignore[attr-defined]
                else:
                    fgraph.replace_all_validate([(target, new)], reason="x")  # type: ignore[attr-defined]
            except (InconsistencyError, ValueError, AssertionError, RecursionError) as error:
                log.append((type(error), str(error).partition("(")[0]))
                if c % 7 == 0:
                    break
            else:
                log.append("done")
                if destroyhandler._contains_cycle(fgraph, handler.orderings(fgraph)):
                    # Where nothing is overwritten PyTensor does not look.
                    assert not handler._destroying_apps
                    break
            log.append(
                [
                    (numbered[id(v)], [(numbered[id(n.outputs[0])], k) for n, k in readers.items()])
                    for v in made
                    if v in fgraph.variables and (readers := handler.clients[v])
                    if not any(isinstance(n, str) for n in readers)
                ]
            )
            if "Dependency" in str(log[-2]) and c % 7 == 0:
                break
    return log


@given(program=programs)
def test_the_same_is_refused(program: Any) -> None:
    expected = run(*program, False)
    assert run(*program, ["cycles"]) == expected
    assert run(*program, True) == expected


@given(
    nodes=st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8),
    changes=st.lists(st.tuples(numbers, numbers), max_size=2),
    waits=st.lists(st.tuples(numbers, numbers), max_size=6),
)
def test_there_is_a_cycle_where_pytensor_finds_one(nodes: Any, changes: Any, waits: Any) -> None:
    x, y = pt.vectors("x", "y")
    made: list[Any] = [x, y]
    for a, b in nodes:
        made.append(WAYS[0](made[-1 - a % len(made)], made[-1 - b % len(made)]))
    fgraph = FunctionGraph([x, y], made[-2:], clone=False)
    inside = [v for v in made[2:] if v in fgraph.variables]
    for a, b in changes:
        if inside:
            node = inside[a % len(inside)].owner
            fgraph.change_node_input(node, b % 2, inside[b % len(inside)])
            inside = [v for v in inside if v in fgraph.variables]
    # Some of them wait for what is not in the graph.
    nodes_made = [v.owner for v in made[2:]]
    orderings: dict[Any, Any] = {}
    for a, b in waits:
        waiting, other = (nodes_made[k % len(nodes_made)] for k in (a, b))
        orderings.setdefault(waiting, set()).add(other)
    with switched(accelerators=False):
        expected = destroyhandler._contains_cycle(fgraph, orderings)
    assert validation.contains_cycle(fgraph, orderings) is expected


def chain(n: int) -> tuple[FunctionGraph, list[Any]]:
    x = pt.vector("x")
    made = [WAYS[0](x)]
    for _ in range(n):
        made.append(WAYS[0](made[-1]))
    fgraph = FunctionGraph([x], [made[-1]], clone=False)
    fgraph.attach_feature(ReplaceValidate())
    fgraph.attach_feature(DestroyHandler())
    return fgraph, made


def edit(fgraph: FunctionGraph, old: Any) -> Any:
    new = WAYS[1](*old.owner.inputs)
    fgraph.replace_all_validate([(old, new)], reason="x")  # type: ignore[attr-defined]
    return new


def test_the_graph_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    n_orders = []
    order = cycles.node_positions
    monkeypatch.setattr(cycles, "node_positions", lambda *args: n_orders.append(1) or order(*args))
    with switched(accelerators=["cycles"]):
        fgraph, made = chain(40)
        for old in made[1:]:
            edit(fgraph, old)
    assert len(n_orders) == 1


def test_what_changed_while_it_was_off_is_seen() -> None:
    fgraph, made = chain(6)
    with switched(accelerators=["cycles"]):
        edit(fgraph, made[6])
        assert hasattr(fgraph.destroy_handler, cycles._POSITIONS)  # type: ignore[attr-defined]
    with switched(accelerators=False):
        node = made[2].owner
        fgraph.change_node_input(node, 0, made[4])
    with (
        switched(accelerators=["cycles"]),
        pytest.raises(InconsistencyError, match="cycles"),
    ):
        fgraph.validate()  # type: ignore[attr-defined]


def test_copies_find_out_for_themselves() -> None:
    with switched(accelerators=["cycles"]):
        fgraph, made = chain(6)
        edit(fgraph, made[1])
        for copied in (copy.deepcopy(fgraph), pickle.loads(pickle.dumps(fgraph))):
            positions = getattr(copied.destroy_handler, cycles._POSITIONS)
            assert positions.since is None
            node = copied.toposort()[-2]
            new = WAYS[1](*node.inputs)
            copied.replace_all_validate([(node.outputs[0], new)], reason="x")
            assert positions.since is not None


def test_a_cycle_without_anything_overwritten_is_not_looked_for() -> None:
    for on in (False, True):
        with switched(accelerators=on):
            fgraph, made = chain(4)
            fgraph.change_node_input(made[1].owner, 0, made[3])
            fgraph.validate()  # type: ignore[attr-defined]
