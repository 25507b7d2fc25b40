"""The public interface: what it accepts, what it refuses, what it shows."""

from __future__ import annotations

import dataclasses

import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.fg import FunctionGraph
from pytensor.link.c.basic import CLinker
from pytensor.link.numba.linker import NumbaLinker
from pytensor.link.vm import VMLinker
from pytensor.tensor.rewriting.elemwise import elemwise_max_operands_fct

import pytensor_fuse
from support.graphs import deep_small_kernels, fingerprint, reverse


def graph_without_c_code() -> FunctionGraph:
    x = pt.vector("x")
    return FunctionGraph([x], [pt.sin(pt.erfcinv(x))], clone=False)


# Arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize("not_a_graph", [None, [], "x", pt.vector("x"), pt.exp(pt.vector("x"))])
def test_the_graph_must_be_a_function_graph(not_a_graph: object) -> None:
    with pytest.raises(TypeError, match=r"FunctionGraph.*" + type(not_a_graph).__name__):
        pytensor_fuse.plan_fusion(not_a_graph)


@pytest.mark.parametrize("target", ["", "C", "gpu", "jax", "STRICT"])
def test_unknown_targets_are_named(target: str) -> None:
    with pytest.raises(ValueError, match=f"{target!r}.*'c'.*'numba'"):
        pytensor_fuse.plan_fusion(graph_without_c_code(), target=target)


@pytest.mark.parametrize("target", [1, ["c"], b"c", Mode, NumbaLinker])
def test_targets_of_the_wrong_type_are_named(target: object) -> None:
    with pytest.raises(TypeError, match=f"target.*{type(target).__name__}"):
        pytensor_fuse.plan_fusion(graph_without_c_code(), target=target)


@pytest.mark.parametrize("limit", [1, 0, -3])
def test_limits_below_two_operands_are_refused(limit: int) -> None:
    with pytest.raises(ValueError, match=f"max_operands.*{limit}"):
        pytensor_fuse.plan_fusion(graph_without_c_code(), max_operands=limit)


@pytest.mark.parametrize("limit", [2.5, "7", 4.0, True, [3]])
def test_limits_must_be_integers(limit: object) -> None:
    with pytest.raises(TypeError, match=f"max_operands.*{type(limit).__name__}"):
        pytensor_fuse.plan_fusion(graph_without_c_code(), max_operands=limit)


@pytest.mark.parametrize("limit", [2**31, 2**32, 2**64, 10**30])
def test_enormous_limits_do_not_bind(limit: int) -> None:
    fgraph = deep_small_kernels(3)
    plan = pytensor_fuse.plan_fusion(fgraph, max_operands=limit)
    assert fingerprint(plan, fgraph) == fingerprint(pytensor_fuse.plan_fusion(fgraph), fgraph)


def test_options_are_keywords() -> None:
    with pytest.raises(TypeError):
        pytensor_fuse.plan_fusion(deep_small_kernels(1), "c")


@pytest.mark.parametrize(
    ("target", "fuses"),
    [
        (None, False),
        ("c", False),
        ("python", False),
        ("numba", True),
        (NumbaLinker(), True),
        (CLinker(), False),
        (VMLinker(), False),
        (Mode(NumbaLinker(), optimizer=None), True),
        (get_mode("NUMBA"), True),
        (get_mode("CVM"), False),
    ],
)
def test_targets(target: object, fuses: bool) -> None:
    plan = pytensor_fuse.plan_fusion(graph_without_c_code(), target=target)
    assert bool(plan.kernels) is fuses


@pytest.mark.parametrize("target", [None, "c", "python", "numba", "strict", get_mode("CVM")])
def test_the_target_that_a_plan_prints_can_be_given(target: object) -> None:
    fgraph = deep_small_kernels(2)
    plan = pytensor_fuse.plan_fusion(fgraph, target=target)
    printed = str(plan).splitlines()[0].split("'")[1]
    assert printed == plan.target
    again = pytensor_fuse.plan_fusion(fgraph, target=printed)
    assert str(again) == str(plan)
    assert fingerprint(again, fgraph) == fingerprint(plan, fgraph)


@pytest.mark.parametrize(("mode", "target"), [(Mode("py", "fast_run"), "python"), ("CVM", "c")])
def test_a_compiled_function(mode: object, target: str) -> None:
    x = pt.vector("x")
    with pytensor_fuse.enabled(False):
        f = pytensor.function([x], pt.exp(x) * 2, mode=get_mode(mode).excluding("fusion"))
    plan = pytensor_fuse.plan_fusion(f)
    assert plan.target == target
    assert plan.stats.kernels_before == 2
    assert plan.stats.kernels_after == 1
    nodes = f.maker.fgraph.toposort()
    assert plan.why_not(*nodes).reason is pytensor_fuse.reports.Reason.SAME_KERNEL
    with pytest.raises(
        pytensor_fuse.exceptions.FusionError, match="compiled function, which stays"
    ):
        plan.apply()
    assert f.maker.fgraph.toposort() == nodes
    assert pytensor_fuse.plan_fusion(f, target="numba").target == "numba"


@pytest.mark.parametrize("mode", [Mode("py", "fast_run"), "NUMBA"], ids=["python", "numba"])
def test_kernels_of_a_compiled_function_are_counted(mode: object) -> None:
    x, i = pt.vector("x"), pt.lvector("i")
    outputs = [pt.exp(x) * 2, pt.sin(x).sum(), pt.exp(x.sum())[None][i] + 1]
    f = pytensor.function([x, i], outputs, mode=mode)
    kernels = [k for k in pytensor_fuse.audit(f).kernels.kernels if sum(k.scalar_ops.values()) > 1]
    plan = pytensor_fuse.plan_fusion(f)
    assert kernels
    assert f"; {len(kernels)} kernel" in str(plan)
    assert "made before" not in str(pytensor_fuse.plan_fusion(FunctionGraph([x], [pt.exp(x)])))


@pytest.mark.parametrize("mode", [Mode("py", "fast_run"), "NUMBA"], ids=["python", "numba"])
def test_single_operations_are_not_counted_as_kernels(mode: object) -> None:
    x, i = pt.vector("x"), pt.lvector("i")
    f = pytensor.function([x, i], [pt.sin(x).sum(), pt.cos(x[i])], mode=mode)
    if mode == "NUMBA" and not pytensor.__version__.startswith("3.0."):
        kinds = {type(node.op).__name__ for node in f.maker.fgraph.apply_nodes}
        assert "FusedElemwise" in kinds
    assert "made before" not in str(pytensor_fuse.plan_fusion(f))


def test_the_default_limit_is_stocks() -> None:
    fgraph = deep_small_kernels(2)
    stock_limit = elemwise_max_operands_fct(None)
    assert str(stock_limit) in str(pytensor_fuse.plan_fusion(fgraph))
    assert "at most 7" in str(pytensor_fuse.plan_fusion(fgraph, max_operands=7))


# What plans look like ---------------------------------------------------------------------


def test_the_parts_of_a_plan_are_tuples_of_the_graphs_own_objects() -> None:
    x = pt.vector("x")
    a = pt.sin(x)
    b = pt.cos(a)
    c = reverse(b)
    fgraph = FunctionGraph([x], [c], clone=False)
    plan = pytensor_fuse.plan_fusion(fgraph)
    (kernel,) = plan.kernels
    assert kernel.nodes == (a.owner, b.owner)
    assert kernel.inputs == (x,)
    assert kernel.outputs == (b,)
    # The slice is one node; in some versions its bounds are others.
    assert c.owner in plan.unfused
    for parts in (plan.kernels, kernel.nodes, kernel.inputs, kernel.outputs, plan.unfused):
        assert isinstance(parts, tuple)


def test_stats_are_frozen_integers() -> None:
    stats = pytensor_fuse.plan_fusion(deep_small_kernels(2)).stats
    assert dataclasses.is_dataclass(stats)
    fields = [field.name for field in dataclasses.fields(stats)]
    assert fields == [
        "nodes",
        "fusable",
        "kernels_before",
        "kernels_after",
        "arrays_before",
        "arrays_after",
        "kernels_bound",
        "arrays_bound",
        "proven",
    ]
    assert all(type(getattr(stats, name)) is int for name in fields[:-1])
    assert stats.proven is True
    with pytest.raises(dataclasses.FrozenInstanceError):
        stats.nodes = 0
    # Two transposes, and thrice two Elemwise nodes.
    assert dataclasses.astuple(stats) == (8, 6, 6, 2, 14, 6, 2, 6, True)


def test_kernels_are_frozen() -> None:
    (kernel, *_) = pytensor_fuse.plan_fusion(deep_small_kernels(1)).kernels
    with pytest.raises(AttributeError):
        kernel.nodes = ()


def test_text_shows_the_figures() -> None:
    plan = pytensor_fuse.plan_fusion(deep_small_kernels(20))
    text = str(plan)
    assert "60 -> 20" in text
    assert len(text.splitlines()) < 60
    assert all(len(line) < 200 for line in text.splitlines())
    assert "60" in repr(plan)
    assert "\n" not in repr(plan)


def test_text_accounts_for_all_kernels() -> None:
    x = pt.vector("x")
    out = pt.exp(pt.sin(x))
    plan = pytensor_fuse.plan_fusion(FunctionGraph([x], [pt.log(out.sum()), pt.cos(out.sum() + 1)]))
    n_alone = plan.stats.kernels_after - len(plan.kernels)
    assert n_alone > 0
    assert f"-> {plan.stats.kernels_after}, of which {n_alone} " in str(plan)


def test_text_of_large_plans_and_kernels_stays_short() -> None:
    x = pt.vector("x")
    out = x
    for op in [pt.sin, pt.cos, pt.tanh, pt.exp] * 200:
        out = op(out)
    for fgraph in (deep_small_kernels(300), FunctionGraph([x], [out], clone=False)):
        assert len(str(pytensor_fuse.plan_fusion(fgraph))) < 5000


def test_text_of_an_empty_plan() -> None:
    plan = pytensor_fuse.plan_fusion(FunctionGraph([], [], clone=False))
    assert "0 -> 0" in str(plan)


def test_text_is_that_of_the_plan_after_it_was_applied() -> None:
    plan = pytensor_fuse.plan_fusion(deep_small_kernels(2))
    before = str(plan)
    plan.apply()
    assert str(plan) == before


# Names ------------------------------------------------------------------------------------


def test_errors_have_one_base() -> None:
    assert issubclass(pytensor_fuse.exceptions.StalePlanError, pytensor_fuse.exceptions.FusionError)
    assert issubclass(pytensor_fuse.exceptions.FusionError, RuntimeError)
    assert pytensor_fuse.exceptions.FusionError is not RuntimeError


def test_a_plan_knows_the_strategy_that_made_it() -> None:
    plan = pytensor_fuse.plan_fusion(deep_small_kernels(2))
    assert plan.strategy == "growth from sinks"
    assert plan.exhausted == ()
    x = pt.vector("x")
    alone = pytensor_fuse.plan_fusion(FunctionGraph([x], [pt.exp(x)]))
    assert alone.strategy is None
