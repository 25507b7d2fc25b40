"""Graphs that ops hold otherwise than as their own inner graph: in branches, and in a Blockwise."""

from __future__ import annotations

import pickle
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import get_mode
from pytensor.compile.ops import FromFunctionOp
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.blockwise import Blockwise

from _cache.test_twins import INNER_GRAPHS_CHANGE
from pytensor_fuse import enabled
from pytensor_fuse._cache.data.inner_constants import inner_constants
from pytensor_fuse._cache.store.memory import memory
from pytensor_fuse._pytensor.graphs.inner_graphs import without_functions
from pytensor_fuse.cache import info as cache_info
from support.cached import PYTHON, assert_same_graphs, assert_same_results, compiled

HAS_BRANCHES = find_spec("pytensor.conditional") is not None
if HAS_BRANCHES:
    conditional = import_module("pytensor.conditional.op")

needs_branches = pytest.mark.skipif(
    not HAS_BRANCHES, reason="PyTensor 3.0 has no branches that are graphs"
)


def branches(data: Any = 2.0, mode: Any = "NUMBA", *, which: bool = True) -> Any:
    c, x = pt.scalar("c"), pt.vector("x")
    one, other = pt.exp(x) * pt.constant(data), pt.sin(x) - 1
    return compiled(
        [c, x], [conditional.ifelse(c > 0, *((one, other) if which else (other, one)))], mode=mode
    )


def nested_branches(data: Any = 2.0, mode: Any = "NUMBA") -> Any:
    c, x = pt.scalar("c"), pt.vector("x")
    inner = conditional.ifelse(c > 1, pt.cumsum(x) * pt.constant(data), pt.sin(x) - 1)
    return compiled([c, x], [conditional.ifelse(c > 0, pt.exp(inner), pt.cos(x))], mode=mode)


def applied_along(data: Any = 2.0, mode: Any = "NUMBA") -> Any:
    _, x, one = pt.scalar("c"), pt.matrix("x"), pt.vector("one")
    op = OpFromGraph([one], [pt.exp(one) * pt.constant(data)])
    return compiled([_, x], [Blockwise(op, signature="(n)->(n)")(x) + 1], mode=mode)


CASES = [
    pytest.param(branches, id="branches", marks=needs_branches),
    pytest.param(nested_branches, id="nested", marks=needs_branches),
    pytest.param(
        applied_along,
        id="blockwise",
        marks=pytest.mark.skipif(
            INNER_GRAPHS_CHANGE, reason="graphs with inner graphs are not kept here"
        ),
    ),
]


NUMBERS = {branches: 1, nested_branches: 2, applied_along: 3}


def values_of(make: Any, n: int = 3) -> list[list[Any]]:
    x = np.linspace(0.5, 1.5, n)
    return [[c, x[np.newaxis] if make is applied_along else x] for c in (-1.0, 0.5, 2.0)]


def assert_same(function: Any, fresh: Any, values: list[list[Any]]) -> None:
    assert_same_graphs(function, fresh)
    for each in values:
        assert_same_results(function, fresh, each)


def held(op: Any) -> list[Any]:
    """Return an op and those that it holds, and what they have compiled."""
    names = ("core_op", "true_branch", "false_branch")
    ops = [op, *(vars(op)[name] for name in names if name in vars(op))]
    return [*ops, *(one._fn for one in ops if getattr(one, "_fn", None) is not None)]


def with_graphs(function: Any) -> list[Any]:
    ops = [node.op for node in function.maker.fgraph.toposort()]
    return [op for op in ops if any(hasattr(one, "fgraph") for one in held(op))]


@pytest.mark.parametrize("level", ["memory", "disk", "verify"])
@pytest.mark.parametrize("make", CASES)
def test_they_are_kept_and_shared_by_nobody(make: Any, level: str, request: Any) -> None:
    if level != "memory":
        request.getfixturevalue({"disk": "on_disk", "verify": "verifying"}[level])
    functions = [make()]
    if level == "disk":
        memory.clear()
    functions += [make(), make()]
    assert cache_info().hits == 2
    assert cache_info().hits_on_disk == (level == "disk")
    with enabled(False, "cache"):
        functions.append(make())
    for function in functions:
        assert_same(function, functions[-1], values_of(make))
    for ops in zip(*map(with_graphs, functions), strict=True):
        parts = [id(part) for op in ops for part in held(op)]
        assert len(set(parts)) == len(parts)


@pytest.mark.filterwarnings("ignore:Cannot cache compiled function")
@pytest.mark.parametrize("make", CASES)
def test_arrays_in_them_that_are_written_to(make: Any) -> None:
    for n in (3, 200_000):
        # PyTensor has each of the arrays in inner graphs once: so it may have no other of these.
        buffer = np.random.default_rng([n, NUMBERS[make]]).normal(size=n)
        before = buffer.copy()
        make(buffer)
        hits = cache_info().hits
        make(before)
        assert cache_info().hits == hits + 1
        buffer[:] = 7.0
        function = make(before)
        assert cache_info().hits == hits + 1
        with enabled(False, "cache"):
            fresh = make(before)
        assert_same(function, fresh, values_of(make, n))


@pytest.mark.parametrize("make", CASES)
def test_arrays_in_them_weigh(make: Any) -> None:
    make(np.arange(100_000.0))
    assert memory.weight > 700


def test_graphs_that_may_be_changed_are_not_shared() -> None:
    def make() -> Any:
        x = pt.tensor3("x")
        return compiled([x], [pt.linalg.cholesky(x)], mode="NUMBA")

    functions = [make() for _ in range(3)]
    assert cache_info().hits == 2
    [graphs] = zip(*([op.fgraph for op in with_graphs(one)] for one in functions), strict=True)
    # In PyTensor 3.0 alone.
    changing = [graph for graph in graphs if isinstance(graph, FunctionGraph)]
    assert len({id(graph) for graph in changing}) == len(changing)
    with enabled(False, "cache"):
        fresh = make()
    for function in functions:
        assert_same_graphs(function, fresh)
        assert_same_results(function, fresh, [np.stack([np.eye(2), 4 * np.eye(2)])])


@pytest.mark.skipif(INNER_GRAPHS_CHANGE, reason="graphs with inner graphs are not kept here")
@pytest.mark.parametrize("level", ["disk", "verify"])
@pytest.mark.parametrize("mode", [PYTHON, "NUMBA"], ids=["python", "numba"])
def test_gradients_of_loops(mode: Any, level: str, request: Any) -> None:
    request.getfixturevalue({"disk": "on_disk", "verify": "verifying"}[level])

    def make() -> Any:
        x = pt.vector("x")
        steps = pytensor.scan(
            lambda one, total: pt.exp(-total) * one,
            sequences=[x],
            outputs_info=[pt.zeros(())],
            return_updates=False,
        )
        return compiled([x], [steps, pt.grad(steps.sum(), x)], mode=mode)

    functions = [make()]
    if level == "disk":
        memory.clear()
    functions += [make(), make()]
    assert cache_info().hits == 2
    with enabled(False, "cache"):
        fresh = make()
    for function in functions:
        assert_same_graphs(function, fresh)
        assert_same_results(function, fresh, [np.array([0.3, 0.5, -0.7])])


@needs_branches
@pytest.mark.parametrize("which", [False, True])
def test_each_function_compiles_branches_of_its_own(which: bool) -> None:
    mode = get_mode("CVM").including("lazy_ifelse")
    functions = [branches(mode=mode, which=which) for _ in range(3)]
    assert cache_info().hits == 2
    with enabled(False, "cache"):
        functions.append(branches(mode=mode, which=which))
    for function in functions:
        assert_same(function, functions[-1], values_of(branches))
    [ops] = zip(*map(with_graphs, functions), strict=True)
    parts = [id(part) for op in ops for part in held(op)]
    # An op, two branches, and two functions that have run.
    assert len(set(parts)) == len(parts) == 4 * 5


@needs_branches
def test_branches_in_branches_that_are_compiled_are_not_kept() -> None:
    mode = get_mode("CVM").including("lazy_ifelse")
    for _ in range(2):
        nested_branches(mode=mode)
    assert any("LazyIfElse is in an op that compiles it" in one for one in cache_info().not_kept)
    assert not cache_info().entries


@needs_branches
def test_large_constants_in_branches_have_to_be_the_same() -> None:
    def make(inside: np.ndarray, outside: np.ndarray) -> Any:
        c, x = pt.scalar("c"), pt.vector("x")
        chosen = conditional.ifelse(c > 0, pt.exp(x) * pt.constant(inside), pt.sin(x))
        return compiled([c, x], [chosen, pt.cos(x) * pt.constant(outside)], mode="NUMBA")

    data, more = np.arange(12.0), np.arange(1.0, 13.0)
    for inside, outside in [(data, data), (more, more), (data, more), (more, data), (data, data)]:
        function = make(inside, outside)
        with enabled(False, "cache"):
            fresh = make(inside, outside)
        assert_same(function, fresh, values_of(branches, 12))


def doubled(x: Any) -> Any:
    return x * 2


@needs_branches
@pytest.mark.filterwarnings("ignore:Numba will use object mode")
@pytest.mark.parametrize("where", ["true", "false"])
def test_what_branches_hold_is_told(where: str) -> None:
    c, x = pt.scalar("c"), pt.vector("x")
    others = FromFunctionOp(doubled, [pt.dvector], [pt.dvector], lambda _, shapes: shapes)
    graphs = {"true": pt.exp(x), "false": pt.sin(x)}
    graphs[where] = others(x)
    op = conditional.LazyIfElse(*(OpFromGraph([x], [one]) for one in graphs.values()), [x.type])
    for _ in range(2):
        compiled([c, x], [op(c, x)], mode="NUMBA")
    assert any("calls a function of _cache.test_held" in one for one in cache_info().not_kept)
    assert not cache_info().entries


def an_inner_graph(data: np.ndarray) -> tuple[OpFromGraph, Any]:
    x, constant = pt.vector("x"), pt.constant(data)
    return OpFromGraph([x], [pt.exp(x) * constant]), constant


def test_constants_are_found_wherever_they_are() -> None:
    op, _ = an_inner_graph(np.arange(3.0))
    x = pt.vector("x")
    ops = [op, OpFromGraph([x], [op(x)]), Blockwise(op, signature="(n)->(n)")]
    ops.append(Blockwise(ops[1], signature="(n)->(n)"))
    if HAS_BRANCHES:
        other, _ = an_inner_graph(np.ones(3))
        ops += [
            conditional.LazyIfElse(op, other, [x.type]),
            conditional.LazyIfElse(other, ops[1], [x.type]),
        ]
    for each in ops:
        found = [one.data.tolist() for one in inner_constants([each])]
        assert [0.0, 1.0, 2.0] in found


def test_equal_ops_may_hold_other_arrays() -> None:
    buffers = [np.arange(3.0), np.arange(3.0)]
    ops = [an_inner_graph(one)[0] for one in buffers]
    inside = {id(one.data) for one in inner_constants(ops)}
    # As many as PyTensor has, which has one for both if it knows that they are equal.
    own = {id(one.data) for op in ops for one in op.fgraph.variables if hasattr(one, "data")}
    assert inside == own


def test_copies_have_compiled_nothing() -> None:
    op, _ = an_inner_graph(np.arange(3.0))
    x = pt.vector("x")
    pt.grad(op(x).sum(), x)
    blockwise = Blockwise(op, signature="(n)->(n)")
    np.testing.assert_array_equal(op.fn(np.zeros(3))[0], [0.0, 1.0, 2.0])
    for made in (without_functions(op), without_functions(blockwise).core_op):
        assert made is not op
        assert made == op
        assert made._fn is None
        # What computes gradients has no pickle.
        assert pickle.loads(pickle.dumps(made)) == op
        assert made._lop_op_cache == {}
        assert made.fgraph is not op.fgraph or not isinstance(op.fgraph, FunctionGraph)
    assert op._fn is not None
    plain = pt.exp(x).owner.op
    assert without_functions(plain) is plain
