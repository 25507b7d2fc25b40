"""What an audit says about kernels: against graphs made by hand, arrays of a run, brute force."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.io import In
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import Composite, add, exp, float64, mul, sub
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.subtensor import inc_subtensor, set_subtensor

from pytensor_fuse import enabled, freeze, plan_fusion
from pytensor_fuse._audit.context.build import graph_context
from pytensor_fuse._audit.sections.kernels import analysis
from pytensor_fuse._audit.sections.kernels.analysis import audit_kernels
from pytensor_fuse._audit.sections.kernels.record import KernelCost, KernelKind
from pytensor_fuse._audit.sections.kernels.section import KernelsSection
from support.checker import count_kernels
from support.graphs import computed
from support.random_graphs.building import Program, build, build_fused_and_not, shapes_of
from support.random_graphs.strategies import any_programs

MODES = ["CVM", "NUMBA", "FAST_COMPILE"]


def kernels_of(compiled: Any, shapes: Any = None) -> KernelsSection:
    return audit_kernels(graph_context(compiled, shapes))


# Counts and bytes -------------------------------------------------------------------------


def test_a_graph_made_by_hand() -> None:
    x, y = pt.vector("x"), pt.matrix("y")
    big = pt.constant(np.ones(4))
    total = pt.exp(x) + big
    fgraph = FunctionGraph([x, y], [total, pt.sin(y) * 2.0, (y.T @ y).sum()], clone=False)
    section = kernels_of(fgraph, {"x": (4,), "y": (3, 4)})
    found = {
        k.name.split(": ")[1]: (
            k.scalar_nodes,
            k.arrays_read,
            k.arrays_written,
            k.bytes_read,
            k.bytes_written,
            k.operands,
        )
        for k in section.kernels
    }
    assert found == {
        "Exp": (1, 1, 1, 32, 32, 2),
        "Add": (1, 2, 1, 64, 32, 3),
        "Sin": (1, 1, 1, 96, 96, 2),
        # The number is stretched to a matrix of one element, four bytes in single precision.
        "Mul": (1, 2, 1, 100, 96, 3),
    }
    assert section.after_fusion == 2
    plan_fusion(fgraph).apply()
    section = kernels_of(fgraph, {"x": (4,), "y": (3, 4)})
    assert sorted((k.scalar_nodes, k.bytes_read, k.bytes_written) for k in section.kernels) == [
        (2, 64, 32),
        (2, 100, 96),
    ]
    assert section.after_fusion is None
    assert section.largest is not None
    assert section.largest.nbytes == 196


@given(any_programs(), st.booleans())
def test_bytes_are_those_of_the_arrays(program: Program, fuse: bool) -> None:
    case = build(program)
    if fuse:
        plan_fusion(case.fgraph).apply()
    arrays: dict[Variable, np.ndarray] = computed(case.fgraph, case.values)
    arrays |= dict(zip(case.fgraph.inputs, case.values, strict=True))
    context = graph_context(case.fgraph, shapes_of(case))
    section = audit_kernels(context)
    nodes = {context.name(node): node for node in context.order}
    assert len(section.kernels) == count_kernels(case.fgraph)
    for kernel in section.kernels:
        node = nodes[kernel.name]
        read = {
            v: v.data if hasattr(v, "data") else arrays[v]
            for v in node.inputs
            if not (hasattr(v, "data") and v.data.size == 1)
        }
        assert kernel.arrays_read == len(read)
        assert kernel.bytes_read == sum(np.asarray(a).nbytes for a in read.values())
        assert kernel.bytes_written == sum(np.asarray(arrays[v]).nbytes for v in node.outputs)


@pytest.mark.parametrize("mode", MODES)
def test_compiled_functions(mode: str) -> None:
    x, y = pt.vector("x"), pt.vector("y")
    out = pt.exp(x) * y + pt.sin(y)
    with enabled():
        function = pytensor.function([x, y], [out, out[::2].sum()], mode=get_mode(mode))
    section = kernels_of(function, {x: (1000,), y: (1000,)})
    fused = mode != "FAST_COMPILE"
    of_elements = [k for k in section.kernels if k.kind is KernelKind.ELEMWISE]
    assert len(of_elements) == (1 if fused else 4)
    assert sum(k.scalar_nodes for k in of_elements) == 4
    if fused:
        assert (of_elements[0].bytes_read, of_elements[0].bytes_written) == (16_000, 8_000)
    assert section.max_operands == (32 if mode == "FAST_COMPILE" else 1024)
    assert (section.after_fusion is None) == fused
    json.dumps(section.to_dict())
    assert "exp" in "\n".join(section.lines()).lower()


@pytest.mark.skipif(
    not hasattr(pytensor.tensor.rewriting, "fused_elemwise"), reason="since PyTensor 3.3"
)
def test_a_loop_that_indexes_reads_what_it_picks() -> None:
    x, y, i = pt.vector("x"), pt.vector("y"), pt.lvector("i")
    function = pytensor.function([x, y, i], pt.exp(x[i] + y[i]).sum(), mode="NUMBA")
    section = kernels_of(function, {x: (1000,), y: (900,), i: (50,)})
    [kernel] = section.kernels
    assert kernel.kind is KernelKind.INDEXED
    assert kernel.scalar_nodes == 2
    assert (kernel.bytes_read, kernel.bytes_written) == (3 * 400, 8)


@pytest.mark.skipif(
    not hasattr(pytensor.tensor.rewriting, "fused_elemwise"), reason="since PyTensor 3.3"
)
@pytest.mark.parametrize("inc", [True, False])
def test_a_loop_that_assigns_writes_what_it_computes(inc: bool) -> None:
    x, y, i = pt.vector("x"), pt.vector("y"), pt.lvector("i")
    assign = inc_subtensor if inc else set_subtensor
    function = pytensor.function([In(x, mutable=True), y, i], assign(x[i], pt.exp(y)), mode="NUMBA")
    section = kernels_of(function, {x: (1000,), y: (50,), i: (50,)})
    [kernel] = section.kernels
    assert kernel.kind is KernelKind.INDEXED
    # The numbers and the indices; where it adds, also what is there.
    assert kernel.bytes_read == (3 if inc else 2) * 400
    assert kernel.bytes_written == 400


def test_kernels_of_inner_graphs() -> None:
    x, h = pt.matrix("x"), pt.vector("h")
    states = pytensor.scan(lambda row, state: pt.tanh(state + row), [x], [h], return_updates=False)
    function = pytensor.function([x, h], states, mode="CVM")
    section = kernels_of(function, {x: (10, 4), h: (4,)})
    [kernel] = [k for k in section.kernels if k.path]
    assert "scan" in kernel.path[0].lower()
    assert (kernel.scalar_nodes, kernel.times) == (2, 10)
    assert (kernel.bytes_read, kernel.bytes_written) == (64, 32)
    assert "10 times" in str(kernel)


def test_nothing_to_say() -> None:
    x = pt.matrix("x")
    section = kernels_of(FunctionGraph([x], [x.T], clone=False))
    assert section.kernels == ()
    assert section.largest is None
    assert section.lines() == ["no kernels"]
    assert "no kernels" in section.html()


# Equal kernels ----------------------------------------------------------------------------


def composite(choices: list[int], order: list[int]) -> Composite:
    """A Composite of three inputs, given in some order."""
    inputs = [float64(name) for name in "abc"]
    made: list[Variable] = list(inputs)
    for choice in choices:
        op = (add, mul, sub)[choice % 3]
        made.append(op(made[choice // 3 % len(made)], made[choice // 7 % len(made)]))
    return Composite([inputs[i] for i in order], [exp(made[-1]), made[-2]])


def brute_force_equal(a: Composite, b: Composite) -> bool:
    graph = freeze(list(a.fgraph.inputs), list(a.fgraph.outputs))
    return any(
        freeze(list(inputs), list(b.fgraph.outputs)) == graph
        for inputs in permutations(b.fgraph.inputs)
    )


choices = st.lists(st.integers(0, 80), min_size=2, max_size=5)


@given(choices, st.one_of(st.none(), choices), st.permutations(range(3)), st.permutations(range(3)))
def test_equal_up_to_a_renaming_of_inputs(
    first: list[int], second: list[int] | None, order_a: list[int], order_b: list[int]
) -> None:
    """Two kernels are equal exactly if some order of the inputs makes them so."""
    a = composite(first, order_a)
    b = composite(first if second is None else second, order_b)
    xs = pt.vectors("xyz")
    fgraph = FunctionGraph(xs, [*Elemwise(a)(*xs), *Elemwise(b)(*reversed(xs))], clone=False)
    section = kernels_of(fgraph)
    assert (section.equal == ((0, 1),)) == brute_force_equal(a, b)
    if second is None:
        assert section.equal


def test_operands_of_other_types_are_not_equal() -> None:
    x, m, row = pt.vector("x"), pt.matrix("m"), pt.row("row")
    f = pt.vector("f", dtype="float32")
    outputs = [pt.exp(x), pt.exp(m), pt.exp(row), pt.exp(f), pt.exp(x + 1), pt.exp(pt.sin(x))]
    section = kernels_of(FunctionGraph([x, m, row, f], outputs, clone=False))
    names = [{section.kernels[i].name.split(": ")[1] for i in group} for group in section.equal]
    assert names == [{"Exp"}]
    assert len(section.equal[0]) == 3


def test_kernels_that_differ_by_the_sign_of_zero() -> None:
    a, b = float64("a"), float64("b")
    kernels = [Composite([v], [mul(exp(v), zero)]) for v, zero in ((a, 0.0), (b, -0.0))]
    x = pt.vector("x")
    fgraph = FunctionGraph([x], [Elemwise(k)(x) for k in kernels], clone=False)
    assert kernels_of(fgraph).equal == ()


@given(any_programs(max_steps=8))
def test_a_graph_and_its_copy_are_equal_kernel_by_kernel(program: Program) -> None:
    first, second = build(program), build(program)
    both = FunctionGraph(
        [*first.fgraph.inputs, *second.fgraph.inputs],
        [*first.fgraph.outputs, *second.fgraph.outputs],
        clone=False,
    )
    section = kernels_of(both)
    grouped = {i for group in section.equal for i in group}
    assert grouped == set(range(len(section.kernels)))
    assert all(len(group) % 2 == 0 for group in section.equal)


# Limits -----------------------------------------------------------------------------------


def wide_graph(n: int) -> FunctionGraph:
    xs = [pt.vector(f"x{i}") for i in range(n)]
    first = pt.exp(pt.add(*xs[: n // 2]))
    return FunctionGraph(xs, [pt.sin(pt.add(first, *xs[n // 2 :]))], clone=False)


def test_kernels_that_only_the_limit_keeps_apart() -> None:
    fgraph = wide_graph(40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(analysis, "max_operands", lambda target: 32)
        plan_fusion(fgraph, max_operands=32).apply()
        section = kernels_of(fgraph)
        assert len(section.kernels) == 2
        first, second = section.kernels
        assert first.limited_by == (second.name,)
        assert second.limited_by == (first.name,)
        assert any("limit of 32 operands" in line for line in section.lines())
        assert not [k for k in kernels_of(wide_graph(20)).kernels if k.limited_by]


def test_a_cycle_is_not_the_limit() -> None:
    """Two large kernels with a node between them that cannot be fused."""
    xs = [pt.vector(f"x{i}") for i in range(40)]
    first = pt.add(*xs[:20])
    second = pt.add(first, first[::-1], *xs[20:])
    fgraph = FunctionGraph(xs, [second], clone=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(analysis, "max_operands", lambda target: 32)
        assert not [k for k in kernels_of(fgraph).kernels if k.limited_by]


@given(st.integers(4, 9), any_programs(max_steps=10))
def test_the_limit_agrees_with_the_plan(limit: int, program: Program) -> None:
    """What the audit says of a fused graph, why_not says of it."""
    case = build_fused_and_not(program, limit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(analysis, "max_operands", lambda target: limit)
        context = graph_context(case.fgraph, None)
        section = audit_kernels(context)
    nodes = {context.name(node): node for node in context.order}
    plan = plan_fusion(case.fgraph, max_operands=limit)
    for kernel in section.kernels:
        for name in kernel.limited_by:
            reason = plan.why_not(nodes[kernel.name], nodes[name]).reason
            assert reason.name in (
                "OPERAND_LIMIT",
                "SEVERAL_OUTPUTS",
                "CANNOT_COMPILE",
                # The plan may have put one of them into another kernel.
                "SAME_KERNEL",
                "CYCLE",
                "NOT_CONNECTED",
            )


def test_lists_are_bounded() -> None:
    x = pt.vector("x")
    out: Variable = x
    for _ in range(300):
        out = pt.sin(out)
    section = kernels_of(FunctionGraph([x], [out], clone=False), {"x": (5,)})
    assert len(section.lines()) < 20
    assert any("... and 295 more kernels" in line for line in section.lines())
    assert section.html().count("<tr>") < 250
    assert isinstance(section.kernels[0], KernelCost)


def test_names_are_escaped() -> None:
    x = pt.vector("<script>alert('x')</script>")
    function = pytensor.function([x], pt.exp(x), mode=Mode("py", None))
    assert "<script>" not in kernels_of(function).html()
