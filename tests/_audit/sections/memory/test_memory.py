"""What an audit says about memory: its peak, copies and sizes, against the arrays of a run."""

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
from pytensor.compile.executor import Function
from pytensor.compile.io import In, Out
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.fg import FunctionGraph
from pytensor.link.vm import VMLinker
from pytensor.scan.op import Scan
from pytensor.tensor.subtensor import set_subtensor

from _audit.sections.memory.audited import FAST_RUN, NO_INPLACE, compiled, memory_of
from pytensor_fuse import audit, enabled
from pytensor_fuse._audit.sections.memory.record import CopyKind, Use
from support.random_graphs.building import Program, build, shapes_of
from support.random_graphs.strategies import any_programs

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
