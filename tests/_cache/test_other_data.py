"""Graphs that differ in their data alone: the oracle is a compilation without the cache."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import Mode
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.variable import TensorConstant

from _cache.with_data import (
    GRAPHS,
    PLACES,
    Graph,
    X,
    Y,
    branches,
    constant,
    covariance,
    function_of,
    levels,
    poisson,
    regression,
    scaled,
    watched,
)
from pytensor_fuse import enabled, explain
from pytensor_fuse._cache.data import readings
from pytensor_fuse._cache.key.places import Origins
from pytensor_fuse._cache.store.disk import Disk
from pytensor_fuse._cache.store.memory import memory
from pytensor_fuse._cache.variants import Variants
from pytensor_fuse.cache import info as cache_info
from support.cached import (
    assert_same_graphs,
    assert_same_results,
    compiled,
    registered,
)
from support.random_graphs.building import Program, build
from support.random_graphs.strategies import any_programs, seeded_program
from support.switching import switched


def others(data: np.ndarray) -> dict[str, np.ndarray]:
    """Other data of the same type and shape, near and far."""
    rng = np.random.default_rng(3)
    found = {"shuffled": rng.permutation(data.ravel()).reshape(data.shape), "less": data - 1}
    found |= {"zeros": np.zeros_like(data), "ones": np.ones_like(data), "absolute": np.abs(data)}
    if data.dtype.kind == "f":
        one = data.copy()
        one.flat[4] = np.nextafter(one.flat[4], 9)
        found |= {"a bit": one, "tripled": data * 3}
        for name, value in {"nan": np.nan, "minus zero": -0.0, "infinite": np.inf}.items():
            one = data.copy()
            one.flat[0] = value
            found[name] = one
    if data.ndim == 1:
        found["arange"] = np.arange(len(data)).astype(data.dtype)
    return found


@pytest.mark.parametrize("graph", GRAPHS)
def test_other_data_lead_to_the_same_as_without_the_cache(graph: Graph) -> None:
    defaults = graph.__defaults__
    assert defaults is not None
    function_of(graph)
    for at, data in enumerate(defaults):
        for changed in others(data).values():
            if graph is levels and at == 0:
                changed = np.abs(changed) % 4
            function_of(graph, *defaults[:at], changed, *defaults[at + 1 :])
    function_of(graph)


@pytest.mark.parametrize("graph", [regression, poisson, covariance, branches, scaled])
def test_refits_are_not_rewritten(graph: Graph) -> None:
    defaults = graph.__defaults__
    assert defaults is not None
    function_of(graph)
    rng = np.random.default_rng(5)
    for _ in range(3):
        function = function_of(graph, *[rng.permutation(one) for one in defaults])
        assert explain(function, "cache") == ()
    info = cache_info()
    assert (info.misses, info.hits, info.hits_with_other_data) == (1, 3, 3)
    # As it is now, it is known like any other.
    function_of(graph)
    assert cache_info().hits == 4


def test_data_with_gaps() -> None:
    for column in (X[:, 0], X[:, 1], X[:, 2]):
        function_of(scaled, column)
    assert cache_info().hits_with_other_data == 2


def test_what_else_reads_data_is_said() -> None:
    function_of(levels)
    function_of(levels, PLACES[::-1].copy())
    info = cache_info()
    assert info.misses == 2
    [(reason, times)] = info.not_alike.items()
    assert times == 1
    assert "shape=(12,)" in reason
    assert "read in rewriting" in reason
    assert "rewritten for other data: " in str(info)
    # The data that nobody read may still change.
    function_of(levels, PLACES, Y * 2)
    assert cache_info().hits_with_other_data == 1


def test_answers_are_asked_again() -> None:
    function_of(scaled)
    function_of(scaled, np.full(12, 3.0))
    assert cache_info().misses == 2
    assert any("for its only value" in reason for reason in cache_info().not_alike)


def test_constants_that_become_equal_or_cease_to_be() -> None:
    def two(first: Any = Y, second: Any = Y**2) -> tuple[list[Any], list[Any]]:
        b = pt.scalar("b")
        return [b], [pt.exp(pt.constant(first) * b), pt.exp(pt.constant(second) * b)]

    for first, second in [(Y, Y**2), (Y, Y), (Y * 2, Y * 2), (Y**3, Y), (Y + 1, Y + 1)]:
        function_of(two, first, second)
    # Equal ones are another graph; those that are computed from both are the same, or are not.
    assert cache_info().misses == 2
    assert cache_info().hits_with_other_data == 3


def test_computed_constants_that_become_equal() -> None:
    def two(first: Any = Y, second: Any = Y + 1) -> tuple[list[Any], list[Any]]:
        b = pt.scalar("b")
        squares = [pt.constant(one) ** 2 for one in (first, second)]
        return [b], [pt.exp(one * b) for one in squares]

    function_of(two)
    # The squares of these are the same, and are then computed once.
    function_of(two, Y, -Y)
    function_of(two, Y + 3, -(Y + 3))
    function_of(two, Y, Y + 2)
    assert (cache_info().misses, cache_info().hits_with_other_data) == (2, 2)


def test_what_is_computed_may_be_the_same_as_a_constant_that_is_no_data() -> None:
    ones = np.arange(12.0)

    def make(y: Any = Y) -> tuple[list[Any], list[Any]]:
        b = pt.scalar("b")
        return [b], [(pt.constant(y) + 1) * b, pt.arange(12.0) * b]

    for data in (Y, ones - 1, ones, Y * 2):
        function_of(make, data)


@pytest.mark.parametrize("changed", [Y.astype("float32"), np.append(Y, 1.0), Y[::-1]])
def test_data_of_another_type_or_layout(changed: np.ndarray) -> None:
    function_of(scaled)
    function_of(scaled, changed)
    assert cache_info().hits == 0


def test_data_in_inner_graphs() -> None:
    def scan(y: Any = Y) -> tuple[list[Any], list[Any]]:
        b = pt.scalar("b")
        data = pt.constant(y)
        steps = pytensor.scan(
            lambda one, last, b: last * b + one * data.sum() * b,
            sequences=[data],
            outputs_info=[pt.constant(np.float64(0))],
            non_sequences=[b],
            return_updates=False,
        )
        return [b], [steps]

    def inner(y: Any = Y) -> tuple[list[Any], list[Any]]:
        b, inside = pt.scalar("b"), pt.scalar("inside")
        op = OpFromGraph([inside], [inside * pt.constant(y)])
        return [b], [op(b) + pt.constant(y) ** 2]

    for graph in (scan, inner):
        for data in (Y, Y + 1, Y * 2, Y):
            function_of(graph, data)


def by_inlining(inner: Any, outer: Any) -> tuple[list[Any], list[Any]]:
    b, s = pt.scalar("b"), pt.scalar("s")
    op = OpFromGraph([s], [s * inner], inline=True)
    return [b], [op(b) + pt.exp(outer * b)]


def by_pushing_out(inner: Any, outer: Any) -> tuple[list[Any], list[Any]]:
    b = pt.scalar("b")
    mapped = pytensor.map(lambda i: (inner * b)[i], sequences=[pt.arange(3)], return_updates=False)
    return [b], [mapped, pt.exp(outer * b)]


@pytest.mark.parametrize("graph", [by_inlining, by_pushing_out])
def test_a_constant_that_comes_out_of_an_inner_graph(graph: Graph) -> None:
    inner = pt.constant(Y)
    for outer in (inner, pt.constant(Y + 1), pt.constant(Y), pt.constant(Y * 3)):
        function_of(graph, inner, outer)


def test_an_op_that_compiles_in_a_blockwise() -> None:
    def make(x: Any = X) -> tuple[list[Any], list[Any]]:
        b, v = pt.scalar("b"), pt.vector("v")
        op = Blockwise(OpFromGraph([v], [(pt.exp(v) * inner).sum()]), signature="(n)->()")
        return [b], [op(pt.constant(x)) * b]

    inner = pt.constant(np.arange(3.0))
    function_of(make)
    inner.data[:] = 5.0
    function_of(make)
    inner = pt.constant(np.arange(3.0))
    function_of(make, X + 1)
    # Before PyTensor 3.1, inner graphs may be changed.
    reason = "an inner graph that may be changed"
    assert all(one.endswith(reason) for one in cache_info().not_kept)


def test_a_rewriter_with_a_constant_of_its_own() -> None:
    own = pt.constant(Y)

    def sin_times_own(fgraph: FunctionGraph, node: Any) -> Any:
        return [pt.cos(node.inputs[0]) * own] if node.op == pt.sin else None

    def make(y: Any = own) -> tuple[list[Any], list[Any]]:
        x = pt.vector("x", shape=(12,))
        return [x], [pt.sin(x), pt.exp(x * y)]

    with registered("sin_times_own", sin_times_own):
        for data in (own, pt.constant(Y + 1)):
            function_of(make, data)
    assert cache_info().hits == 0


def test_a_rewriter_that_compiles() -> None:
    def by_a_function(fgraph: FunctionGraph, node: Any) -> Any:
        [operand, *_] = node.inputs
        for one in operand.owner.inputs if node.op == pt.exp and operand.owner else ():
            if isinstance(one, TensorConstant) and compiled([], one.sum())() > 0:
                return [pt.sin(operand)]
        return None

    def make(y: Any = Y) -> tuple[list[Any], list[Any]]:
        b = pt.scalar("b")
        return [b], [pt.exp(pt.constant(y) * b)]

    one = constant()
    assert watched(lambda one: compiled([], one.sum()), one)._exact
    with registered("by_a_function", by_a_function):
        for data in (np.abs(Y), -np.abs(Y), np.abs(Y) + 1):
            function_of(make, data)


def test_threads_that_compile_with_the_same_constants() -> None:
    b, one = pt.scalar("b"), constant()
    variants = []
    for _ in range(2):
        fgraph = FunctionGraph([b], [one * b], clone=False)
        origins = Origins(fgraph.inputs, fgraph.outputs)
        request = SimpleNamespace(
            registrations=SimpleNamespace(digest=b""), outline=lambda *_: "an outline"
        )
        variants.append(Variants(request, origins))
    with variants[0].watching(), variants[1].watching():
        pass
    for each in variants:
        assert each._readings is not None
        assert each._readings._exact == {0: "another thread compiled with it"}


def test_a_rewriter_that_reads_data_is_run_again() -> None:
    def by_its_data(fgraph: FunctionGraph, node: Any) -> Any:
        [operand, *_] = node.inputs
        for one in operand.owner.inputs if node.op == pt.exp and operand.owner else ():
            if isinstance(one, TensorConstant) and one.data[3] > 0:
                return [pt.sin(operand)]
        return None

    def make(y: Any = Y) -> tuple[list[Any], list[Any]]:
        b = pt.scalar("b")
        return [b], [pt.exp(pt.constant(y) * b)]

    with registered("by_its_data", by_its_data):
        for data in (np.abs(Y), -np.abs(Y), np.abs(Y) + 1):
            function_of(make, data)
    assert cache_info().misses == 3


def test_on_disk(on_disk: Disk) -> None:
    function_of(regression)
    memory.clear()
    function_of(regression, X * 2, Y - 1)
    info = cache_info()
    assert (info.hits_on_disk, info.hits_with_other_data, info.misses) == (1, 1, 1)
    # From then on it is in memory.
    function_of(regression, X * 4, Y - 4)
    assert (cache_info().hits_on_disk, cache_info().hits_in_memory) == (1, 1)
    memory.clear()
    with on_disk._connected() as connection, connection:
        connection.execute("UPDATE entries SET value = zeroblob(9)")
    function_of(regression, X * 3, Y - 2)
    info = cache_info()
    assert (info.hits_on_disk, info.misses) == (1, 2)
    assert any("damaged" in reason for reason in info.failures)


@pytest.mark.parametrize("mode", ["CVM", "NUMBA"])
def test_what_is_linked_holds_its_own_data(mode: str) -> None:
    for data in (Y, Y + 1, Y + 2, Y + 1, Y):
        function_of(scaled, data, mode=mode)
    assert cache_info().hits_with_other_data == 2


def test_nobody_else_writes_to_the_data_of_a_function() -> None:
    b = pt.scalar("b")
    function_of(scaled)
    data = Y + 1
    function = compiled([b], [pt.constant(data)[:, None] * b])
    data = data + 1
    other = compiled([b], [pt.constant(data)[:, None] * b])
    assert cache_info().hits_with_other_data == 1
    before = function(2.0)[0].copy(), other(2.0)[0].copy()
    data[:] = 0
    np.testing.assert_array_equal(function(2.0)[0], before[0])
    np.testing.assert_array_equal(
        compiled([b], [pt.constant(Y + 1)[:, None] * b])(2.0)[0], before[0]
    )


def test_it_has_a_switch() -> None:
    with switched(other_data=False):
        assert "data" not in vars(TensorConstant)
        function_of(scaled)
        function_of(scaled, Y + 1)
        assert (cache_info().misses, cache_info().hits) == (2, 0)
    # What was kept without looking on is good for nothing else.
    function_of(scaled, Y + 2)
    assert cache_info().misses == 3


CHANGES = ("same", "shuffled", "negated", "one value", "zeros", "other")


def changed_by(how: str, data: np.ndarray) -> np.ndarray:
    if how == "shuffled":
        return np.random.default_rng(7).permutation(data.ravel()).reshape(data.shape)
    if how == "negated" and data.dtype.kind in "if":
        return -data
    if how in ("one value", "zeros"):
        return np.full_like(data, how == "one value")
    if how == "other":
        rng = np.random.default_rng(8)
        return (data + rng.integers(0, 3, data.shape)).astype(data.dtype)
    return data.copy()


@given(any_programs(10), st.lists(st.sampled_from(CHANGES), min_size=4, max_size=4))
def test_random_graphs(program: Program, changes: list[str]) -> None:
    """Of all inputs but the first, data: however few elements they have."""
    case = build(program)
    inputs = case.fgraph.inputs

    def make(data: list[np.ndarray]) -> Any:
        places = {
            variable: pt.constant(one)
            for variable, one in zip(inputs[1:], data, strict=True)
            if isinstance(variable.type, pt.TensorType)
        }
        if any(not variable.type.is_super(one.type) for variable, one in places.items()):
            return None
        left = [variable for variable in inputs if variable not in places]
        replaced = {
            variable: variable.type.filter_variable(one, allow_convert=True)
            for variable, one in places.items()
        }
        outputs = clone_replace(case.fgraph.outputs, replaced)
        return left, outputs

    values = [case.values[at] for at in range(1, len(inputs))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readings, "_LARGE", 2)
        memory.clear()
        for how in ([], changes, changes[::-1]):
            data = [changed_by(*one) for one in zip(how or ["same"] * 4, values, strict=False)]
            made = make(data)
            if made is None:
                return
            left, outputs = made
            function = compiled(left, outputs)
            with enabled(False, "cache"):
                fresh = compiled(left, outputs)
            assert_same_graphs(function, fresh)
            held = [case.values[inputs.index(one)] for one in left]
            assert_same_results(function, fresh, held)


def test_random_graphs_are_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the test above compares something."""
    monkeypatch.setattr(readings, "_LARGE", 2)
    for seed in range(12):
        case = build(seeded_program(seed, 6, plain=True))
        first, *others = case.fgraph.inputs
        for change in (0, 1):
            replaced = {
                variable: pt.constant(value + change)
                for variable, value in zip(others, case.values[1:], strict=True)
            }
            compiled([first], clone_replace(case.fgraph.outputs, replaced))
    assert cache_info().hits_with_other_data > 3


def test_in_a_mode_of_its_own() -> None:
    mode = Mode("py", "fast_run").excluding("canonicalize")
    for data in (Y, Y + 1):
        function_of(regression, X, data, mode=mode)
    assert cache_info().misses + cache_info().hits_with_other_data == 2
