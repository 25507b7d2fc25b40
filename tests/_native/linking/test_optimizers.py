"""SciPy's optimizers around machine code, in functions that need no Numba."""

from __future__ import annotations

import pickle
from importlib.util import find_spec

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.tensor.optimize import (
    ScipyWrapperOp,
    minimize,
    minimize_scalar,
    root,
    root_scalar,
)

from pytensor_fuse import audit, explain
from pytensor_fuse._native.linking.python_runs import PythonRun
from pytensor_fuse._native.linking.thunks import NativeThunk
from pytensor_fuse.reports import NativeState
from support.numba_only import numba_inverse
from support.programs.processes import run_python
from support.switching import switched

PYTHON = Mode("py", "fast_run")
# In older releases, it differs when and by whom the inner function is linked.
LINKS = find_spec("pytensor.compile.inner_function") is not None


def a_root(dtype):
    x, a = (pt.vector(name, dtype=dtype, shape=(3,)) for name in "xa")
    found, success = root(x + 0.3 * pt.tanh(x[::-1] * x) - pt.exp(-a * x), x)
    return x, a, found, success


def a_minimum(dtype):
    x, a = (pt.vector(name, dtype=dtype, shape=(3,)) for name in "xa")
    found, success = minimize(((x - a) ** 2).sum() + pt.log1p((x**4).sum()), x, method="BFGS")
    return x, a, found, success


def a_scalar_minimum(dtype):
    x, a = pt.scalar("x", dtype=dtype), pt.vector("a", dtype=dtype, shape=(3,))
    found, success = minimize_scalar(((x - a) ** 2).sum() + pt.exp(x) * 0.1, x)
    return x, a, found, success


def a_scalar_root(dtype):
    x, a = pt.scalar("x", dtype=dtype), pt.vector("a", dtype=dtype, shape=(3,))
    found, success = root_scalar((pt.exp(x) * a).sum() - 4.0, x, method="newton", jac=True)
    return x, a, found, success


CASES = [a_root, a_minimum, a_scalar_minimum, a_scalar_root]


def inner_functions(function):
    return [
        node.op.fn
        for node in function.maker.fgraph.apply_nodes
        if isinstance(node.op, ScipyWrapperOp)
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values_and_gradients_are_those_of_python(case, dtype):
    x, a, found, success = case(dtype)
    gradient = pt.grad((found**2).sum(), a)
    start = np.full(x.type.shape, 0.5, dtype)
    results = []
    for mode in ("NUMBA", PYTHON):
        function = pytensor.function([x, a], [found, success, gradient], mode=mode)
        if mode == "NUMBA":
            assert isinstance(function.vm, PythonRun), function.vm
            assert all(isinstance(one.vm, NativeThunk) for one in inner_functions(function))
        results.append(
            [function(start, np.array(values, dtype)) for values in ([0.5, 1, 2], [1, 1, 1.5])]
        )
    for mine, yours in zip(*results, strict=True):
        if dtype == "float32":
            # The last bit decides whether a root is found within a smaller tolerance.
            mine[1] = yours[1]
        for one, other in zip(mine, yours, strict=True):
            assert np.asarray(one).dtype == np.asarray(other).dtype
            assert np.shape(one) == np.shape(other)
            rtol = 1e-6 if dtype == "float64" else 2e-2
            np.testing.assert_allclose(one, other, rtol=rtol)


def test_they_run_for_good_without_numba():
    x, a, found, _ = a_scalar_minimum("float64")
    function = pytensor.function([x, a], pt.exp(found) * a, mode="NUMBA")
    for _ in range(3):
        function(0.0, np.ones(3))
    assert function.vm.most_runs is None
    assert function.vm.n_runs == 3
    report = explain(function, "native")
    assert report.state is NativeState.PYTHON
    assert "SciPy's optimizers" in str(report)
    assert [one.why for one in report.not_native] == ["no rule for MinimizeScalarOp"]
    run_python(
        "import sys, numpy as np, pytensor_fuse, pytensor, pytensor.tensor as pt",
        "from pytensor.tensor.optimize import minimize_scalar",
        "x, a = pt.scalar('x'), pt.scalar('a')",
        "found, _ = minimize_scalar((x - a) ** 2, x)",
        "f = pytensor.function([x, a], [found, pt.grad(found, a)], mode='NUMBA')",
        "assert np.allclose(f(0.0, 2.0), [2, 1])",
        "assert 'numba' not in sys.modules",
    )


def test_an_audit_has_nothing_compiled_by_numba():
    x, a, found, _ = a_scalar_minimum("float64")
    function = pytensor.function([x, a], found, mode="NUMBA")
    told = audit(function)
    assert function.vm.compiled is None
    assert NativeState.PYTHON.value in str(told)
    assert "not compiled by Numba" in str(told)


def test_copies_and_pickles():
    x, a, found, _ = a_scalar_minimum("float64")
    function = pytensor.function([x, a], [found, pt.grad(found, a)], mode="NUMBA")
    expected = function(0.0, np.ones(3))
    for again in (function.copy(), pickle.loads(pickle.dumps(function))):
        assert isinstance(again.vm, PythonRun)
        for one, other in zip(again(0.0, np.ones(3)), expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_shared_parameters_and_errors():
    x, a, found, _ = a_scalar_minimum("float64")
    data = pytensor.shared(np.ones(3), name="data")
    function = pytensor.function([x], found * 2, givens={a: data}, mode="NUMBA")
    first = function(0.0)
    data.set_value(np.full(3, 2.0))
    assert function(0.0) > first
    bad, _ = minimize((pt.exp(x) * a).sum(), x, method="no such method")
    failing = pytensor.function([x, a], bad, mode="NUMBA")
    with pytest.raises(ValueError, match="no such method"):
        failing(0.0, np.ones(3))


@pytest.mark.filterwarnings("ignore:Numba will use object mode")
def test_with_other_nodes_numba_has_the_rest():
    x, a, found, _ = a_root("float64")
    function = pytensor.function(
        [x, a], numba_inverse(pt.outer(found, found) + pt.eye(3)), mode="NUMBA"
    )
    assert not isinstance(function.vm, PythonRun)


def test_an_inner_function_without_rules_is_pytensors():
    x, a = pt.vector("x", shape=(3,)), pt.vector("a", shape=(3,))
    objective = ((x - a) ** 2).sum() + numba_inverse(pt.outer(x, x) + pt.eye(3)).sum()
    found, _ = minimize(objective, x, jac=False, method="Nelder-Mead")
    results = []
    for mode in ("NUMBA", PYTHON):
        function = pytensor.function([x, a], found, mode=mode)
        results.append(function(np.ones(3), np.ones(3)))
    np.testing.assert_allclose(*results, rtol=1e-5)


def test_other_linkers_and_switches_leave_them():
    x, a, found, _ = a_scalar_minimum("float64")
    function = pytensor.function([x, a], found, mode=PYTHON)
    if LINKS:
        assert not any(isinstance(one.vm, NativeThunk) for one in inner_functions(function))
    ours = vars(ScipyWrapperOp)["fn_wrapped"]
    with switched(native=False):
        assert vars(ScipyWrapperOp)["fn_wrapped"] is not ours
    assert vars(ScipyWrapperOp)["fn_wrapped"] is ours
