"""What is noted as unknown at once is what PyTensor finds out by asking every rule."""

from __future__ import annotations

from contextlib import suppress
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

if not pytensor_fuse.status()["accelerators"].parts["blank_assumptions"].is_on:
    pytest.skip("off in this PyTensor", allow_module_level=True)

from pytensor.assumptions import core
from pytensor.assumptions.core import AssumptionFeature, FactState

from pytensor_fuse._accelerators.blank_assumptions import drop_in as blank_assumptions

from .asked import asked

numbers = st.integers(0, 77)
steps = st.lists(st.tuples(numbers, numbers, numbers), max_size=16)


def graph(program: list[tuple[int, int, int]]) -> tuple[FunctionGraph, list[Any]]:
    """A graph of matrices, most of which nothing is known of, and its variables."""
    x, y = pt.matrices("x", "y")
    s, v, row, one = pt.scalar("s"), pt.vector("v"), pt.row("row"), pt.tensor("one", shape=(1, 1))
    leaves = [x, y, s, v, row, one]
    made: list[Any] = [x, y]
    for kind, a, b in program:
        left, right = made[-1 - a % len(made)], made[-1 - b % len(made)]
        # Known lengths may not fit.
        with suppress(ValueError):
            match kind % 26:
                case 0 | 1 | 2:
                    made.append(left.T)
                case 3:
                    made.append(left + right.T)
                case 4:
                    made.append(left * right)
                case 5:
                    made.append((pt.exp, pt.sin, pt.sqr)[b % 3](left))
                case 6:
                    made.append(left * (s, v, row, one)[b % 4])
                case 7:
                    made.append(left + (2.0, 0.0, s, one)[b % 4])
                case 8:
                    made.append(pt.pow(left, (2.0, 0.5, right)[b % 3]))
                case 9:
                    made.append(left / (right if b % 2 else 3.0))
                case 10:
                    # The same along both axes.
                    made.append((s + one) if b % 2 else pt.exp(one))
                case 11:
                    made.append(left[None, :, :][0] if b % 2 else left[None, :, :].sum(0))
                case 12:
                    made.append(left + np.diag([1.0, 2.0, 0.5]) * (b % 2))
                case 13:
                    made.append(pt.eye(3) * left)
                case 14:
                    made.append(left @ right)
                case 15:
                    made.append(pt.linalg.solve(left, right, assume_a=("sym", "pos", "gen")[b % 3]))
                case 16:
                    made.append(left @ left.T)
                case 17:
                    made.append(pt.linalg.cholesky(left))
                case 18:
                    made.append(pt.alloc(s, 3, 3) if b % 2 else pt.diag(v))
                case 19:
                    write = pt.set_subtensor if b % 2 else pt.inc_subtensor
                    made.append(write(left[:1] if b % 3 else left[:], right[0]))
                case 20:
                    made.append(left.reshape((3, 3)) if b % 2 else left.ravel().reshape((3, 3)))
                case 21:
                    made.append(pt.linalg.solve_triangular(left, right, lower=bool(b % 2)))
                case 22:
                    rows = pt.arange(left.shape[0])
                    made.append((rows[:, None] >= rows) * right if b % 2 else rows[:, None] / 2.0)
                case 23:
                    made.append(pt.cast(pt.eq(left, 1.0), "float64") * (2.0 * s))
                case 24:
                    made.append(pt.set_subtensor(left[np.arange(3), np.arange(3)], 0.5))
                case _:
                    made.append(left - right)
    fgraph = FunctionGraph(leaves, made[-3:], clone=False)
    nodes = list(toposort(fgraph.outputs))
    variables = [v for node in nodes for v in node.outputs if v.type.ndim == 2]
    return fgraph, [x, y, *variables]


def answers(program: Any, queries: Any) -> list[Any]:
    """What is answered as the graph changes, and what is kept each time, in any order."""
    fgraph, variables = graph(program)
    # Many have the same text.
    nodes = toposort(fgraph.outputs)
    met = dict.fromkeys(v for node in nodes for v in (*node.inputs, *node.outputs))
    names = {v: number for number, v in enumerate(met)}
    # What has been asked until a conflict depends on the order.
    found = asked(fgraph, variables, names, queries, "check", goes_on=False)
    return [(dict(one[0]), *one[1:]) if isinstance(one, tuple) else one for one in found]


@given(program=steps, queries=steps)
def test_the_same_is_known(program: Any, queries: Any) -> None:
    with switched(accelerators=False):
        expected = answers(program, queries)
    for accelerators in (["blank_assumptions"], True):
        with switched(accelerators=accelerators):
            assert answers(program, queries) == expected


def chain(n: int) -> tuple[FunctionGraph, Any]:
    x = pt.matrix("x")
    out: Any = x
    for _ in range(n):
        out = pt.sin(out.T) + pt.cos(out)
    return FunctionGraph([x], [out], clone=False), out


def test_what_nothing_is_known_of_is_noted_at_once() -> None:
    fgraph, out = chain(8)
    feature = AssumptionFeature()
    fgraph.attach_feature(feature)
    names = [
        "symmetric",
        *("diagonal", "lower_triangular", "upper_triangular", "tridiagonal", "positive_definite"),
    ]
    blank_assumptions.note_unknowns(feature, out, core.KEY_REGISTRY["symmetric"])
    variables = {v for node in fgraph.toposort() for v in (*node.inputs, *node.outputs)}
    assert feature.cache == {
        (v, core.KEY_REGISTRY[name]): FactState.UNKNOWN for v in variables for name in names
    }


@pytest.mark.parametrize("when", ["before", "after"])
def test_rules_of_others_are_asked(when: str) -> None:
    key = core.KEY_REGISTRY["symmetric"]
    fgraph, out = chain(2)
    entry = key, type(out.owner.op)
    rules = core.ASSUMPTION_INFER_REGISTRY[entry]
    with switched(accelerators=["blank_assumptions"]):
        if when == "after":
            other, last = chain(2)
            feature = AssumptionFeature()
            other.attach_feature(feature)
            assert not feature.check(last, key)
        # Into the list that is there, which nothing counts.
        rules.append(lambda *args: [FactState.TRUE])
        try:
            feature = AssumptionFeature()
            fgraph.attach_feature(feature)
            assert feature.check(out, key)
        finally:
            rules.pop()
