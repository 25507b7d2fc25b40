"""What accelerators do not try, since it would be in vain, PyTensor tries in vain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.mode import Mode
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import (
    EquilibriumGraphRewriter,
    FromFunctionNodeRewriter,
    WalkingGraphRewriter,
)
from pytensor.scalar.basic import Composite, float64
from pytensor.tensor.basic import get_underlying_scalar_constant_value
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.exceptions import NotScalarConstantError
from pytensor.tensor.rewriting import blas
from pytensor.tensor.rewriting import math as math_rewriting
from pytensor.tensor.rewriting.elemwise import local_useless_composite_outputs

import pytensor_fuse
from pytensor_fuse._accelerators.canonizers import drop_in as canonizers
from pytensor_fuse._accelerators.no_gemm import drop_in as no_gemm
from pytensor_fuse._accelerators.prefilters import drop_in as prefilters
from pytensor_fuse._accelerators.whole_kernels import drop_in as whole_kernels
from pytensor_fuse._pytensor.compat.checks import Does, mismatches
from pytensor_fuse._pytensor.ops import underlying_constants
from support.programs.grounds import forget
from support.switching import switched

from .graphs import GRAPHS
from .test_honoured import built, programs

HAS_CANONIZERS = pytensor_fuse.status()["accelerators"].parts["canonizers"].is_on


def compiled(build: Callable[[], Any]) -> None:
    inputs, outputs, options = build()
    mode = Mode(linker="py", optimizer="fast_run")
    pytensor.function(inputs, outputs, mode=mode, on_unused_input="ignore", **options)


def all_tried(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Let PyTensor try whatever is to be skipped, and count it."""
    counts: Counter[str] = Counter()
    must_decline = canonizers._must_decline
    hides_no_constant = underlying_constants.hides_no_constant
    has_product = no_gemm._has_product
    useless_outputs = whole_kernels.remove_useless
    stock_useless_outputs = whole_kernels._stock

    def canonizer(self: Any, fgraph: Any, node: Any) -> bool:
        found = must_decline(self, fgraph, node)
        if found:
            assert canonizers._stock_transform(self, fgraph, node) is False, node
            counts["canonizer"] += 1
        return found

    def distribute(fgraph: Any, node: Any) -> Any:
        asked: list[Any] = []

        def stock(*args: Any) -> Any:
            asked.append(args)
            return stock_greedy(*args)

        canonizers._stock_greedy = stock
        try:
            found = greedy(fgraph, node)
        finally:
            canonizers._stock_greedy = stock_greedy
        if not asked:
            assert found is False
            assert stock_greedy(fgraph, node) is False, node
            counts["distributor"] += 1
        return found

    greedy, stock_greedy = canonizers.distribute, canonizers._stock_greedy

    def search(v: Any, elemwise: bool = True, max_steps: int = 10) -> bool:
        found = hides_no_constant(v, elemwise, max_steps)
        if found:
            with pytest.raises(NotScalarConstantError):
                stock_search(v, elemwise, False, max_steps)
            counts["constant"] += 1
        return found

    stock_search: Any = getattr(pt.basic, "_pytensor_fuse_stock", None)

    def product(fgraph: Any, node: Any) -> bool:
        found = has_product(fgraph, node)
        if not found:
            assert no_gemm._stock_from_node(fgraph, node)[0] is None, node
            counts["product"] += 1
        return found

    def outputs(fgraph: Any, node: Any) -> Any:
        found = useless_outputs(fgraph, node)
        assert (found is None) == (stock_useless_outputs(fgraph, node) is None), node
        counts["outputs"] += found is None
        return found

    # These go by what computes the inputs: each rewriter is tried on all nodes, and must decline.
    def trying(fact: Does, rewriter: Any, wants: Any, function: Any) -> Any:
        def tried(fgraph: Any, node: Any) -> Any:
            found = function(fgraph, node)
            wanted = wants(node.op)
            if wanted and not wanted & prefilters.sources(node.inputs):
                assert found is None or found is False, (fact, node)
                counts[fact.place] += 1
            return found

        return tried

    monkeypatch.setattr(canonizers, "_must_decline", canonizer)
    monkeypatch.setattr(math_rewriting.local_greedy_distributor, "fn", distribute)
    monkeypatch.setattr(canonizers, "hides_no_constant", search)
    monkeypatch.setattr(underlying_constants, "hides_no_constant", search)
    monkeypatch.setattr(no_gemm, "_has_product", product)
    monkeypatch.setattr(local_useless_composite_outputs, "fn", outputs)
    monkeypatch.setattr(prefilters, "in_use", {})
    known = prefilters.table()
    for fact, wants in prefilters.ENTRIES:
        for rewriter, _, found in known.values():
            if found is wants and rewriter is prefilters.find(fact.place.removesuffix(".fn")):
                function = trying(fact, rewriter, wants, rewriter.fn)
                monkeypatch.setattr(rewriter, "fn", function)
    return counts


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    return all_tried(monkeypatch)


def test_of_the_graphs(counts: Counter[str]) -> None:
    for name, build in GRAPHS.items():
        if name != "missing_input":
            compiled(build)
    assert counts["constant"] > 50
    assert counts["outputs"] > 20
    assert counts["product"] > 3
    if HAS_CANONIZERS:
        assert counts["canonizer"] > 300
        assert counts["distributor"] > 100
    # Each entry says something about these graphs.
    seen = [fact.place for fact, _ in prefilters.ENTRIES if counts[fact.place]]
    of_this_pytensor = [fact.place for fact, _ in prefilters.ENTRIES if not mismatches([fact])]
    assert len(seen) >= len(of_this_pytensor) - 3, set(of_this_pytensor) - set(seen)


@given(program=programs())
def test_of_random_graphs(program: list[tuple[int, int, int]]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        all_tried(monkeypatch)
        compiled(lambda: built(program))


def test_of_models(counts: Counter[str]) -> None:
    pm = pytest.importorskip("pymc", reason="not installed; it has no release for Python 3.11")
    from test_pymc_models import MODELS

    for name in ("hierarchical_regression", "mixture"):
        with pm.Model() as model:
            MODELS[name](np.random.default_rng(7))
        inputs, outputs = model.continuous_value_vars, [model.logp(), model.dlogp()]
        compiled(lambda inputs=inputs, outputs=outputs: (inputs, outputs, {}))
    assert counts["canonizer"] > 100


# What is skipped, is skipped ---------------------------------------------------------------


def tries(build: Callable[[], Any], rewriter: Any) -> int:
    """How often a compile tries a node rewriter."""
    made = 0
    function = rewriter.fn

    def counted(fgraph: Any, node: Any) -> Any:
        nonlocal made
        made += 1
        return function(fgraph, node)

    # Its code is asked: this is PyTensor's, called by another.
    counted.__wrapped__ = function  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(prefilters, "plain_function", lambda f: getattr(f, "__wrapped__", f))
        monkeypatch.setattr(rewriter, "fn", counted)
        compiled(build)
    return made


def test_tries_are_left_out() -> None:
    from pytensor.tensor.rewriting.basic import local_merge_switch_same_cond

    with switched(accelerators=False):
        stock = tries(GRAPHS["canonical_forms"], local_merge_switch_same_cond)
    assert stock > 20
    assert tries(GRAPHS["canonical_forms"], local_merge_switch_same_cond) < stock / 10


def test_a_rewriter_that_is_another_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    from pytensor.tensor.rewriting.basic import local_merge_switch_same_cond

    asked: list[Any] = []

    def other(fgraph: Any, node: Any) -> Any:
        asked.append(node)

    monkeypatch.setattr(local_merge_switch_same_cond, "fn", other)
    compiled(GRAPHS["canonical_forms"])
    assert len(asked) > 20
    assert prefilters.wants_by(local_merge_switch_same_cond) is None


@pytest.mark.parametrize(
    "fact",
    [fact for fact, _ in prefilters.ENTRIES if not mismatches([fact])],
    ids=lambda fact: fact.place.split(":")[-1],
)
def test_one_of_another_pytensor_is_not_in_the_table(
    fact: Does, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {id(rewriter) for rewriter, *_ in prefilters.table().values()}
    forget(monkeypatch, fact)
    left = {id(rewriter) for rewriter, *_ in prefilters.table().values()}
    assert known - left <= {id(prefilters.find(fact.place.removesuffix(".fn")))}
    assert id(prefilters.find(fact.place.removesuffix(".fn"))) not in left


def test_nobody_elses_ops_are_judged() -> None:
    class Mine(Elemwise):
        """May be anything."""

    x = pt.vector("x")
    made = Mine(pt.exp.scalar_op)(x)
    everything = prefilters.sources([made])
    assert everything & prefilters.SWITCH
    assert everything & prefilters.ALLOC
    assert not prefilters.sources([pt.exp(x)]) & prefilters.SWITCH
    assert prefilters.sources([pt.exp(x)]) & prefilters.EXP
    assert not prefilters.sources([x, pt.constant(1)]) & prefilters.ONLY_CONSTANTS
    assert prefilters.sources([]) & prefilters.ONLY_CONSTANTS


# Constants beneath variables --------------------------------------------------------------

x, s = pt.vector("x"), pt.scalar("s")
LEAVES = [
    x, s, pt.constant(2.0), pt.constant(np.ones(3)), pt.constant(np.arange(3.0)),
    pt.constant(np.array([4])), pt.constant(np.zeros((0,))), pt.constant(1, dtype="int8"),
    pt.constant(np.inf), pt.shape(x)[0], pt.arange(3)[1], pt.stack([s, 2.0])[1],
]  # fmt: skip


STEPS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: pt.exp(a),
    lambda a, b: pt.cast(a, "float32"),
    lambda a, b: pt.second(a, b),
    lambda a, b: pt.alloc(a, 3, *a.shape),
    lambda a, b: pt.atleast_2d(a),
    lambda a, b: pt.sum(a),
    lambda a, b: pt.maximum(a, b),
    lambda a, b: pt.switch(a > 0, a, b),
]


@st.composite
def expressions(draw: st.DrawFn) -> Any:
    made = list(LEAVES)
    for _ in range(draw(st.integers(0, 5))):
        a, b = draw(st.sampled_from(made)), draw(st.sampled_from(made))
        make = draw(st.sampled_from(STEPS))
        # Lengths that do not fit.
        with suppress(ValueError):
            made.append(make(a, b))
    return made[-1]


def found(v: Any, **options: Any) -> Any:
    try:
        value = get_underlying_scalar_constant_value(v, **options)
    except Exception as error:
        return type(error), str(error)
    return (value.dtype, value.shape, repr(value)) if isinstance(value, np.ndarray) else value


@given(
    v=expressions(),
    options=st.fixed_dictionaries(
        {},
        optional={
            "elemwise": st.booleans(),
            "only_process_constants": st.booleans(),
            "raise_not_constant": st.booleans(),
            "max_recur": st.integers(0, 4),
        },
    ),
)
def test_the_same_constants_are_found(v: Any, options: dict[str, Any]) -> None:
    with switched(accelerators=False):
        expected = found(v, **options)
    with switched(accelerators=["underlying_constants"]):
        assert found(v, **options) == expected


@pytest.mark.parametrize("v", [None, 3, 2.5, np.ones(2), np.float32(1), "text"], ids=repr)
def test_what_is_no_variable(v: Any) -> None:
    with switched(accelerators=False):
        expected = found(v)
    assert found(v) == expected


# Products of matrices ---------------------------------------------------------------------


def test_sums_with_products_are_found() -> None:
    a, b, c = pt.matrices("a", "b", "c")
    v = pt.vector("v")
    dot = blas._dot22(a, b)
    for out, has in (
        (c + dot, True),
        (c - 2.0 * dot, True),
        (-(dot * 3) + c, True),
        (v + dot[:, 0].dimshuffle(0), False),
        (c + pt.exp(dot), False),
        (c + a * 2, False),
    ):
        graph = FunctionGraph([a, b, c, v], [out], clone=False)
        assert no_gemm._has_product(graph, graph.outputs[0].owner) is has, out
        stock = no_gemm._stock_from_node(graph, graph.outputs[0].owner)[0]
        assert (stock is not None) <= has


# Kernels ----------------------------------------------------------------------------------


def kernel(reads_all: bool) -> Any:
    a, b = float64("a"), float64("b")
    return Elemwise(Composite([a, b], [a * b if reads_all else a * a, a + 1.0]))


def test_what_nobody_reads_is_removed() -> None:
    y = pt.vector("y")
    for reads_all in (True, False):
        for used in ([0, 1], [0], [1]):
            outs = kernel(reads_all)(x, y)
            graph = FunctionGraph([x, y], [outs[i] for i in used], clone=False)
            rewriter = WalkingGraphRewriter(local_useless_composite_outputs)
            rewriter.rewrite(graph)
            (node,) = graph.apply_nodes
            assert len(node.outputs) == len(used)
            assert len(node.inputs) == (2 if reads_all and 0 in used else 1)


def test_own_functions_see_all_nodes() -> None:
    """A node rewriter of the user's is tried on each node that it tracks."""
    seen: list[str] = []

    def look(fgraph: Any, node: Any) -> Any:
        seen.append(str(node.op))

    graph = FunctionGraph([x], [pt.exp(x) * 2 + 1, pt.sum(x)])
    rewriter = FromFunctionNodeRewriter(look)
    WalkingGraphRewriter(rewriter).rewrite(graph)
    EquilibriumGraphRewriter([rewriter], max_use_ratio=10).rewrite(graph)
    assert len(seen) == 2 * len(graph.apply_nodes)
