"""What an audit says about memory: against the arrays of a run, and PyTensor's own refusals."""

from __future__ import annotations

import gc
import json
import time
import tracemalloc
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.aliasing import Supervisor
from pytensor.compile.executor import Function
from pytensor.compile.io import In, Out
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.features import ReplaceValidate
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.graph.utils import InconsistencyError
from pytensor.link.basic import PerformLinker
from pytensor.link.vm import VMLinker
from pytensor.scan.op import Scan
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.linalg import cholesky, solve_triangular
from pytensor.tensor.rewriting.elemwise import InplaceElemwiseOptimizer
from pytensor.tensor.subtensor import inc_subtensor, set_subtensor

from pytensor_fuse import audit, enabled
from pytensor_fuse._audit.context.build import graph_context
from pytensor_fuse._audit.sections.memory.analysis import audit_memory
from pytensor_fuse._audit.sections.memory.record import CopyKind, NotInPlace, Result, Use
from pytensor_fuse._audit.sections.memory.section import MemorySection
from pytensor_fuse._pytensor.graphs.in_place_ops import in_place_form
from support.strategies import Case, Program, any_programs, build, shapes_of

FAST_RUN = RewriteDatabaseQuery(include=["fast_run"])
NO_INPLACE = RewriteDatabaseQuery(include=["fast_run"], exclude=["inplace"])


def python_mode(*, allow_gc: bool = True, optimizer: Any = None) -> Mode:
    return Mode(PerformLinker(allow_gc=allow_gc), optimizer)


def compiled(case: Case, mode: Mode, *, mutable: bool = False) -> Function:
    inputs = [In(v, borrow=mutable, mutable=mutable) for v in case.fgraph.inputs]
    return pytensor.function(inputs, list(case.fgraph.outputs), mode=mode, on_unused_input="ignore")


def memory_of(function: Any, shapes: Any = None) -> MemorySection:
    return audit_memory(graph_context(function, shapes))


def results_by_variable(function: Any, shapes: Any = None) -> dict[Variable, Result]:
    context = graph_context(function, shapes)
    nodes = {context.name(node): node for node in context.order}
    return {nodes[r.node].outputs[r.output]: r for r in audit_memory(context).results if not r.path}


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


# Peak -------------------------------------------------------------------------------------


def live_in_run(function: Function, values: list[np.ndarray]) -> list[int]:
    """The bytes that the cells of a run hold after each node.

    Inputs, constants, and arrays of one element do not count.
    """
    cells = {
        v: cell
        for v, cell in function.vm.storage_map.items()
        if v.owner is not None and getattr(v.type, "ndim", 0)
    }
    before = [cell for v, cell in function.vm.storage_map.items() if v.owner is None]
    live: list[int] = []

    def owner_of(array: np.ndarray) -> np.ndarray:
        while isinstance(array.base, np.ndarray):
            array = array.base
        return array

    def measure() -> None:
        known = {id(owner_of(c[0])) for c in before if isinstance(c[0], np.ndarray)}
        arrays = [c[0] for c in cells.values() if isinstance(c[0], np.ndarray)]
        owners = {id(owner_of(a)): owner_of(a) for a in arrays}
        live.append(sum(a.nbytes for i, a in owners.items() if i not in known and a.size > 1))

    def noting(thunk: Any) -> Any:
        def run() -> None:
            thunk()
            measure()

        return run

    function.vm.thunks = [noting(thunk) for thunk in function.vm.thunks]
    function.vm.time_thunks = False
    function.trust_input = False
    function(*values)
    return live


@given(any_programs(), st.booleans(), st.sampled_from([None, NO_INPLACE, FAST_RUN]))
def test_the_peak_is_that_of_a_run(program: Program, allow_gc: bool, optimizer: Any) -> None:
    case = build(program)
    linker = VMLinker(use_cloop=False, c_thunks=False, allow_gc=allow_gc)
    function = compiled(case, Mode(linker, optimizer))
    peak = memory_of(function, shapes_of(case)).peak
    assert peak.allow_gc == allow_gc
    live = live_in_run(function, case.values)
    assert not peak.n_unknown
    if peak.is_exact:
        assert list(peak.live) == live
        assert peak.nbytes == max(live, default=0)
    else:
        assert peak.n_may_copy
        assert all(a <= b for a, b in zip(peak.live, live, strict=True))


@pytest.mark.parametrize("optimizer", [None, FAST_RUN], ids=["as it is", "fast_run"])
@pytest.mark.parametrize("linker", ["py", "vm", "cvm"])
def test_the_peak_is_what_tracemalloc_sees(linker: str, optimizer: Any) -> None:
    n = 200_000
    x = pt.vector("x")
    wide = pt.concatenate([pt.exp(x), pt.cumsum(x), pt.cos(x)])
    out = pt.exp(pt.cumsum(wide[::2])) - wide[1::2]
    function = pytensor.function([x], [out, out[:5]], mode=Mode(linker, optimizer))
    if linker == "py" and optimizer is not None:
        pytest.skip("in Python, work in place computes beside it first")
    peak = memory_of(function, {x: (n,)}).peak
    assert peak.is_exact
    assert peak.nbytes >= 4 * n * 8
    value = np.zeros(n)
    function(value)
    gc.collect()
    tracemalloc.start()
    try:
        base = tracemalloc.get_traced_memory()[0]
        function(value)
        measured = tracemalloc.get_traced_memory()[1] - base
    finally:
        tracemalloc.stop()
    assert measured == pytest.approx(peak.nbytes, rel=0.01)


def test_sizes_that_are_not_known_are_counted() -> None:
    x = pt.vector("x")
    fgraph = FunctionGraph([x], [pt.exp(pt.sin(x))], clone=False)
    peak = memory_of(fgraph).peak
    assert (peak.nbytes, peak.n_unknown, peak.is_exact) == (0, 2, False)
    assert str(peak).startswith("live at the peak: not known (2 results of unknown size; give ")
    assert memory_of(fgraph, {"x": (4,)}).peak.nbytes == 64


def test_an_empty_graph() -> None:
    x = pt.vector("x")
    section = memory_of(FunctionGraph([x], [x], clone=False))
    assert section.results == ()
    assert section.peak.nbytes == 0
    assert section.lines()
    assert section.html()
    json.dumps(section.to_dict())


# Copies -----------------------------------------------------------------------------------


def test_copies_are_found_with_their_sizes() -> None:
    x, y = pt.vector("x"), pt.vector("y")
    outputs = [
        pt.join(0, x, y[::-1]),
        set_subtensor(x[:2], 0.0),
        pt.zeros(x.shape[0] + 1),
    ]
    function = pytensor.function([x, y], outputs, mode=Mode("py", None))
    section = memory_of(function, {x: (10,), y: (5,)})
    found = {c.kind: c.nbytes for c in section.copies}
    results = function(np.ones(10), np.ones(5))
    assert found == {
        CopyKind.JOIN: results[0].nbytes,
        CopyKind.ASSIGNMENT: results[1].nbytes,
        CopyKind.FILL: results[2].nbytes,
    }


@pytest.mark.parametrize("mode", [Mode("py", FAST_RUN), "CVM"])
def test_copies_at_the_boundary(mode: Any) -> None:
    x = pt.vector("x")
    out = pt.exp(x)
    constant = pt.constant(np.ones(7), name="ones")
    function = pytensor.function([x], [x, x[::-1], out, out[::2], constant], mode=mode)
    section = memory_of(function, {x: (8,)})
    whys = {c.why: c.nbytes for c in section.copies if c.kind is CopyKind.BOUNDARY}
    value = np.ones(8)
    results = function(value)
    assert not any(np.shares_memory(value, result) for result in results)
    assert sum(whys.values()) == sum(
        results[i].nbytes for i in ((0, 1, 2, 4) if "output 3" in str(whys) else (0, 1, 3, 4))
    )
    text = "; ".join(whys)
    assert "it is the input x" in text
    assert "it is declared a view of the input x" in text
    assert "shares memory with output" in text
    assert "it is a constant" in text
    borrowed = pytensor.function([In(x, borrow=True)], Out(x[::-1], borrow=True), mode=mode)
    assert not memory_of(borrowed, {x: (8,)}).copies
    assert np.shares_memory(value, borrowed(value))


def test_joins_are_explained() -> None:
    x, y = pt.vector("x"), pt.vector("y")
    with enabled():
        kernels = pytensor.function([x, y], pt.join(0, pt.exp(x) * x, pt.sin(y) * y), mode="NUMBA")
        inputs = pytensor.function([x, y], pt.join(0, x, y), mode="NUMBA")
    section = memory_of(kernels, {x: (1000,), y: (1000,)})
    assert section.joins_eliminated == 1
    assert not section.peak.is_exact
    assert "the compiler may let go of arrays later" in str(section.peak)
    assert not [c for c in section.copies if c.kind is CopyKind.JOIN]
    assert section.peak.nbytes == 16_000, "the streams are parts of the result"
    section = memory_of(inputs, {x: (1000,), y: (1000,)})
    [copy] = section.copies
    assert copy.nbytes == 16_000
    assert copy.why


# What is not a dense array ----------------------------------------------------------------


def parts_nbytes(matrix: Any) -> int:
    return matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes


def test_the_size_of_a_sparse_matrix_is_that_of_what_it_stores() -> None:
    scipy_sparse = pytest.importorskip("scipy.sparse")
    sparse = pytest.importorskip("pytensor.sparse")
    eye = scipy_sparse.eye(500, format="csr")
    twice = sparse.shared(2 * eye, name="twice")
    b = sparse.csr_matrix("b")
    constant = sparse.as_sparse_variable(eye)
    out = sparse.add(sparse.add(b, constant), twice)
    function = pytensor.function([b], [out, sparse.transpose(b)], mode=Mode("py", FAST_RUN))
    section = memory_of(function, {"b": (500, 500)})
    assert section.peak.constants == parts_nbytes(eye)
    assert section.peak.inputs == parts_nbytes(twice.get_value())
    assert [r.nbytes for r in section.results] == [None] * len(section.results)
    assert not [m for r in section.results for m in r.missed]
    assert section.peak.n_unknown == section.peak.n_stored > 0
    assert not section.peak.is_exact
    assert "depends on the elements that are stored" in str(section.peak)
    assert "give shapes=" not in str(section.peak)


def test_lists_hold_arrays() -> None:
    typed_list = pytest.importorskip("pytensor.typed_list")
    z = pt.tensor("z", shape=(100, 100))
    out = typed_list.make_list([pt.exp(z), pt.sin(z)])[0].sum()
    peak = memory_of(pytensor.function([z], out, mode=Mode("py", FAST_RUN))).peak
    assert peak.n_stored
    assert not peak.is_exact


def test_generators_of_random_numbers_are_not_copied() -> None:
    rng = pytensor.shared(np.random.default_rng(0))
    next_rng, draws = pt.random.normal.make_node(rng, (100,), 0.0, 1.0).outputs
    function = pytensor.function([], draws, updates={rng: next_rng}, mode=Mode("py", FAST_RUN))
    peak = memory_of(function).peak
    assert any(node.op.destroy_map for node in function.maker.fgraph.apply_nodes)
    assert peak.n_may_copy == 0
    assert peak.is_exact
    assert peak.nbytes == function().nbytes
    assert "what nodes use while they run is left out" in str(peak)


@pytest.mark.parametrize("mode", ["NUMBA", "FAST_RUN"])
def test_what_a_scan_declares_a_view_may_be_none(mode: str) -> None:
    """PyTensor 3.3 declares views of states of which only the last is kept."""
    x = pt.matrix("x")
    states = pytensor.scan(lambda a: a * 2.0, outputs_info=[x], n_steps=3, return_updates=False)
    function = pytensor.function([In(x, borrow=True)], Out(states[-1], borrow=True), mode=mode)
    value = np.ones((4, 4))
    assert not np.shares_memory(function(value), value)
    section = memory_of(function, {"x": (4, 4)})
    scans = [n for n in function.maker.fgraph.apply_nodes if isinstance(n.op, Scan)]
    views = [r for r in section.results if "can" in r.node and r.use is Use.VIEW and not r.path]
    declared = sum(len(node.op.view_map) for node in scans)
    assert sum(r.may_copy for r in views) >= declared
    if declared:
        assert section.peak.n_may_copy >= declared
        assert not section.peak.is_exact


# Report -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["CVM", "NUMBA", "FAST_COMPILE"])
def test_reports_of_compiled_functions(mode: str) -> None:
    x, w = pt.matrix("x"), pt.matrix("w")
    states = pytensor.scan(
        lambda row, w: pt.tanh(w.dot(row)), [x], non_sequences=[w], return_updates=False
    )
    logits = pt.concatenate([states, x], axis=0)
    function = pytensor.function([x, w], [logits, logits.sum(), x], mode=get_mode(mode))
    result = audit(function, shapes={"x": (50, 20), "w": (20, 20)})
    section = result.memory
    text = "\n".join(section.lines())
    assert "live at the peak" in text
    assert "16 kB" in text
    json.dumps(section.to_dict())
    assert "<table>" in section.html()
    inner = [r for r in section.results if r.path]
    assert inner
    assert all(not r.missed for r in inner)


def test_lists_are_bounded() -> None:
    xs = [pt.vector(f"x{i}") for i in range(60)]
    outputs = [set_subtensor(x[:1], 0) for x in xs]
    section = memory_of(FunctionGraph(xs, outputs, clone=False), {f"x{i}": (9,) for i in range(60)})
    assert len(section.lines()) < 30
    assert any("... and 52 more copies" in line for line in section.lines())


@given(any_programs(max_steps=14), st.booleans())
def test_many_readers_are_judged_as_few(program: Program, no_sets: bool) -> None:
    case = build(program)
    fgraph = case.fgraph
    expected = memory_of(fgraph).to_dict()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pytensor_fuse._audit.sections.memory.in_place._FEW", 0)
        if no_sets:
            patch.setattr("pytensor_fuse._audit.sections.memory.in_place.Aliases._ancestors", None)
        assert memory_of(fgraph).to_dict() == expected
        patch.setattr("pytensor_fuse._audit.sections.memory.in_place._FEW", 100)
        assert memory_of(fgraph).to_dict() == expected


def test_many_readers_do_not_take_long() -> None:
    """As many pairs as nodes squared."""
    x = pt.vector("x")
    middle = pt.exp(x)
    outputs = [pt.sin(middle + i) for i in range(4000)]
    fgraph = FunctionGraph([x], [pt.add(*outputs)], clone=False)
    start = time.process_time()
    section = memory_of(fgraph, {"x": (3,)})
    assert time.process_time() - start < 30
    assert len(section.results) > 8000
