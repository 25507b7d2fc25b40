"""Audits as a whole: what they take, what they give, ops that they do not know."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytensor
import pytensor.sparse
import pytensor.tensor as pt
import pytest
from hypothesis import given
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.link.basic import JITLinker
from pytensor.link.vm import VMLinker
from pytensor.scan.utils import until

import pytensor_fuse
from pytensor_fuse import audit
from pytensor_fuse.reports import Audit
from support.graphs import picture
from support.random_graphs.building import Program, build, shapes_of
from support.random_graphs.strategies import any_programs

try:
    from pytensor.conditional.op import ifelse
except ImportError:  # Before PyTensor 3.3.
    from pytensor.ifelse import ifelse

MODES = ["CVM", "NUMBA", "FAST_COMPILE"]


def test_it_takes_functions_and_graphs() -> None:
    x = pt.vector("x")
    fgraph = FunctionGraph([x], [pt.exp(x)], clone=False)
    for compiled in (fgraph, pytensor.function([x], pt.exp(x), mode="FAST_COMPILE")):
        result = audit(compiled)
        assert isinstance(result, Audit)
        assert result.ops.nodes == 1
        assert len(result.kernels.kernels) == 1


@pytest.mark.parametrize("wrong", [3, None, "f", pt.vector("x"), [pt.vector("x")], len])
def test_it_takes_nothing_else(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"a compiled function .* or a FunctionGraph, not"):
        audit(wrong)


def test_frozen_graphs_are_refused() -> None:
    x = pt.vector("x")
    frozen = FunctionGraph([x], [pt.exp(x)]).freeze()
    with pytest.raises(TypeError, match="FrozenFunctionGraph"):
        audit(frozen)


@given(any_programs())
def test_nothing_is_changed_and_each_node_is_counted_once(program: Program) -> None:
    case = build(program)
    before = picture(case.fgraph)
    result = audit(case.fgraph, shapes=shapes_of(case))
    assert picture(case.fgraph) == before
    assert result.ops.nodes == len(case.fgraph.apply_nodes)
    assert sum(result.ops.kinds.values()) == result.ops.nodes
    assert not result.ops.unknown
    again = audit(case.fgraph, shapes=shapes_of(case))
    assert str(again) == str(result)
    assert json.loads(json.dumps(result.to_dict())) == json.loads(json.dumps(again.to_dict()))


@pytest.mark.parametrize("mode", MODES)
def test_a_compiled_function_still_works(mode: str) -> None:
    x, w = pt.matrix("x"), pt.matrix("w")
    states = pytensor.scan(
        lambda row, w: pt.tanh((w * row).sum(axis=1)), [x], non_sequences=[w], return_updates=False
    )
    function = pytensor.function([x, w], states.sum(), mode=get_mode(mode), name="<net & co>")
    values = np.ones((5, 3)), np.eye(3)
    before = function(*values)
    result = audit(function, shapes={"x": (5, 3)})
    np.testing.assert_array_equal(function(*values), before)
    assert "<net & co>" in str(result)
    page = result.to_html()
    assert "<net" not in page
    assert "&lt;net &amp; co&gt;" in page
    assert result.ops.inner_nodes > 0


def test_the_page_can_be_written(tmp_path: Path) -> None:
    x = pt.vector("x")
    result = audit(FunctionGraph([x], [pt.exp(x)]), shapes={"x": (10,)})
    assert result.to_html(tmp_path / "audit.html") is None
    assert (tmp_path / "audit.html").read_text(encoding="utf-8") == result.to_html()
    with pytest.raises(FileNotFoundError, match="missing"):
        result.to_html(tmp_path / "missing" / "audit.html")
    assert "<pre>" in result._repr_html_()


# What is not known ------------------------------------------------------------------------


def odd_graphs() -> dict[str, Any]:
    x, m, n = pt.vector("x"), pt.matrix("m"), pt.lscalar("n")
    matrix = pytensor.sparse.csr_matrix("matrix")
    rng = pytensor.shared(np.random.default_rng(1))
    state, draw = pt.random.normal(size=(3,), rng=rng, return_next_rng=True)
    halves = pytensor.scan(
        lambda v: (v / 2, until(v.max() < 1)), outputs_info=[x], n_steps=10, return_updates=False
    )
    total = pytensor.shared(np.zeros(3))
    return {
        "sparse": ([matrix, x], [pytensor.sparse.structured_dot(matrix, m_of(x))]),
        "random": ([], [draw], {rng: state}),
        "choice": ([x, n], [ifelse(n > 0, pt.exp(x), pt.sin(x))]),
        "while": ([x], [halves]),
        "einsum": ([m], [pt.einsum("ij,jk->ik", m, m)]),
        "batched": ([m], [pt.linalg.cholesky(pt.stack([m, m]) + pt.eye(2))]),
        "update": ([x], [x.sum()], {total: total + x}),
        "nothing": ([], [pt.constant(np.ones(3))]),
        "no outputs": ([x], []),
    }


def m_of(x: Variable) -> Variable:
    return x[:, None]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", list(odd_graphs()))
def test_odd_graphs(name: str, mode: str) -> None:
    inputs, outputs, *updates = odd_graphs()[name]
    if name == "sparse" and mode == "NUMBA":
        pytest.skip("PyTensor has no Numba code for it")
    function = pytensor.function(
        inputs, outputs, updates=dict(*updates), mode=get_mode(mode), on_unused_input="ignore"
    )
    result = audit(function)
    assert str(result)
    assert result.to_html()
    json.dumps(result.to_dict())
    assert not result.ops.unknown
    if name == "choice" and mode == "CVM":
        assert not result.memory.peak.order_is_exact
        assert "what runs depends on values" in str(result)
    if name == "update" and mode == "CVM":
        assert [r for r in result.memory.results if r.use.value == "in place"]


@pytest.mark.parametrize("mode", ["DebugMode", "NanGuardMode", "JAX", "FAST_RUN"])
def test_other_modes(mode: str) -> None:
    if mode == "JAX":
        pytest.importorskip("jax")
    x = pt.vector("x")
    function = pytensor.function([x], [pt.exp(x).sum(), x], mode=mode)
    functions = [function, function.copy()]
    if mode != "NanGuardMode":  # PyTensor cannot pickle its own.
        functions.append(pickle.loads(pickle.dumps(function)))
    for compiled in functions:
        result = audit(compiled, shapes={"x": (3,)})
        nodes = result.ops.nodes - result.ops.inner_nodes
        assert nodes == len(compiled.maker.fgraph.apply_nodes)
        assert str(result)


def test_one_piece_of_c_code() -> None:
    x = pt.vector("x")
    function = pytensor.function([x], pt.exp(pt.sin(x)), mode=Mode("c", optimizer=None))
    result = audit(function, shapes={"x": (4,)})
    assert result.ops.nodes == len(function.maker.fgraph.apply_nodes)
    assert not result.memory.peak.allow_gc


def test_inputs_that_were_cloned_are_known_by_name() -> None:
    x = pt.vector("x")
    cloned = FunctionGraph([x], [pt.exp(x)], clone=True)
    with pytest.raises(ValueError, match=r"an input of that name is: .* clone=False"):
        audit(cloned, shapes={x: (3,)})
    assert audit(cloned, shapes={"x": (3,)}).memory.peak.nbytes == 24


def test_many_inputs_without_names() -> None:
    """Their places are looked up, not searched for."""
    inputs = [pt.vector() for _ in range(6000)]
    fgraph = FunctionGraph(inputs, [pt.exp(v) for v in inputs], clone=False)
    begin = time.process_time()
    result = audit(fgraph)
    assert time.process_time() - begin < 5
    missed = {m.variable for r in result.memory.results for m in r.missed}
    assert missed == {f"input {i}" for i in range(6000)}


def test_many_copies_of_one_result() -> None:
    x = pt.vector("x")
    out = pt.exp(x)
    function = pytensor.function([x], [out[i:] for i in range(300)], mode=Mode("py", None))
    copies = audit(function).memory.copies
    whys = [copy.why for copy in copies]
    assert len(whys) >= 299
    assert set(whys) <= {f"it shares memory with output {i}" for i in (0, 1, 299)}


def test_constants_that_cannot_be() -> None:
    n = pt.lscalar("n")
    lengths = [pt.constant(5) // pt.constant(0), n // pt.constant(0)]
    fgraph = FunctionGraph([n], [pt.alloc(0.0, m) for m in (*lengths, pt.constant(-3))])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        peak = audit(fgraph).memory.peak
    assert not said
    assert peak.nbytes == 0
    assert peak.n_unknown >= 2


def test_shapes_that_cannot_be_are_an_error_only_if_they_are_given() -> None:
    """Data may be exchanged before the next call."""
    data = pytensor.shared(np.ones(3), name="data")
    x = pt.vector("x")
    function = pytensor.function([x], x + data + pt.constant(np.ones(4)), mode="FAST_COMPILE")
    assert audit(function).ops.nodes == 2
    with pytest.raises(ValueError, match="cannot run on inputs of these shapes"):
        audit(function, shapes={"x": (3,)})


# Import -----------------------------------------------------------------------------------


def test_the_name_is_there_without_pytensor() -> None:
    code = (
        "import sys, pytensor_fuse; assert 'audit' in dir(pytensor_fuse); "
        "print('pytensor' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert pytensor_fuse.audit is audit


def test_a_py_mode_without_rewrites() -> None:
    x = pt.vector("x")
    function = pytensor.function([x], pt.exp(x), mode=Mode("py", None))
    assert "compiled for python" in str(audit(function))


class SomebodysLinker(JITLinker):
    """Hands the whole graph to a compiler that nobody knows: here each node's own Python."""

    def fgraph_convert(self, fgraph, **kwargs):
        def run(*inputs):
            memory = dict(zip(fgraph.inputs, ([value] for value in inputs), strict=True))
            for node in fgraph.toposort():
                read = [v.data if isinstance(v, Constant) else memory[v][0] for v in node.inputs]
                memory.update({v: [None] for v in node.outputs})
                node.op.perform(node, read, [memory[v] for v in node.outputs])
            return tuple(memory[v][0] for v in fgraph.outputs)

        return run

    def jit_compile(self, fn):
        return fn

    def create_thunk_inputs(self, storage_map):
        return [storage_map[v] for v in self.fgraph.inputs]


def test_a_linker_that_is_not_known_is_not_taken_for_python() -> None:
    x, y = pt.vectors("x", "y")
    mode = Mode(SomebodysLinker(), Mode("py", "fast_run").excluding("fusion", "inplace")._optimizer)
    f = pytensor.function([x, y], pt.concatenate([pt.exp(x) * 2, y]), mode=mode)
    assert f([0.0], [3.0]).tolist() == [2.0, 3.0]
    found = audit(f, shapes={"x": (4,), "y": (2,)})
    assert (found.linker, found.target) == ("SomebodysLinker", None)
    assert "compiled by SomebodysLinker, whose way of running is unknown to the audit" in str(found)
    assert "python" not in found.title
    assert found.to_dict()["linker"] == "SomebodysLinker"
    assert found.to_dict()["target"] is None
    # When arrays go away is not known, nor whether it fuses.
    assert not found.memory.peak.release_is_sure
    assert found.kernels.after_fusion is None
    assert pytensor_fuse.plan_fusion(f).target == "strict"


@pytest.mark.parametrize(
    ("mode", "linker", "target"),
    [
        (Mode("py", "fast_run"), "PerformLinker", "python"),
        (Mode(VMLinker(c_thunks=False), None), "VMLinker", "python"),
        ("CVM", "VMLinker", "c"),
        ("NUMBA", "NumbaLinker", "numba"),
    ],
)
def test_linkers_that_are_known(mode: object, linker: str, target: str) -> None:
    x = pt.vector("x")
    found = audit(pytensor.function([x], pt.exp(x) * 2, mode=mode))
    assert (found.linker, found.target) == (linker, target)
    assert f"compiled for {target}" in found.title


def test_a_graph_has_no_linker() -> None:
    x = pt.vector("x")
    found = audit(FunctionGraph([x], [pt.exp(x)], clone=False))
    assert (found.linker, found.target) == (None, None)
    assert set(found.to_dict()) >= {"format", "versions", "title", "linker", "target", "kernels"}
    assert found.to_dict()["format"] == 1


def test_jax() -> None:
    pytest.importorskip("jax")
    x = pt.vector("x")
    found = audit(pytensor.function([x], pt.exp(x) * 2, mode="JAX"))
    assert (found.linker, found.target) == ("JAXLinker", None)
    assert "python" not in str(found)
