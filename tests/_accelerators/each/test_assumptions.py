"""What is inferred of variables, and what is kept of it, is what PyTensor infers and keeps."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.traversal import toposort

import pytensor_fuse
from support.switching import switched

if not pytensor_fuse.status()["accelerators"].parts["assumptions"].is_on:
    pytest.skip("off in this PyTensor", allow_module_level=True)

from pytensor.assumptions import core
from pytensor.assumptions.core import AssumptionFeature

from pytensor_fuse._accelerators.assumptions import drop_in as quick_assumptions

from .asked import KEYS, asked

numbers = st.integers(0, 40)
steps = st.lists(st.tuples(numbers, numbers, numbers), max_size=16)


def graph(program: list[tuple[int, int, int]]) -> tuple[FunctionGraph, list[Any]]:
    """A graph of matrices, and its variables."""
    x, y = pt.matrices("x", "y")
    made: list[Any] = [x, y, pt.eye(3), pt.constant(np.diag([1.0, 2.0, 0.5]))]
    for kind, a, b in program:
        left, right = made[-1 - a % len(made)], made[-1 - b % len(made)]
        match kind % 12:
            case 0 | 1:
                made.append(left.T)
            case 2:
                made.append(left + left.T)
            case 3:
                made.append(left * right)
            case 4:
                made.append(left @ right)
            case 5:
                made.append(pt.linalg.inv(left))
            case 6:
                made.append(pt.linalg.solve(left, right, assume_a=("sym", "pos", "gen")[b % 3]))
            case 7:
                made.append(pt.exp(left) if b % 2 else pt.sin(left))
            case 8:
                made.append(pt.diag(pt.diag(left)))
            case 9:
                made.append(pt.linalg.cholesky(left))
            case 10:
                made.append(left - 2.0 * right)
            case _:
                made.append(left @ left.T)
    fgraph = FunctionGraph([x, y], made[-3:], clone=False)
    nodes = list(toposort(fgraph.outputs))
    return fgraph, [*fgraph.inputs, *(v for node in nodes for v in node.outputs)]


def answers(program: Any, queries: Any) -> list[Any]:
    """What is answered as the graph changes, and what is kept each time, in its order."""
    fgraph, variables = graph(program)
    names = {v: number for number, v in enumerate(variables)}
    return asked(fgraph, variables, names, queries, "get")


@given(program=steps, queries=steps)
def test_the_same_is_known(program: Any, queries: Any) -> None:
    with switched(accelerators=False):
        expected = answers(program, queries)
    with switched(accelerators=["assumptions"]):
        assert answers(program, queries) == expected


def test_rules_that_come_later_are_asked() -> None:
    with switched(accelerators=["assumptions"]):
        fgraph, variables = graph([(7, 0, 1)])
        var = variables[-1]
        # Keys, and what follows from what, before and after there is something.
        first, second = (core.AssumptionKey(f"test_of_ours_{i}") for i in (1, 2))
        try:
            feature = AssumptionFeature()
            fgraph.attach_feature(feature)
            assert not feature.check(var, second)
            core.register_implies(first, second)
            core.register_assumption(first, type(var.owner.op))(lambda *args: [core.FactState.TRUE])
            feature.cache.clear()
            assert feature.check(var, second)
        finally:
            core.IMPLIES.pop(first, None)
            for registry in (core.ASSUMPTION_INFER_REGISTRY,):
                for entry in [e for e in registry if e[0] in (first, second)]:
                    del registry[entry]
            for key in (first, second):
                core.KEY_REGISTRY.pop(key.name)
            quick_assumptions._rules = quick_assumptions._Rules(())


def test_a_feature_with_answers_of_its_own_is_asked() -> None:
    asked = []

    class Asked(AssumptionFeature):
        def get(self, var: Any, key: Any) -> Any:
            asked.append((var, key.name))
            return super().get(var, key)

    logs = []
    for accelerators in ([], ["assumptions"]):
        fgraph, variables = graph([(0, 0, 1), (3, 0, 2), (11, 0, 1)])
        names = {v: number for number, v in enumerate(variables)}
        asked.clear()
        with switched(accelerators=accelerators):
            feature = Asked()
            fgraph.attach_feature(feature)
            for key in KEYS:
                feature.get(variables[-1], key)
        logs.append([(names.get(v, str(v)), key) for v, key in asked])
    assert logs[0] == logs[1]
    assert len(logs[0]) > 20


def test_equal_keys_hash_alike() -> None:
    """Also those that are made while it is on, or off, or unpickled."""
    key = core.DIAGONAL
    with switched(accelerators=False):
        expected = hash(key)
        others = [core.AssumptionKey(key.name, short_name=key.short_name)]
    with switched(accelerators=["assumptions"]):
        others += [core.AssumptionKey(key.name, short_name=key.short_name)]
        others += [pickle.loads(pickle.dumps(key)), copy.deepcopy(key)]
        assert [hash(other) for other in others] == [expected] * 4
        assert [hash(other) for other in others] == [expected] * 4
        assert others == [key] * 4
        assert {key: 1}[others[0]] == 1
    assert hash(key) == expected
