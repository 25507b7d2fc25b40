"""What graphs depend on beside what PyTensor compares: constants, callables, types, logs."""

from __future__ import annotations

import functools
import logging
from importlib.metadata import PathDistribution
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytensor
import pytensor.scalar as ps
import pytensor.sparse as sparse
import pytensor.tensor as pt
import pytest
import scipy.sparse
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.io import Out
from pytensor.compile.ops import FromFunctionOp
from pytensor.graph.rewriting.basic import FromFunctionNodeRewriter, PatternNodeRewriter
from pytensor.tensor.elemwise import CAReduce, Elemwise
from pytensor.tensor.type import TensorType

from _cache.test_twins import INNER_GRAPHS_CHANGE, registered
from pytensor_fuse import enabled, explain
from pytensor_fuse._cache.key import environment as surroundings
from pytensor_fuse._cache.key.environment import Registrations
from pytensor_fuse.cache import info as cache_info
from support.cached import PYTHON, assert_same_graphs, assert_same_results, compiled


@pytest.mark.parametrize("first", [False, True])
def test_notes_in_tags_of_constants(first: bool) -> None:
    data = np.eye(3) + 0.1

    def make(noted: bool) -> Any:
        factor = pt.constant(data)
        if noted:
            factor.tag.lower_triangular = True
        return compiled([], [pt.linalg.cholesky(factor @ factor.T)])

    for noted in (first, not first, first):
        function = make(noted)
        with enabled(False, "cache"):
            fresh = make(noted)
        assert_same_graphs(function, fresh)
        assert_same_results(function, fresh, [])
    assert any("has notes in its tag: lower_triangular" in one for one in cache_info().not_kept)
    # What PyTensor remembers of constants' data is no note.
    assert cache_info().misses == 1


def test_notes_of_nodes_that_were_run() -> None:
    for note in ("ufunc", "ufunc", "mine"):
        x = pt.vector("x")
        y = pt.exp(x) + 1
        setattr(y.owner.tag, note, None)
        compiled([x], [y])
    assert cache_info().hits == 1
    [reason] = cache_info().not_kept
    assert reason == "a node of Add has notes in its tag: mine"


def of_inner_graph(data: np.ndarray, mode: Any) -> Any:
    x, inner = pt.vector("x"), pt.vector("inner")
    op = OpFromGraph([inner], [pt.exp(inner) * pt.constant(data)])
    return compiled([x], [op(x) + 1], mode=mode)


def of_nested_graph(data: np.ndarray, mode: Any) -> Any:
    x, one, two = pt.vector("x"), pt.vector("one"), pt.vector("two")
    inner = OpFromGraph([one], [pt.exp(one) * pt.constant(data)])
    return compiled([x], [OpFromGraph([two], [inner(two) - 1])(x)], mode=mode)


def of_scan(data: np.ndarray, mode: Any) -> Any:
    x = pt.vector("x")
    steps = pytensor.scan(
        lambda one, total: total * pt.constant(data) + one,
        sequences=[x[:2]],
        outputs_info=[pt.zeros(len(data))],
        return_updates=False,
    )
    return compiled([x], [steps], mode=mode)


@pytest.mark.skipif(INNER_GRAPHS_CHANGE, reason="graphs with inner graphs are not kept here")
@pytest.mark.filterwarnings("ignore:Cannot cache compiled function")
@pytest.mark.parametrize(
    ("make", "mode", "n"),
    [
        (of_inner_graph, PYTHON, 3),
        (of_inner_graph, "CVM", 3),
        (of_inner_graph, "NUMBA", 200_000),
        (of_nested_graph, "NUMBA", 3),
        (of_scan, PYTHON, 3),
    ],
    ids=["python", "cvm", "numba", "nested", "scan"],
)
def test_arrays_of_inner_graphs_that_are_written_to(make: Any, mode: Any, n: int) -> None:
    buffer = np.arange(1.0, n + 1)
    before = buffer.copy()
    first = make(buffer, mode)
    again = make(before, mode)
    assert cache_info().hits == 1
    buffer[:] = 7.0
    function = make(before, mode)
    with enabled(False, "cache"):
        fresh = make(before, mode)
    assert_same_graphs(function, fresh)
    assert_same_results(function, fresh, [np.ones(n)])
    del first, again


@pytest.mark.parametrize("level", ["memory", "verify"])
def test_sparse_results_that_are_written_to(level: str, request: Any) -> None:
    if level == "verify":
        request.getfixturevalue("verifying")
    data = scipy.sparse.csr_matrix(np.eye(3))

    def make() -> Any:
        constant = sparse.as_sparse_variable(data.copy())
        return compiled([], [Out(constant.T, borrow=True)])

    for _ in range(3):
        [result] = make()()
        np.testing.assert_array_equal(result.toarray(), np.eye(3))
        result.data[:] = 5.0
    assert cache_info().hits == 2


class Multiplied:
    """Something that can be called, and changes."""

    __name__ = "multiplied"
    factor = 2.0

    def __call__(self, x: Any) -> Any:
        return x * self.factor


class Scaled:
    """A class that is called as a function, and changes."""

    factor = 2.0

    def __new__(cls, x: Any) -> Any:
        return x * cls.factor


class ScaledScalar(ps.UnaryScalarOp):
    """An op on scalars that changes."""

    factor = 2.0

    def impl(self, x: Any) -> Any:
        return x * self.factor


class ScaledSum(ps.Add):
    """An op that sums are made of, and that changes."""

    factor = 2.0

    def impl(self, *inputs: Any) -> Any:
        return sum(inputs) * self.factor


def wrapped(x: Any) -> Any:
    return x * Multiplied.factor


@pytest.mark.parametrize(
    "function",
    [
        Multiplied(),
        Scaled,
        np.vectorize(wrapped),
        functools.partial(np.add, wrapped(1.0)),
        functools.partial(np.apply_along_axis, wrapped, 0),
        functools.lru_cache(wrapped),
        [1.0].count,
    ],
    ids=["object", "class", "vectorized", "partial", "argument", "wrapper", "method"],
)
def test_callables_of_others(function: Any) -> None:
    if isinstance(function, functools.partial):
        function.__name__ = "partial"
    x = pt.dvector("x")
    op = FromFunctionOp(function, [pt.dvector], [pt.dvector], None)
    for _ in range(2):
        compiled([x], [op(x) + 1])
    if isinstance(function, functools.partial) and function.func is np.add:
        assert cache_info().hits == 1
    else:
        assert cache_info().entries == 0
        assert any("calls" in reason for reason in cache_info().not_kept)


@pytest.mark.parametrize(
    "op",
    [Elemwise(ScaledScalar(ps.same_out, "scaled")), CAReduce(ScaledSum(ps.same_out, "sum"))],
    ids=["elemwise", "reduction"],
)
def test_scalar_ops_of_others(op: Any) -> None:
    x = pt.vector("x")
    for _ in range(2):
        compiled([x], [op(x)])
    assert cache_info().entries == 0
    assert any("is an op of _cache.test_untold" in one for one in cache_info().not_kept)


@pytest.mark.skipif(INNER_GRAPHS_CHANGE, reason="graphs with inner graphs are not kept here")
def test_callbacks_of_optimizers() -> None:
    from pytensor.tensor.optimize import minimize

    x = pt.vector("x")
    for options in ({}, {"callback": wrapped}):
        for _ in range(2):
            found, _ = minimize((x**2).sum(), x, method="BFGS", optimizer_kwargs=options)
            compiled([x], [found])
    assert cache_info().hits == 1
    assert any("calls a function of _cache.test_untold" in one for one in cache_info().not_kept)


@pytest.mark.parametrize("how", ["ignored", "no logging", "logger"])
def test_failures_of_rewriters_that_nobody_hears_of(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_once(fgraph: Any, node: Any) -> Any:
        if node.op != pt.sin or failed:
            return [pt.cos(*node.inputs)] if node.op == pt.sin else None
        failed.append(node)
        raise MemoryError("once")

    failed: list[Any] = []
    if how == "no logging":
        monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)
    elif how == "logger":
        monkeypatch.setattr(logging.getLogger("pytensor.graph.rewriting.basic"), "disabled", True)
    on_opt_error = "ignore" if how == "ignored" else "warn"
    x = pt.vector("x")
    with (
        registered("fail_once", fail_once),
        pytensor.config.change_flags(on_opt_error=on_opt_error),
    ):
        compiled([x], pt.sin(x))
        whole = compiled([x], pt.sin(x))
    np.testing.assert_array_equal(whole([0.0]), [1.0])


class Noted(TensorType):
    """A type with an attribute that it does not compare."""

    note = 1

    def clone(self, dtype: Any = None, shape: Any = None, **kwargs: Any) -> Noted:
        made = type(self)(dtype or self.dtype, self.shape if shape is None else shape)
        made.note = self.note
        return made


def test_types_of_others() -> None:
    for note in (2, 3):
        type_ = Noted("float64", (None,))
        type_.note = note
        x = type_("x")
        function = compiled([x], [pt.exp(x)])
        [reason] = explain(function, "cache")
        assert "is a type of _cache.test_untold" in reason


def rewriter_to(factor: Any) -> Any:
    return PatternNodeRewriter((pt.sin, "x"), (pt.mul, "x", factor), name="mine")


def scaled_by(factor: float) -> Any:
    x = ps.float64("x")
    return PatternNodeRewriter((pt.sin, "x"), (Elemwise(ps.Composite([x], [x * factor])), "x"))


@pytest.mark.parametrize(
    "make",
    [
        rewriter_to,
        lambda factor: rewriter_to(np.float64(factor)),
        lambda factor: rewriter_to(pt.constant(factor)),
        scaled_by,
        lambda factor: FromFunctionNodeRewriter(functools.partial(isinstance, factor), [pt.sin]),
        lambda factor: FromFunctionNodeRewriter(functools.partial(pt.mul, np.array(factor))),
        lambda factor: FromFunctionNodeRewriter(functools.partial(wrapped, factor)),
    ],
    ids=["number", "numpy", "constant", "op", "partial", "array", "of others"],
)
def test_what_is_registered_is_told_by_all_that_it_holds(make: Any) -> None:
    one, other, again = (Registrations([make(factor)]) for factor in (2.0, 3.0, 2.0))
    assert one.digest == again.digest
    assert one.digest is None or one.digest != other.digest
    assert (one.digest is None) == bool(one.culprit)


def test_files_of_packages_that_somebody_works_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "pymc" / "rules.py"
    source.parent.mkdir()
    source.write_text("one = 1\n")
    told = tmp_path / "pymc-9.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: pymc\nVersion: 9\n")

    def version(editable: str) -> str:
        (told / "direct_url.json").write_text(f'{{"dir_info": {{{editable}}}, "url": ""}}')
        return surroundings.version_of("pymc")

    monkeypatch.setattr("importlib.metadata.distribution", lambda _: PathDistribution(told))
    spec = SimpleNamespace(submodule_search_locations=[str(source.parent)])
    monkeypatch.setattr(surroundings, "find_spec", lambda _: spec)
    assert version("") == "9"
    before = version('"editable": true')
    assert version('"editable": true') == before
    source.write_text("one = 11\n")
    assert version('"editable": true') != before
