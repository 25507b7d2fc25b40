"""Twins: a graph that differs from a kept one in a single thing is compiled as if none was kept.

Each twin is compiled right after the other, with the cache on; the oracle is a compilation without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.io import In, Out
from pytensor.compile.mode import Mode
from pytensor.compile.ops import FromFunctionOp
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FrozenFunctionGraph
from pytensor.graph.op import Op
from pytensor.scan.op import Scan
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type import TensorType

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
from support.strategies import Program, any_programs, build
from support.switching import switched

Made = tuple[Any, list[Any]]


def array(*values: float, dtype: str = "float64") -> np.ndarray:
    return np.array(values, dtype=dtype)


def with_constant(data: Any) -> Callable[[], Made]:
    def make() -> Made:
        x = pt.vector("x")
        constant = pt.constant(data)
        return compiled([x], [x / constant, pt.cumsum(x) + constant]), [array(1, 2, 3)]

    return make


def with_type(*types: Any) -> Callable[[], Made]:
    def make() -> Made:
        inputs = [TensorType(dtype, shape)(f"x{i}") for i, (dtype, shape) in enumerate(types)]
        total = sum(inputs[1:], inputs[0]) * 2
        values = [np.ones([3 if n is None else n for n in s], dtype=d) for d, s in types]
        return compiled(inputs, [pt.exp(total), total.sum()]), values

    return make


def with_roles(**roles: Any) -> Callable[[], Made]:
    def make() -> Made:
        x, y = pt.vectors("x", "y")
        inputs = [In(x, **roles.get("x", {})), In(y, **roles.get("y", {}))]
        outputs = [Out(pt.cumsum(x), borrow=roles.get("borrow", False)), x, y[::-1]]
        if roles.get("swapped"):
            inputs.reverse()
        if roles.get("turned"):
            outputs.reverse()
        options = {"accept_inplace": True} if roles.get("inplace") else {}
        return compiled(inputs, outputs, **options), [array(1, 2, 3), array(4, 5, 6)]

    return make


def with_op(op: Callable[[Any], Any]) -> Callable[[], Made]:
    def make() -> Made:
        x = pt.matrix("x")
        return compiled([x], [op(x)]), [np.arange(6.0).reshape(2, 3) / 7]

    return make


def with_shared(kind: str) -> Callable[[], Made]:
    def make() -> Made:
        x = pt.vector("x")
        held = array(1, 2, 3)
        if kind == "input":
            y = pt.vector("y")
            return compiled([x, y], [x * y + 1]), [array(1, 2, 3), held]
        if kind == "constant":
            return compiled([x], [x * pt.constant(held) + 1]), [array(1, 2, 3)]
        y = pytensor.shared(held, name="y")
        updates = {"shared": {}, "updated": {y: y + x}, "doubled": {y: y * 2}}[kind]
        return compiled([x], [x * y + 1], updates=updates), [array(1, 2, 3)]

    return make


def with_setting(**settings: Any) -> Callable[[], Made]:
    def make() -> Made:
        with pytensor.config.change_flags(**settings):
            x = pt.vector("x", dtype="float64")
            return compiled([x], [x.sum() / 3, pt.exp(x).mean()]), [array(1, 2, 3)]

    return make


def with_mode(mode: Any) -> Callable[[], Made]:
    def make() -> Made:
        x = pt.vector("x")
        outputs = [pt.log(1 + pt.exp(x)), pt.exp(x) / (1 + pt.exp(x)), pt.cumsum(x)[::-1]]
        return compiled([x], outputs, mode=mode), [array(1, 2, 3)]

    return make


def with_features(**features: bool) -> Callable[[], Made]:
    def make() -> Made:
        with switched(**features):
            x, y = pt.vectors("x", "y")
            joined = pt.concatenate([pt.sin(x) * 2 + 1, pt.exp(y) - 1])
            return compiled([x, y], [joined, x / -0.0]), [array(1, 2, 3), array(1, 2)]

    return make


def with_inner(change: Callable[[Any], Any]) -> Callable[[], Made]:
    def make() -> Made:
        x, inner = pt.vector("x"), pt.vector("inner")
        op = OpFromGraph([inner], [change(inner)])
        return compiled([x], [op(x) + 1]), [array(1, 2, 3)]

    return make


def with_step(change: Callable[[Any], Any], **options: Any) -> Callable[[], Made]:
    def make() -> Made:
        x = pt.vector("x")
        steps = pytensor.scan(
            lambda one, total: total + change(one),
            sequences=[x],
            outputs_info=[pt.constant(np.array(0.0))],
            return_updates=False,
            **options,
        )
        return compiled([x], [steps]), [array(1, 2, 3)]

    return make


def with_states(bit_generator: Any, size: int, *, updated: bool) -> Callable[[], Made]:
    def make() -> Made:
        rng = pytensor.shared(np.random.Generator(bit_generator(1)), name="rng")
        new, draws = pt.random.normal(0, 1, size=(size,), rng=rng, return_next_rng=True)
        f = compiled([], [draws, draws + 1], updates={rng: new} if updated else {})
        return f, []

    return make


class Scaled(Op):
    """An op with a property."""

    __props__ = ("factor",)

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = inputs[0] * self.factor


def in_fortran_order() -> np.ndarray:
    return np.asfortranarray(np.arange(6.0).reshape(2, 3))


def with_matrix(data: np.ndarray) -> Callable[[], Made]:
    def make() -> Made:
        x = pt.vector("x")
        return compiled([x], [pt.constant(data) @ x]), [array(1, 2, 3)]

    return make


def nan(payload: int) -> np.ndarray:
    return np.array([0x7FF8000000000000 + payload], dtype="uint64").view("float64")


FAST = Mode("py", "fast_run")

TWINS: dict[str, tuple[Callable[[], Made], Callable[[], Made]]] = {
    "one bit of a constant": (
        with_constant(array(1, 2, 3)),
        with_constant(array(1, 2, np.nextafter(3, 4))),
    ),
    "the sign of zero": (with_constant(array(0.0, 1, 1)), with_constant(array(-0.0, 1, 1))),
    "the sign of a scalar zero": (with_constant(0.0), with_constant(-0.0)),
    "the payload of a NaN": (with_constant(nan(1)), with_constant(nan(2))),
    "the dtype of a constant": (
        with_constant(array(1, 2, 3)),
        with_constant(array(1, 2, 3, dtype="float32")),
    ),
    "the shape of a constant": (with_constant(array(1)), with_constant(1.0)),
    "how a constant lies in memory": (
        with_matrix(np.arange(6.0).reshape(2, 3)),
        with_matrix(in_fortran_order()),
    ),
    "the dtype of an input": (with_type(("float64", (None,))), with_type(("float32", (None,)))),
    "a static shape": (with_type(("float64", (None,))), with_type(("float64", (3,)))),
    "a broadcast pattern": (
        with_type(("float64", (None, None)), ("float64", (None, None))),
        with_type(("float64", (None, None)), ("float64", (1, None))),
    ),
    "the number of inputs": (
        with_type(("float64", (None,))),
        with_type(("float64", (None,)), ("float64", (None,))),
    ),
    "a mutable input": (with_roles(), with_roles(x={"mutable": True})),
    "another mutable input": (
        with_roles(x={"mutable": True}),
        with_roles(y={"mutable": True}),
    ),
    "a borrowed input": (with_roles(), with_roles(x={"borrow": True})),
    "a borrowed output": (with_roles(), with_roles(borrow=True)),
    "both borrowed": (
        with_roles(x={"borrow": True}),
        with_roles(x={"borrow": True}, borrow=True),
    ),
    "the order of inputs": (with_roles(), with_roles(swapped=True)),
    "the order of outputs": (with_roles(), with_roles(turned=True)),
    "an axis": (with_op(lambda x: x.sum(axis=0)), with_op(lambda x: x.sum(axis=1))),
    "an axis of cumsum": (
        with_op(lambda x: pt.cumsum(x, axis=0)),
        with_op(lambda x: pt.cumsum(x, axis=1)),
    ),
    "the op": (with_op(pt.sin), with_op(pt.cos)),
    "a property": (with_op(Scaled(2.0)), with_op(Scaled(3.0))),
    "the sign of a property": (with_op(Scaled(0.0)), with_op(Scaled(-0.0))),
    "a cast": (
        with_op(lambda x: x.astype("float32") * 2),
        with_op(lambda x: x.astype("int64") * 2),
    ),
    "an index": (with_op(lambda x: x[0]), with_op(lambda x: x[1])),
    "a slice": (with_op(lambda x: x[:, 1:]), with_op(lambda x: x[:, :-1])),
    "a shared variable for an input": (with_shared("input"), with_shared("shared")),
    "a shared variable for a constant": (with_shared("constant"), with_shared("shared")),
    "an update": (with_shared("shared"), with_shared("updated")),
    "another update": (with_shared("updated"), with_shared("doubled")),
    "floatX": (with_setting(floatX="float64"), with_setting(floatX="float32")),
    "cast_policy": (
        with_setting(cast_policy="custom"),
        with_setting(cast_policy="numpy+floatX"),
    ),
    "a tag of the mode": (with_mode(FAST), with_mode(FAST.excluding("fusion"))),
    "a rewriter left out": (with_mode(FAST), with_mode(FAST.excluding("local_log1p"))),
    "a rewriter asked for": (with_mode(FAST), with_mode(FAST.including("merge_fusion"))),
    "the optimizer": (with_mode(FAST), with_mode(Mode("py", "fast_compile"))),
    "no optimizer": (with_mode(FAST), with_mode(Mode("py", None))),
    "the linker": (with_mode(FAST), with_mode(Mode("vm", "fast_run"))),
    "fusion off": (with_features(), with_features(fusion=False)),
    "joins off": (with_features(), with_features(joins=False)),
    "exact constants off": (with_features(), with_features(exact_constants=False)),
    "a constant of an inner graph": (
        with_inner(lambda one: one * 2),
        with_inner(lambda one: one * 3),
    ),
    "an op of an inner graph": (with_inner(pt.exp), with_inner(pt.log)),
    "a constant of a step": (with_step(lambda one: one * 2), with_step(lambda one: one * 3)),
    "a way to scan": (with_step(pt.exp), with_step(pt.exp, go_backwards=True)),
    "the kind of random state": (
        with_states(np.random.PCG64, 3, updated=False),
        with_states(np.random.SFC64, 3, updated=False),
    ),
    "how many draws": (
        with_states(np.random.PCG64, 3, updated=False),
        with_states(np.random.PCG64, 4, updated=False),
    ),
    "a state that goes on": (
        with_states(np.random.PCG64, 3, updated=False),
        with_states(np.random.PCG64, 3, updated=True),
    ),
}


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
