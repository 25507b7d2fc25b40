"""Compiled functions as C functions, called through `ctypes`."""

from __future__ import annotations

import ctypes
import gc
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import ref

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from pytensor.compile.io import In
from pytensor.raise_op import Assert

import pytensor_fuse
from pytensor_fuse.exceptions import NativeLinkError
from pytensor_fuse.native import compile_c
from support.native.functions import kind, native_function
from support.native.graphs.steps import build
from support.native.graphs.writing import Program, programs
from support.numba_only import numba_mirrored

FILLED = -77


def call(entry: Any, arrays: Any, capacities: Any = None, *, wants: bool = True) -> Any:
    """Call as C does; return the code, the output buffers, their lengths and the details."""
    if capacities is None:
        capacities = [1000] * len(entry.outputs)
    memory = [
        np.full(max(n, 1), 1, one.dtype) for one, n in zip(entry.outputs, capacities, strict=True)
    ]
    n_lengths = sum(len(one.shape) for one in entry.outputs)
    lengths = (ctypes.c_int64 * max(n_lengths, 1))(*[FILLED] * n_lengths)
    details = (ctypes.c_int64 * 8)(*[FILLED] * 8)
    shapes = [length for one in arrays for length in one.shape]
    code = entry.ctypes(
        (ctypes.c_void_p * max(len(arrays), 1))(*[one.ctypes.data for one in arrays]),
        (ctypes.c_int64 * max(len(shapes), 1))(*shapes),
        (ctypes.c_void_p * max(len(memory), 1))(*[one.ctypes.data for one in memory]),
        (ctypes.c_int64 * max(len(memory), 1))(*capacities),
        lengths if wants else None,
        details if wants else None,
    )
    return code, memory, list(lengths)[:n_lengths], list(details)


def require_same(found: Any, expected: Any) -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


def result_of(function: Any, arrays: Any) -> Any:
    try:
        return function(*arrays)
    except Exception as error:
        return error


@given(programs(most_steps=8), st.booleans())
def test_random_graphs_give_what_the_function_gives(program: Program, is_mutable: bool) -> None:
    """All dtypes, all ops, sizes 0 and 1, and results that are overwritten inputs."""
    case = build(program)
    inputs = [In(one, mutable=is_mutable) for one in case.inputs]
    options: dict[str, Any] = {"on_unused_input": "ignore", "accept_inplace": True}
    try:
        function = pytensor.function(inputs, case.outputs, mode="NATIVE", **options)
    except Exception as error:  # Other failures are not the subject of this test.
        event(type(error).__name__)
        return
    entry = compile_c(function)
    before = case.copies()
    expected = result_of(function, case.copies())
    found = result_of(entry, case.values)
    if isinstance(expected, Exception):
        event("a failure")
        assert type(found) is type(expected)
        # PyTensor adds the origin of the exception, and does not name the output with a negative
        # length.
        said = str(found).partition(": axis ")[0] if "negative dim" in str(found) else str(found)
        assert str(expected).startswith(said)
    else:
        for one, other in zip(found, expected, strict=True):
            require_same(one, np.asarray(other))
    for array, one in zip(case.values, before, strict=True):
        require_same(array, one)


def test_results_are_those_of_the_python_linker() -> None:
    x, y = pt.matrix("x"), kind("float32", None)("y")
    outputs = [pt.exp(x) + y, x.sum(axis=0), y.cumsum()[1:], (x > 0).all()]
    entry = compile_c(native_function([x, y], outputs))
    stock = pytensor.function([x, y], outputs, mode="FAST_COMPILE")
    rng = np.random.default_rng(1)
    for rows, columns in [(4, 3), (1, 1), (0, 3), (5, 1)]:
        given = rng.normal(size=(rows, columns)), rng.normal(size=columns).astype("f4")
        for found, one in zip(entry(*given), stock(*given), strict=True):
            assert found.dtype == one.dtype
            np.testing.assert_allclose(found, one, rtol=1e-6)
    assert [str(one) for one in (*entry.inputs, *entry.outputs)] == [
        "x: float64[?, ?]",
        "y: float32[?]",
        "float64[?, ?]",
        "float64[?]",
        "float32[?]",
        "bool[]",
    ]


def test_what_is_not_contiguous_is_copied() -> None:
    x = pt.matrix("x")
    entry = compile_c(native_function([x], x * 2))
    array = np.arange(24.0).reshape(4, 6)
    for one in (array.T, array[::2, ::-1], np.asfortranarray(array)):
        require_same(entry(one), one * 2)
    unaligned = np.empty(array.nbytes + 1, "u1")[1:].view("f8").reshape(4, 6)
    unaligned[...] = array
    require_same(entry(unaligned), array * 2)


def test_arguments_are_checked_before_anything_runs() -> None:
    x, y = pt.vector("x"), pt.iscalar("y")
    entry = compile_c(native_function([x, y], x * y))
    with pytest.raises(TypeError, match="1 arrays for a function of 2 inputs"):
        entry(np.ones(2))
    with pytest.raises(
        TypeError, match="input 0: expected float64 with 1 axes, found float64 with 2"
    ):
        entry(np.ones((2, 2)), np.int32(1))
    with pytest.raises(TypeError, match="input 1: expected int32 with 0 axes, found int64"):
        entry(np.ones(2), 3)
    require_same(entry([1.0, 2.0], np.int32(3)), np.array([3.0, 6.0]))


def test_outputs_that_do_not_fit_are_told_and_nothing_is_written_beyond_them() -> None:
    x = pt.vector("x")
    # The second output is the overwritten input, and the third is the first output.
    entry = compile_c(
        native_function([In(x, mutable=True)], [pt.exp(x), pt.set_subtensor(x[0], 5.0)])
    )
    given = np.zeros(4)
    for output in range(2):
        capacities = [4, 4]
        capacities[output] = 3
        code, memory, lengths, details = call(entry, [given], capacities)
        assert code == -2
        assert details[:2] == [output, 4]
        assert lengths[output] == 4
        require_same(memory[output], np.ones(3))
        told = f"output {output} has 4 elements, for which there is not enough memory"
        assert str(entry.error(code, details)) == told
    code, memory, lengths, details = call(entry, [given], [4, 4])
    assert (code, lengths, details) == (0, [4, 4], [FILLED] * 8)
    require_same(memory[1], np.array([5.0, 0, 0, 0]))
    require_same(given, np.zeros(4))


def test_an_output_without_memory_does_not_fit_unless_it_is_empty() -> None:
    x = pt.vector("x")
    entry = compile_c(native_function([x], x * 2))

    def code_for(n: int) -> int:
        array = np.ones(n)
        return entry.ctypes(
            (ctypes.c_void_p * 1)(array.ctypes.data),
            (ctypes.c_int64 * 1)(n),
            (ctypes.c_void_p * 1)(None),
            (ctypes.c_int64 * 1)(n),
            None,
            None,
        )

    assert [code_for(n) for n in (0, 1)] == [0, -2]


@pytest.mark.parametrize("n", [0, 1, 7])
def test_one_result_twice_is_two_outputs(n: int) -> None:
    x = pt.vector("x")
    twice = x * 2
    function = native_function([x], [twice, twice, x, twice.sum()])
    entry, given = compile_c(function), np.arange(float(n))
    found = entry(given)
    for one, other in zip(found, function(given), strict=True):
        require_same(one, other)
    assert len({one.ctypes.data for one in found}) == 4 or n == 0


def test_huge_lengths_do_not_wrap() -> None:
    n = pt.lscalar("n")
    entry = compile_c(native_function([n], pt.zeros((n, n, n, n), dtype="int8")))
    code, _, lengths, details = call(entry, [np.array(1 << 17)])
    assert (code, lengths, details[0]) == (-2, [1 << 17] * 4, 0)
    assert details[1] == (1 << 63) - 1


@pytest.mark.parametrize("n", [-2, 0])
def test_lengths_that_types_state_may_be_negative(n: int) -> None:
    x = pt.vector("x")
    function = native_function([x], pt.alloc(x.shape[0], n, 1))
    found, expected = (result_of(one, [np.ones(3)]) for one in (compile_c(function), function))
    if n < 0:
        assert (type(found), str(found)) == (ValueError, "negative dimensions not allowed")
        assert str(expected).startswith(str(found))
    else:
        require_same(found, expected)


def test_scratch_memory_that_is_not_there_is_a_memory_error() -> None:
    x, n = pt.vector("x"), pt.lscalar("n")
    table = pt.exp(x)[:, None] * pt.arange(n)[None, :]
    entry = compile_c(native_function([x, n], [table.cumsum(axis=1)[:, -1].sum()]))
    given = [np.zeros(1 << 10), np.array(1 << 50)]
    code = call(entry, given)[0]
    assert code == -1
    assert isinstance(entry.error(code), MemoryError)


def test_failures_have_the_exceptions_of_the_function() -> None:
    x, i = pt.vector("x"), pt.lscalar("i")
    checked = Assert("x must be positive")(x, pt.all(x > 0))
    y = pt.vector("y")
    function = native_function([x, i, y], [checked[i] + 1, checked * y])
    entry = compile_c(function)
    good = [np.ones(3), np.array(1), np.ones(3)]
    assert call(entry, good)[0] == 0
    bad = [
        [np.array([1.0, -1.0]), np.array(1), np.ones(2)],
        [np.ones(3), np.array(3), np.ones(3)],
        [np.ones(3), np.array(0), np.ones(4)],
    ]
    for one in bad:
        with pytest.raises((AssertionError, IndexError, ValueError)) as expected:
            function(*one)
        code, _, _, details = call(entry, one)
        error = entry.error(code, details)
        assert code > 0
        assert type(error) is type(expected.value)
        assert str(expected.value).startswith(str(error))
        with pytest.raises(type(error)) as raised:
            entry(*one)
        assert str(raised.value) == str(error)
        assert call(entry, one, wants=False)[0] == code
    for code in (0, -5, 100):
        with pytest.raises(ValueError, match="is no code"):
            entry.error(code)


def test_lengths_that_are_known_are_checked() -> None:
    x, y = kind("float64", None, 3)("x"), kind("float64", 2)("y")
    entry = compile_c(native_function([x, y], [x.sum() * y]))
    code, _, _, details = call(entry, [np.ones((4, 2)), np.ones(2)])
    assert (code, details[:4]) == (-3, [0, 1, 3, 2])
    with pytest.raises(ValueError, match="input 0: axis 1 must have length 3, not 2"):
        entry(np.ones((4, 2)), np.ones(2))
    with pytest.raises(ValueError, match="input 1: axis 0 must have length 2, not 1"):
        entry(np.ones((4, 3)), np.ones(1))
    error = entry.error(-3, [0, 0, -1, -5])
    assert str(error) == "input 0: axis 0 must not be negative"


def test_a_negative_length_of_an_output_is_told() -> None:
    x = pt.vector("x")
    error = compile_c(native_function([x], x * 2)).error(-4, [1, 0, -2])
    told = "negative dimensions are not allowed: axis 0 of output 1 would have length -2"
    assert (type(error), str(error)) == (ValueError, told)


def test_functions_of_values_and_gradients_are_taken() -> None:
    """PyMC's `ValueGradFunction` holds a compiled function, and is called differently."""
    x = pt.vector("x")

    class ValueGradFunction:
        _pytensor_function = native_function([x], [(x**2).sum(), 2 * x])

    value, gradient = compile_c(ValueGradFunction())(np.array([1.0, 2.0]))  # type: ignore[arg-type]
    require_same(value, np.array(5.0))
    require_same(gradient, np.array([2.0, 4.0]))


def test_the_function_of_pymc_is_taken() -> None:
    pm = pytest.importorskip("pymc", reason="not installed; it has no release for Python 3.11")
    with pm.Model() as model:
        pm.Normal("a")
        pm.Normal("b", shape=2)
    function = model.logp_dlogp_function(mode="NATIVE", ravel_inputs=True)
    value, gradient = compile_c(function)(np.array([1.0, 2.0, -3.0]))
    np.testing.assert_allclose(value, -7.0 - 1.5 * np.log(2 * np.pi))
    np.testing.assert_allclose(gradient, [-1.0, -2.0, 3.0])


def test_shared_variables_are_bound_to_copies_of_their_values() -> None:
    x = pt.vector("x")
    scale, shift = pytensor.shared(2.0, name="scale"), pytensor.shared(np.arange(3.0), name="shift")
    function = native_function([x], x * scale + shift)
    entry = compile_c(function)
    assert [one.name for one in entry.inputs] == ["x"]
    expected = function(np.ones(3))
    shift.get_value(borrow=True)[...] = 100.0
    scale.set_value(50.0)
    require_same(entry(np.ones(3)), expected)
    require_same(compile_c(function)(np.ones(3)), function(np.ones(3)))


def test_shared_variables_may_be_left_to_the_caller() -> None:
    x = pt.vector("x")
    scale, shift = pytensor.shared(2.0, name="scale"), pytensor.shared(np.arange(3.0), name="shift")
    entry = compile_c(native_function([x], x * scale + shift), shared="inputs")
    values = {"x": np.ones(3), "scale": np.array(4.0), "shift": np.full(3, 10.0)}
    assert sorted(one.name for one in entry.inputs) == ["scale", "shift", "x"]
    assert entry.inputs[0].name == "x"
    require_same(entry(*[values[one.name] for one in entry.inputs]), np.full(3, 14.0))
    with pytest.raises(ValueError, match="shared must be 'values' or 'inputs', not 'both'"):
        compile_c(native_function([x], x * 2), shared="both")  # type: ignore[arg-type]


def test_constants_and_code_live_as_long_as_somebody_can_call() -> None:
    def made() -> Any:
        x = pt.vector("x", shape=(5000,))
        data = np.arange(5000.0)
        function = native_function([x], [(x * data).sum(), x + pytensor.shared(data)])
        return compile_c(function)

    pytensor_fuse.cache.clear(disk=False)
    entry = made()
    ours = entry.ctypes
    arrays, capacities = [np.ones(5000)], [1, 5000]
    expected = call(entry, arrays, capacities)[1]
    del entry
    gc.collect()
    noise = [np.full(5000, np.nan) for _ in range(100)]

    class Plain:
        ctypes = ours
        outputs = made().outputs

    for found, one in zip(call(Plain, arrays, capacities)[1], expected, strict=True):
        require_same(found, one)
    assert len(noise) == 100


def test_threads_call_at_once_without_the_lock() -> None:
    """Each call has its own inputs, scratch memory and outputs."""
    x = pt.matrix("x")
    weights = pytensor.shared(np.linspace(0.0, 1.0, 40))
    rows = pt.exp(x - x.max(axis=1, keepdims=True))
    outputs = [(rows / rows.sum(axis=1, keepdims=True)) * weights, rows.cumsum(axis=0)[-1]]
    entry = compile_c(native_function([x], outputs))
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(50 + 7 * k, 40)) for k in range(8)]
    expected = [entry(one) for one in arrays]
    barrier = threading.Barrier(8)

    def work(k: int) -> bool:
        barrier.wait()
        return all(
            np.array_equal(found, one)
            for _ in range(100)
            for found, one in zip(entry(arrays[k]), expected[k], strict=True)
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_a_function_may_have_no_inputs_or_no_outputs() -> None:
    state = pytensor.shared(np.arange(3.0))
    require_same(compile_c(native_function([], state * 2))(), np.array([0.0, 2.0, 4.0]))
    x = pt.vector("x")
    nothing = pytensor.function([x], [], mode="NATIVE", on_unused_input="ignore")
    assert compile_c(nothing)(np.ones(2)) == []


def test_numbers_of_python_are_arrays_without_axes() -> None:
    a, x = pytensor.scalar.float64("a"), pt.vector("x")
    function = native_function([a, x], pt.as_tensor(a) * x)
    entry = compile_c(function)
    assert str(entry.inputs[0]) == "a: float64[]"
    require_same(entry(2.5, np.ones(2)), np.full(2, 2.5))


def test_nothing_is_left_of_what_nobody_can_call() -> None:
    x = pt.vector("x", shape=(5,))
    entry = compile_c(native_function([x], x * np.arange(5.0) + pytensor.shared(np.ones(5))))
    code = ref(entry.ctypes.code)
    ours = entry.ctypes
    del entry
    assert code() is not None
    del ours
    assert code() is None


def test_functions_that_cannot_be_called_from_c_are_refused() -> None:
    x, state = pt.vector("x"), pytensor.shared(np.zeros(3), name="state")
    updating = native_function([x], x * 2, updates={state: state + 1})
    with pytest.raises(ValueError, match="without updates, and this one updates state"):
        compile_c(updating)
    in_parts = pytensor.function(
        [x], numba_mirrored(pt.exp(x)), mode=pytensor.compile.mode.Mode("py", None)
    )
    with pytest.raises(NativeLinkError, match="no rule for NumbaMirrored"):
        compile_c(in_parts)
    other = pytensor.function([x], x * 2, mode=pytensor.compile.mode.Mode("py", None))
    with pytest.raises(
        NativeLinkError, match="compiled by PerformLinker: compile it in mode NATIVE"
    ):
        compile_c(other)
    with pytest.raises(TypeError, match="not an object of type FunctionGraph"):
        compile_c(pytensor.graph.fg.FunctionGraph([x], [x * 2]))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="has addresses of its process"):
        pickle.dumps(compile_c(native_function([x], x * 2)))


def test_functions_that_are_verified_have_machine_code_too(monkeypatch: Any) -> None:
    from pytensor_fuse._native.linking.thunks import NativeThunk
    from pytensor_fuse._native.linking.verification import VerifiedThunk

    x = pt.vector("x")
    function = native_function([x], x * 3)
    assert isinstance(function.vm, NativeThunk)
    verified: Any = object.__new__(VerifiedThunk)
    verified.thunk = function.vm
    monkeypatch.setattr(function, "vm", verified)
    require_same(compile_c(function)(np.ones(2)), np.full(2, 3.0))
