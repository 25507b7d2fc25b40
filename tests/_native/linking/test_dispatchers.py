"""`f.vm.jit_fn`: called from Python, from functions that Numba compiles, and by address."""

from __future__ import annotations

import copy
import ctypes
import gc
import pickle

import numba
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError
from numba.core.runtime import _nrt_python

from pytensor_fuse._native.linking.numba.messages import message_of
from support.native.functions import native_function
from support.programs.processes import run_python
from support.switching import switched

X = np.linspace(-1.0, 1.5, 6).reshape(2, 3)


def of_matrix():
    """Return a function of a matrix and a number, with results of all kinds."""
    x, a = pt.matrix("x"), pt.scalar("a")
    return native_function([x, a], [pt.exp(x) * a, x.sum(), x.T > 0, (x * a).astype("int8")])


def expected(x, a):
    x = np.asarray(x, "float64")
    return [np.exp(x) * a, x.sum(), x.T > 0, (x * a).astype("int8")]


def assert_as_expected(outputs, x, a):
    for found, wanted in zip(outputs, expected(x, a), strict=True):
        assert isinstance(found, np.ndarray)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_python_gets_a_tuple_of_new_arrays_and_nothing_is_compiled():
    call = of_matrix().vm.jit_fn
    assert isinstance(call, Dispatcher)
    first, second = (call(X, np.asarray(2.0)) for _ in range(2))
    assert isinstance(first, tuple)
    assert_as_expected(first, X, 2.0)
    assert not np.shares_memory(first[0], second[0])
    assert not call.signatures


def test_it_is_made_once_and_outlives_its_function():
    function = of_matrix()
    call = function.vm.jit_fn
    assert function.vm.jit_fn is call
    del function
    gc.collect()
    assert_as_expected(call(X, np.asarray(2.0)), X, 2.0)


def test_python_may_give_what_can_be_converted():
    call = of_matrix().vm.jit_fn
    assert_as_expected(call(X.astype("float32"), 2), X.astype("float32"), 2.0)
    assert_as_expected(call(np.asfortranarray(X), np.float64(2)), X, 2.0)
    with pytest.raises(TypeError):
        call(X * 1j, 2.0)
    with pytest.raises(TypeError):
        call(X)


@pytest.fixture(scope="module")
def inside():
    """Return a compiled function that calls a function of machine code."""
    call = of_matrix().vm.jit_fn

    @numba.njit
    def function(x, a):
        first, second, third, fourth = call(x, a)
        return first, second, third, fourth

    return function


def test_jitted_functions_get_numbas_arrays(inside):
    assert_as_expected(inside(X, np.asarray(2.0)), X, 2.0)


def test_jitted_functions_may_give_any_layout_dtype_and_scalars(inside):
    for x in (X[:, ::-1], X.astype("float32")):
        assert_as_expected(inside(x, 2.0), x, 2.0)
    empty = np.zeros((0, 3))
    assert_as_expected(inside(empty, np.asarray(2.0)), empty, 2.0)


def test_what_cannot_be_an_argument_is_named():
    call = of_matrix().vm.jit_fn
    with pytest.raises(
        TypingError, match=r"argument 0 must be an array of dtype float64 and 2 dim"
    ):
        numba.njit(lambda x: call(x, 1.0))(X[0])


@pytest.mark.parametrize(
    ("dtype", "given", "is_taken"),
    [
        ("int64", np.array([2.7, 3.9]), False),
        ("int64", np.array([2, 3], "int8"), True),
        ("int8", np.array([2, 3], "int64"), True),
        ("uint8", np.array([2, 3], "int8"), False),
        ("float32", np.array([2, 3], "int64"), True),
        ("float32", np.array([2.5, 3.5]), True),
        ("float32", np.array([True, False]), True),
        ("bool", np.array([2.5, 3.5]), False),
        ("float64", np.array([2j, 3j]), False),
    ],
)
@pytest.mark.parametrize("ndim", [1, 0])
def test_jitted_functions_may_give_what_python_may(dtype, given, is_taken, ndim):
    x = pt.tensor("x", dtype=dtype, shape=(None,) * ndim)
    call = native_function([x], [x, pt.switch(x > 0, 1, 2)]).vm.jit_fn
    jitted = numba.njit(lambda x: call(x))
    given = given if ndim else given[0]
    if is_taken:
        for one in (call, jitted):
            np.testing.assert_array_equal(one(given)[0], given.astype(dtype))
        return
    with pytest.raises(TypeError):
        call(given)
    message = f"argument 0 must be an array of dtype {dtype}, .* not {given.dtype}"
    with pytest.raises(TypingError, match=message):
        jitted(given)


def test_arrays_outlive_the_call_and_are_freed(inside):
    a = np.asarray(2.0)
    inside(X, a)
    stats = numba.core.runtime.rtsys.get_allocation_stats
    was_on = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    before = stats()
    for _ in range(100):
        outputs = inside(X, a)
    kept = outputs[0][1]
    del outputs
    np.testing.assert_allclose(kept, expected(X, 2.0)[0][1])
    del kept
    after = stats()
    if not was_on:
        _nrt_python.memsys_disable_stats()
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free >= 400
    assert after.alloc - before.alloc == after.free - before.free


def test_code_outlives_the_function_that_it_was_made_for():
    def by_address():
        x = pt.vector("x")
        call = native_function([x], [pt.tanh(x).sum() + 0.125]).vm.jit_fn

        @numba.cfunc("float64(CPointer(float64), intp)")
        def function(data, n):
            return call(numba.carray(data, (n,)))[0][()]

        return function

    function = by_address()
    gc.collect()
    x = np.arange(5.0)
    pointer = x.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    np.testing.assert_allclose(function.ctypes(pointer, 5), np.tanh(x).sum() + 0.125)


def test_two_functions_and_shared_variables_in_one_function():
    """As in nutpie: shared variables are arguments, and one function calls two."""
    x = pt.vector("x", shape=(3,))
    data = pytensor.shared(np.arange(3.0), name="data")
    first = native_function([x], [(x * data).sum(), x * data])
    second = native_function([x], [pt.exp(x) - data[::-1]])
    calls = first.vm.jit_fn, second.vm.jit_fn
    one, other = calls

    @numba.njit
    def both(x, data):
        value, gradient = one(x, data)
        (other_value,) = other(gradient, data)
        return value, other_value

    given = np.array([0.5, 1.0, 2.0])
    value, other_value = both(given, np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(value, 8.5)
    np.testing.assert_allclose(other_value, np.exp(given * [1, 2, 3]) - [3, 2, 1])


def test_known_lengths_are_checked_before_anything_runs():
    x = pt.matrix("x", shape=(2, 3))
    call = native_function([x], [x * 2]).vm.jit_fn

    @numba.njit
    def function(x):
        return call(x)[0]

    @numba.njit
    def caught(x):
        try:
            call(x)
        except Exception:
            return True
        return False

    np.testing.assert_array_equal(function(X), X * 2)
    message = "input 0: axis 1 must have length 3, not 2"
    for one in (function, call):
        with pytest.raises(ValueError, match=message):
            one(X[:, :2].copy())
    assert caught(X[:, :2].copy())
    assert not caught(X)


def test_failed_checks_raise_what_the_function_raises():
    x, i, n = pt.vector("x"), pt.lscalar("i"), pt.lscalar("n")
    first, second = pt.split(x, pt.stack([n, n + 1]), n_splits=2)
    function = native_function([x, i, n], [x[i] * 2, first + 1, second])
    assert any(
        message_of(one.message, 8) is not None for one in function.vm.compiled.program.failures
    )
    call = function.vm.jit_fn

    @numba.njit
    def jitted(x, i, n):
        return call(x, i, n)[0]

    x = np.arange(3.0)
    assert jitted(x, 2, 1) == 4.0
    for given in ((x, 5, 1), (x, 2, 7)):
        with pytest.raises((IndexError, ValueError)) as of_call:
            call(*given)
        with pytest.raises(type(of_call.value)) as of_jitted:
            jitted(*given)
        assert str(of_jitted.value) == str(of_call.value)


def test_an_overwritten_argument_is_returned_unless_it_had_to_be_copied():
    x = pt.vector("x")
    function = native_function([pytensor.In(x, mutable=True)], [pt.inc_subtensor(x[0], 1.0)])
    call = function.vm.jit_fn

    @numba.njit
    def jitted(x):
        return call(x)[0]

    for one in (jitted, lambda x: call(x)[0]):
        given = np.arange(3.0)
        result = one(given)
        np.testing.assert_array_equal(result, [1, 1, 2])
        if np.shares_memory(result, given):
            np.testing.assert_array_equal(given, result)
        strided = np.arange(6.0)[::2]
        np.testing.assert_array_equal(one(strided), [1, 2, 4])
        np.testing.assert_array_equal(strided, [0, 2, 4])
        constant = np.arange(3.0)
        constant.flags.writeable = False
        np.testing.assert_array_equal(one(constant), [1, 1, 2])
        np.testing.assert_array_equal(constant, [0, 1, 2])


def test_large_and_unknown_intermediate_results():
    x = pt.matrix("x")
    y = pt.exp(x)
    z = y / y.sum(axis=1, keepdims=True)
    call = native_function([x], [z / z.sum(axis=0)]).vm.jit_fn
    jitted = numba.njit(lambda x: call(x)[0])
    for n in (1, 7, 300):
        given = np.random.default_rng(n).normal(size=(n, n + 1))
        y = np.exp(given)
        z = y / y.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(jitted(given), z / z.sum(axis=0))


def test_no_output_at_all():
    x = pt.vector("x")
    function = pytensor.function([x], [], mode="NUMBA", on_unused_input="ignore")
    assert function.vm.jit_fn(np.zeros(2)) is None


def test_copies_are_the_same_and_pickles_make_machine_code_anew():
    call = of_matrix().vm.jit_fn
    assert copy.copy(call) is copy.deepcopy(call) is call
    read = pickle.loads(pickle.dumps(call))
    assert_as_expected(read(X, np.array(2.0)), X, 2.0)
    caller = numba.njit(lambda x, a: call(x, a)[1])
    for given in (caller, pickle.loads(pickle.dumps(caller))):
        np.testing.assert_allclose(given(X, np.array(2.0)), X.sum())


def test_pickles_of_overwritten_arguments_and_of_long_chains():
    x, n = pt.vector("x"), pt.lscalar("n")
    out = pt.inc_subtensor(x[:n], x[0])
    for _ in range(300):
        out = pt.sin(out[::-1])
    function = native_function([pytensor.In(x, mutable=True), n], [out])
    read = pickle.loads(pickle.dumps(function.vm.jit_fn))
    [expected] = function.vm.jit_fn(np.arange(4.0), np.array(2))
    np.testing.assert_array_equal(read(np.arange(4.0), np.array(2))[0], expected)


def test_pickles_are_read_in_other_processes(tmp_path):
    (tmp_path / "call").write_bytes(pickle.dumps(of_matrix().vm.jit_fn))
    run_python(f"""
        import pickle
        import numpy as np
        import pytensor_fuse

        with open({str(tmp_path / "call")!r}, "rb") as file:
            call = pickle.load(file)
        assert call(np.ones((2, 3)), np.array(2.0))[1] == 6
    """)


def test_callers_are_not_kept_on_disk(tmp_path, monkeypatch):
    """Their code contains addresses of this process."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    x = pt.vector("x")
    call = native_function([x], [x * 3]).vm.jit_fn
    file = tmp_path / "caller.py"
    head = "import numba\n@numba.njit(cache=True)\n"
    file.write_text(f"{head}def caller(x):\n    return call(x)[0]\n")
    scope = {"__name__": "caller", "__file__": str(file)}
    exec(compile(file.read_text(), str(file), "exec"), scope)
    scope["call"] = call
    with pytest.warns(numba.NumbaWarning, match="dynamic globals"):
        np.testing.assert_array_equal(scope["caller"](np.ones(2)), [3, 3])


def test_nutpie_takes_the_functions_of_a_model():
    nutpie = pytest.importorskip("nutpie")
    pm = pytest.importorskip("pymc")
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        pm.Normal("y", mu, pm.HalfNormal("sigma", 1), observed=np.linspace(0, 2, 20))
    # Otherwise nutpie does not use it.
    with switched(nutpie=False):
        compiled = nutpie.compile_pymc_model(model)
    trace = nutpie.sample(compiled, draws=100, tune=200, chains=1, seed=1, progress_bar=False)
    assert 0.2 < float(trace.posterior["mu"].mean()) < 1.6
