"""Twins: a graph that differs from a kept one in a single thing is compiled as if none was kept.

Each twin is compiled right after the other, with the cache on; the oracle is a compilation without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.io import Out
from pytensor.compile.ops import FromFunctionOp
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FrozenFunctionGraph
from pytensor.graph.op import Op
from pytensor.scan.op import Scan
from pytensor.tensor.elemwise import Elemwise

from _cache.twins import FAST, TWINS, with_mode, with_step
from pytensor_fuse import enabled
from pytensor_fuse._cache.store.memory import memory
from pytensor_fuse._joins.thresholds import DEFAULT_THRESHOLDS
from pytensor_fuse.cache import info as cache_info
from support.cached import (
    PYTHON,
    assert_same_graphs,
    assert_same_results,
    compiled,
    registered,
)
from support.joins.outcomes import NO_THRESHOLDS, join_thresholds
from support.random_graphs.building import Program, build
from support.random_graphs.strategies import any_programs


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
def test_twins(name: str, turned: bool) -> None:
    first, second = TWINS[name][::-1] if turned else TWINS[name]
    with np.errstate(all="ignore"):
        first()
        twin, values = second()
        with enabled(False, "cache"):
            fresh, _ = second()
        assert_same_graphs(twin, fresh)
        assert_same_results(twin, fresh, values)
        # The first is still there, and is itself.
        again, values = first()
        with enabled(False, "cache"):
            fresh, _ = first()
        assert_same_graphs(again, fresh)
        assert_same_results(again, fresh, values)
    # But for graphs with ops of others, which are not kept at all.
    assert cache_info().hits >= 1 or name in FOREIGN


# Of an op that is neither PyTensor's nor PyMC's.
FOREIGN = {"a property", "the sign of a property"}

# The inner graphs of ops can change in PyTensor 3.0, so these are not kept there either.
INNER_GRAPHS_CHANGE = not hasattr(FrozenFunctionGraph, "from_io")
if INNER_GRAPHS_CHANGE:
    FOREIGN |= {name for name in TWINS if name.endswith(("inner graph", "a step", "to scan"))}

# States of one class are of one type, whatever drives them.
SAME = {"the kind of random state"}


def test_the_thresholds_of_joins() -> None:
    def make() -> Any:
        x, y = pt.vectors("x", "y")
        return compiled([x, y], [pt.concatenate([x * 2 + 1, y])])

    for thresholds in (DEFAULT_THRESHOLDS, NO_THRESHOLDS, DEFAULT_THRESHOLDS):
        with join_thresholds(thresholds):
            function = make()
            with enabled(False, "cache"):
                assert_same_graphs(function, make())
    assert (cache_info().misses, cache_info().hits) == (2, 1)


def test_the_effort_of_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    make = with_mode(FAST)
    make()
    monkeypatch.setenv("PYTENSOR_FUSE_EFFORT", "optimal")
    make()
    make()
    assert (cache_info().misses, cache_info().hits) == (2, 1)


@pytest.mark.parametrize("name", TWINS)
def test_twins_are_told_apart(name: str) -> None:
    first, second = TWINS[name]
    with np.errstate(all="ignore"):
        first()
        second()
    if name not in SAME:
        assert cache_info().hits == 0
        assert cache_info().misses == (0 if name in FOREIGN else 2)


class Attributed(Op):
    """An op that does not compare what it computes with."""

    __props__ = ()

    def __init__(self, data: Any) -> None:
        self.data = data

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = inputs[0] + self.data


class TimesTwo(ps.UnaryScalarOp):
    """A scalar op of somebody's."""

    def impl(self, x: Any) -> Any:
        return 2 * x


def of_vector(change: Callable[[Any], Any]) -> Any:
    x = pt.vector("x")
    return compiled([x], [change(x)])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (Attributed(1.0), "is an op of _cache.test_twins"),
        (Elemwise(TimesTwo(ps.upgrade_to_float)), "is an op of _cache.test_twins"),
        (Elemwise(ps.exp, nfunc_spec=("log", 1, 1)), "has a function of its own"),
        (
            FromFunctionOp(lambda x: x + 1, [pt.dvector], [pt.dvector], None),
            "calls a function of _cache.test_twins",
        ),
        (OpFromGraph([v := pt.vector()], [Attributed(1.0)(v)]), "is an op of _cache.test_twins"),
    ],
    ids=["attribute", "scalar", "ufunc", "function", "inner"],
)
def test_what_ops_do_not_compare(change: Any, why: str) -> None:
    for _ in range(2):
        of_vector(change)
    assert cache_info().entries == 0
    # An inner function, which is not kept either, says why of itself.
    if INNER_GRAPHS_CHANGE and isinstance(change, OpFromGraph):
        why = "has an inner graph that may be changed"
    assert any(why in reason for reason in cache_info().not_kept)


@pytest.mark.parametrize("tag", ["psd", "symmetric", "lower_triangular", "indestructible"])
@pytest.mark.parametrize("where", ["input", "inside"])
def test_notes_in_tags(tag: str, where: str) -> None:
    def make(noted: bool) -> Any:
        a = pt.matrix("a")
        factor = pt.exp(a)
        if noted:
            setattr((a if where == "input" else factor).tag, tag, True)
        return compiled([a], [pt.linalg.cholesky(factor @ factor.T), pt.linalg.inv(a)])

    for noted in (False, True, False):
        function = make(noted)
        with enabled(False, "cache"):
            assert_same_graphs(function, make(noted))
    assert cache_info().hits == 1
    assert any(f"has notes in its tag: {tag}" in reason for reason in cache_info().not_kept)


@pytest.mark.filterwarnings("ignore:The `mode` argument of `scan`:FutureWarning")
def test_the_mode_of_a_scan() -> None:
    for mode in (None, "FAST_COMPILE"):
        function, _ = with_step(pt.exp, mode=mode)()
        with enabled(False, "cache"):
            fresh, _ = with_step(pt.exp, mode=mode)()
        assert_same_graphs(function, fresh)


def test_arrays_that_are_written_to() -> None:
    buffer = np.array([1.0, 2.0, 4.0])

    def make(data: Any) -> Any:
        x = pt.vector("x")
        constant = pt.constant(data)
        return compiled([x], [x / constant, pt.cumsum(x) + pt.exp(constant)])

    make(buffer)
    before = buffer.copy()
    buffer[:] = 7.0
    function = make(before)
    assert cache_info().hits == 1
    results = function(np.ones(3))
    np.testing.assert_array_equal(results[0], [1.0, 0.5, 0.25])
    np.testing.assert_allclose(results[1], np.arange(1, 4) + np.exp(before))


@pytest.mark.filterwarnings("ignore:Cannot cache compiled function")
@pytest.mark.parametrize("mode", [PYTHON, "NUMBA"], ids=["python", "numba"])
def test_arrays_that_are_written_to_before_they_are_read(mode: Any) -> None:
    buffer = np.arange(1.0, 200_001.0)

    def make(data: Any) -> Any:
        x = pt.vector("x")
        return compiled([x], [x / data], mode=mode)

    make(buffer)(np.ones(200_000))
    before = buffer.copy()
    buffer[:] = 7.0
    np.testing.assert_array_equal(make(before)(np.ones(200_000))[0], 1 / before)


@pytest.mark.parametrize("change", [lambda c: c, pt.exp], ids=["given", "folded"])
def test_results_that_are_written_to(change: Any) -> None:
    def make() -> Any:
        return compiled([], [Out(change(pt.constant(np.array([1.0, 2.0]))), borrow=True)])

    expected = np.copy(make()()[0])
    for _ in range(3):
        [result] = make()()
        np.testing.assert_array_equal(result, expected)
        if result.flags.writeable:
            result[:] = 0


@pytest.mark.skipif(INNER_GRAPHS_CHANGE, reason="graphs with inner graphs are not kept here")
def test_inner_functions_are_not_shared() -> None:
    functions = [with_step(lambda one: one * 2)()[0] for _ in range(3)]
    assert cache_info().hits == 2
    ops = [n.op for f in functions for n in f.maker.fgraph.apply_nodes if isinstance(n.op, Scan)]
    assert len(ops) == 3
    for function in functions:
        function(np.arange(3.0))
    inner = [op._fn for op in ops]
    assert len(set(map(id, inner))) == 3
    kept = [op for _, e in memory.kept() for op in e.rewritten.ops if isinstance(op, Scan)]
    assert kept
    assert all(getattr(op, "_fn", None) is None for op in kept)


def test_constants_of_other_layouts_in_inner_graphs() -> None:
    data = np.random.default_rng(1).normal(size=(57, 57))
    for each in (data, np.asfortranarray(data)):
        made = with_inner_matrix(each)
        with enabled(False, "cache"):
            fresh = with_inner_matrix(each)
        values = np.random.default_rng(2).normal(size=57)
        np.testing.assert_array_equal(made(values), fresh(values))


def with_inner_matrix(data: Any) -> Any:
    x, inner = pt.vector("x"), pt.vector("inner")
    return compiled([x], OpFromGraph([inner], [pt.constant(data) @ inner])(x))


def test_a_rewriter_that_is_registered() -> None:
    def make() -> Any:
        x = pt.vector("x")
        return compiled([x], pt.sin(x) + 1)

    def sin_is_cos(fgraph: Any, node: Any) -> Any:
        return [pt.cos(*node.inputs)] if node.op == pt.sin else None

    plain = make()([0.0])
    with registered("sin_is_cos", sin_is_cos):
        np.testing.assert_array_equal(make()([0.0]), [2.0])
        make()
    assert cache_info().hits == 1
    np.testing.assert_array_equal(make()([0.0]), plain)
    assert cache_info().hits == 2


@given(any_programs(), st.integers(0, 3), st.integers(0, 30), st.integers(0, 12))
def test_random_twins(program: Program, what: int, at: int, value: int) -> None:
    """A program, and one that differs in one operand, one input, one output or one kind of step."""
    changed = vars(program).copy()
    if what == 0 and program.steps:
        at %= len(program.steps)
        step = list(program.steps[at])
        step[1 + value % 3] = value
        changed["steps"] = (*program.steps[:at], tuple(step), *program.steps[at + 1 :])
    elif what == 1 and program.steps:
        changed["steps"] = program.steps[:-1]
    elif what == 2:
        changed["outputs"] = (*program.outputs, value)
    else:
        changed["inputs"] = program.inputs[::-1]
    twin = Program(**changed)
    memory.clear()

    def make(of: Program) -> Any:
        fgraph = build(of).fgraph
        return compiled(list(fgraph.inputs), list(fgraph.outputs))

    make(program)
    function = make(twin)
    with enabled(False, "cache"):
        fresh = make(twin)
    assert_same_graphs(function, fresh)
    assert_same_results(function, fresh, build(twin).values)


def test_twins_by_linkers() -> None:
    def make(data: Any, mode: Any) -> Any:
        x = pt.vector("x")
        return compiled([x], [pt.exp(x) * data], mode=mode)

    for mode in ("CVM", "NUMBA", PYTHON):
        assert make(2.0, mode)([0.0])[0] == [2.0]
        assert make(3.0, mode)([0.0])[0] == [3.0]
        assert make(2.0, mode)([0.0])[0] == [2.0]
    assert (cache_info().misses, cache_info().hits) == (6, 3)
