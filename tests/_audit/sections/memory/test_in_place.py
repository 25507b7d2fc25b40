"""What works in place, and why the rest does not: against runs, and PyTensor's own refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.aliasing import Supervisor
from pytensor.compile.io import In, Out
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.features import ReplaceValidate
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.utils import InconsistencyError
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.linalg import cholesky, solve_triangular
from pytensor.tensor.rewriting.elemwise import InplaceElemwiseOptimizer
from pytensor.tensor.subtensor import inc_subtensor

from _audit.sections.memory.audited import (
    FAST_RUN,
    NO_INPLACE,
    compiled,
    memory_of,
    python_mode,
    results_by_variable,
)
from pytensor_fuse._audit.context.build import graph_context
from pytensor_fuse._audit.sections.memory.record import NotInPlace, Use
from pytensor_fuse._pytensor.graphs.in_place_ops import in_place_form
from support.random_graphs.building import Program, build
from support.random_graphs.strategies import any_programs

# In place ---------------------------------------------------------------------------------


@given(any_programs(), st.booleans())
def test_results_are_where_the_audit_says(program: Program, mutable: bool) -> None:
    case = build(program)
    function = compiled(case, python_mode(allow_gc=False, optimizer=FAST_RUN), mutable=mutable)
    results = results_by_variable(function, None)
    function(*(v.copy() for v in case.values))
    arrays = {variable: cell[0] for variable, cell in function.vm.storage_map.items()}
    for variable, result in results.items():
        array = arrays[variable]
        inputs = [arrays[v] for v in variable.owner.inputs]
        if not isinstance(array, np.ndarray) or not array.size:
            continue
        shared = [i for i, a in enumerate(inputs) if isinstance(a, np.ndarray)]
        shared = [i for i in shared if np.shares_memory(array, inputs[i])]
        if result.use is Use.ALLOCATED:
            assert not shared, result
        elif not result.may_copy and isinstance(inputs[result.source or 0], np.ndarray):
            assert result.source in shared, result


def test_in_place_view_and_allocated() -> None:
    x = pt.vector("x")
    out = pt.exp(pt.sin(x))[::2]
    function = pytensor.function([x], [out, pt.cumsum(x)], mode=Mode("py", FAST_RUN))
    uses = [r.use for r in results_by_variable(function).values()]
    assert sorted(u.value for u in uses) == ["allocated", "allocated", "view"]
    mutable = pytensor.function([In(x, mutable=True)], pt.exp(x), mode=Mode("py", FAST_RUN))
    [result] = results_by_variable(mutable).values()
    assert (result.use, result.source, result.missed) == (Use.IN_PLACE, 0, ())


# Machine code of this package works in place where it gains.
@pytest.mark.usefixtures("numba_alone")
@pytest.mark.parametrize("mode", ["NUMBA", "CVM"])
def test_compiled_code_works_where_the_audit_says(mode: str) -> None:
    x, y, i = pt.vector("x"), pt.vector("y"), pt.lvector("i")
    inputs = [In(x, mutable=True), In(y, mutable=True), i]
    out = pt.exp(x)
    outputs = [out, out.sum(), inc_subtensor(y[i], pt.exp(i))]
    function = pytensor.function(inputs, [Out(o, borrow=True) for o in outputs], mode=mode)
    values = [np.ones(9), np.zeros(9), np.array([2, 4])]
    context = graph_context(function, None)
    results = results_by_variable(function)
    computed = function(*values)
    for value, variable in zip(computed, context.fgraph.outputs, strict=True):
        if variable.type.ndim == 0:
            continue
        result = results[variable]
        assert result.use is Use.IN_PLACE
        assert not result.may_copy
        source = context.fgraph.inputs.index(variable.owner.inputs[result.source])
        assert np.shares_memory(value, values[source])


# Missed -----------------------------------------------------------------------------------

REFUSED = {
    NotInPlace.CONSTANT,
    NotInPlace.INPUT,
    NotInPlace.SHARED,
    NotInPlace.VIEW_OF_INPUT,
    NotInPlace.OUTPUT,
    NotInPlace.READ_TWICE,
    NotInPlace.TAKEN,
    NotInPlace.SEVERAL_CLIENTS,
}


def is_refused(fgraph: FunctionGraph, node: Apply, output: int, position: int) -> bool:
    """Whether PyTensor refuses a copy of the graph in which the node works in place."""
    op = in_place_form(node, output, position)
    assert op is not None
    supervisors = [f for f in fgraph._features if isinstance(f, Supervisor)]
    protected = [v for s in supervisors for v in s.protected] if supervisors else fgraph.inputs
    # A Supervisor that PyTensor clones goes on to watch the variables of the first graph.
    copy, equivalents = fgraph.clone_get_equiv(attach_feature=False)
    for feature in (
        DestroyHandler(),
        ReplaceValidate(),
        Supervisor([equivalents[v] for v in protected]),
    ):
        copy.attach_feature(feature)
    twin = equivalents[node]
    made = op.make_node(*twin.inputs)
    assert made.op.destroy_map[output] == [position]
    try:
        copy.replace_all_validate(list(zip(twin.outputs, made.outputs, strict=True)))
    except InconsistencyError:
        return True
    return False


def assert_reasons_hold(compiled: Any, shapes: Any = None) -> set[NotInPlace]:
    context = graph_context(compiled, shapes)
    reasons = set()
    for variable, result in results_by_variable(compiled, shapes).items():
        node, output = variable.owner, result.output
        for missed in result.missed:
            reasons.add(missed.reason)
            if missed.reason is NotInPlace.NO_FORM:
                assert in_place_form(node, output, missed.position) is None
                continue
            refused = is_refused(context.fgraph, node, output, missed.position)
            assert refused == (missed.reason in REFUSED), (result, missed)
    return reasons


@given(any_programs(max_steps=10), st.integers(0, 7))
def test_reasons_are_pytensors(program: Program, kind: int) -> None:
    case = build(program)
    optimizer = [None, NO_INPLACE, FAST_RUN, FAST_RUN][kind % 4]
    mode = python_mode(optimizer=optimizer)
    function = compiled(case, mode, mutable=kind > 3)
    fgraph = function.maker.fgraph
    if kind % 4 == 2 and not hasattr(fgraph, "destroy_handler"):
        fgraph.attach_feature(DestroyHandler())
    assert_reasons_hold(function, None)


@given(any_programs(max_steps=10), st.lists(st.booleans(), min_size=20))
def test_reasons_are_pytensors_where_some_nodes_work_in_place(
    program: Program, chosen: list[bool]
) -> None:
    case = build(program)
    fgraph = FunctionGraph(case.fgraph.inputs, case.fgraph.outputs, clone=True)
    for feature in (DestroyHandler(), ReplaceValidate(), Supervisor(fgraph.inputs[:1])):
        fgraph.attach_feature(feature)
    rewriter = InplaceElemwiseOptimizer()
    for node, is_chosen in zip(fgraph.toposort(), chosen, strict=False):
        if is_chosen and isinstance(node.op, Elemwise):
            rewriter.try_inplace_on_node(fgraph, node)
    assert_reasons_hold(fgraph)


def test_every_reason_has_its_graph() -> None:
    x, y = pt.vector("x"), pt.vector("y")
    shared = pytensor.shared(np.ones(3))
    constant = pt.constant(np.ones((3, 3)))
    typed = pt.vector("typed", shape=(3,))
    middle, kept, twice = pt.exp(x), pt.cos(x), pt.sinh(y)
    swapped = twice[::-1]
    outputs = [
        pt.sin(x),  # An input.
        pt.sin(x[::-1]),  # A view of one.
        pt.exp(shared),  # A shared variable that stays.
        constant + pt.outer(x, x),  # A constant.
        kept,
        pt.tan(kept),  # What is returned.
        twice * swapped,  # Read through two inputs.
        pt.tan(middle) + middle,  # Still read by what needs it.
        pt.cumsum(pt.log(x)),  # No such form.
        pt.tanh(pt.tanh(y) + typed),  # Possible.
        pt.sqrt(pt.specify_shape(pt.tan(y), (3,)) * 2)[:2],
        pt.add(pt.sqr(y), pt.cosh(typed)),
    ]
    function = pytensor.function(
        [In(v, mutable=v is typed, borrow=True) for v in (x, y, typed)],
        outputs,
        mode=Mode("py", None),
    )
    reasons = assert_reasons_hold(function, {x: (3,), y: (3,)})
    sine = pt.sin(x)
    sum_in_place = Elemwise(pytensor.scalar.add, {0: 0})
    both = FunctionGraph([x, y], [pt.tan(sine), sum_in_place(sine, y)], clone=False)
    reasons |= assert_reasons_hold(both)
    assert reasons == set(NotInPlace), set(NotInPlace) - reasons


def test_what_dies_is_what_nothing_reads_later() -> None:
    x = pt.vector("x")
    first = pt.exp(x)
    outputs = [pt.cumsum(first), pt.cumprod(first)]
    section = memory_of(FunctionGraph([x], outputs, clone=False), {"x": (5,)})
    missed = {r.node: [m.dies for m in r.missed] for r in section.results}
    names = list(missed)
    assert missed[names[1]] == [False]
    assert missed[names[2]] == [True]
    assert [r.node for r, _ in section.missed if r.node != names[0]] == [names[2]]


def test_linear_algebra_in_place() -> None:
    """A Cholesky factor goes over its input unless that is the caller's."""
    x, b = pt.matrix("x"), pt.vector("b")
    factor = cholesky(x)
    shapes = {"x": (4, 4), "b": (4,)}
    function = pytensor.function([x, b], solve_triangular(factor, b, lower=True), mode="FAST_RUN")
    results = results_by_variable(function, shapes)
    [of_input] = [r for v, r in results.items() if "Chol" in str(v.owner.op)]
    assert [m.reason for m in of_input.missed] == [NotInPlace.INPUT]
    covariance = x.dot(x.T)
    function = pytensor.function([x], cholesky(covariance), mode="FAST_RUN")
    results = results_by_variable(function)
    [in_place] = [r for v, r in results.items() if "Chol" in str(v.owner.op)]
    assert in_place.use is Use.IN_PLACE
    assert_reasons_hold(function)
