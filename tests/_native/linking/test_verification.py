"""`PYTENSOR_FUSE_NATIVE=verify`: Numba's code for a graph runs as well."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.io import In
from pytensor.raise_op import Assert

from pytensor_fuse._native import setting
from pytensor_fuse._native.linking.verification import (
    NativeMismatchError,
    VerifiedThunk,
    difference,
)
from pytensor_fuse._native.program.model import Failure
from pytensor_fuse._native.setting import Use
from support.numba_only import numba_inverse

V = np.linspace(-1.0, 2.0, 5)


@pytest.fixture(autouse=True)
def _verifying(monkeypatch):
    monkeypatch.setattr(setting, "_use", Use.VERIFY)


def verified(*args, **kwargs):
    function = pytensor.function(*args, mode="NUMBA", **kwargs)
    assert isinstance(function.vm, VerifiedThunk)
    return function


def test_functions_that_agree_give_what_they_give():
    x = pt.vector("x")
    state = pytensor.shared(np.zeros(5), name="state")
    function = verified(
        [In(x, mutable=True)],
        [pt.exp(x), pt.log(x), (x > 0), pt.set_subtensor(x[0], 5.0)],
        updates={state: state + x},
    )
    for _ in range(2):
        first, *_ = function(V.copy())
        np.testing.assert_allclose(first, np.exp(V))
    np.testing.assert_allclose(state.get_value(), 2 * V)
    assert isinstance(copy.deepcopy(function).vm, VerifiedThunk)
    assert isinstance(pickle.loads(pickle.dumps(function)).vm, VerifiedThunk)
    np.testing.assert_allclose(function.vm.jit_fn(V.copy(), np.zeros(5))[0], np.exp(V))


def test_both_raise_or_neither():
    x, n = pt.vector("x"), pt.lscalar("n")
    function = verified([x, n], Assert("n is negative")(x, n >= 0) * 2)
    np.testing.assert_array_equal(function(V, 1), V * 2)
    with pytest.raises(AssertionError, match="n is negative") as caught:
        function(V, -1)
    assert not isinstance(caught.value, NativeMismatchError)
    # Simulates machine code with another message.
    thunk = function.vm.thunk
    function.vm._reference = lambda *_: (_ for _ in ()).throw(ValueError("another"))
    with pytest.raises(NativeMismatchError, match="raises nothing, and Numba ValueError: another"):
        function(V, 1)
    with pytest.raises(
        NativeMismatchError, match="raises AssertionError: n is negative, and Numba V"
    ):
        function(V, -1)
    function.vm._reference = lambda *_: (V,)
    with pytest.raises(NativeMismatchError, match="and Numba nothing"):
        function(V, -1)
    assert thunk.compiled.program.failures == [Failure(AssertionError, "n is negative")]


def test_an_index_out_of_bounds_is_an_error_where_numba_does_not_look():
    x, i = pt.vector("x"), pt.lvector("i")
    function = verified([x, i], pt.exp(x)[i] * 2)
    np.testing.assert_allclose(function(V, [1, -5]), 2 * np.exp(V[[1, -5]]))
    # Numba accesses memory out of bounds there, or fails, so it is not run.
    for far in (5, -100, 10**13):
        with pytest.raises(IndexError, match="index is out of bounds"):
            function(V, [far])
    function.vm._reference = lambda *_: (V[:1],)
    with pytest.raises(NativeMismatchError, match="machine code has shape"):
        function(V, [1, 2])

    def fails(error):
        def reference(*_):
            raise error

        return reference

    # The reverse is not tolerated.
    function.vm._reference = fails(IndexError("index is out of bounds"))
    with pytest.raises(NativeMismatchError, match="raises nothing, and Numba IndexError"):
        function(V, [1])


def test_numba_does_not_run_a_scan_of_more_steps_than_rows():
    x, n = pt.vector("x"), pt.lscalar("n")
    scanned = pytensor.scan(
        lambda x, before: before * x,
        sequences=[x],
        outputs_info=[np.float64(1)],
        n_steps=n,
        return_updates=False,
    )
    function = verified([x, n], scanned)
    np.testing.assert_array_equal(function(V, 2), np.cumprod(V[:2]))
    with pytest.raises(ValueError, match="required number of steps is 1000000"):
        function(V, 10**6)
    with pytest.raises(IndexError, match="negative number of step -1"):
        function(V, -1)


def test_numba_does_not_write_out_of_bounds():
    s, x, i = pytensor.shared(np.zeros(5)), pt.vector("x"), pt.lvector("i")
    function = verified([x, i], [], updates={s: pt.inc_subtensor(s[i], x)})
    function(np.ones(2), [0, 3])
    with pytest.raises(IndexError, match="index is out of bounds"):
        function(np.ones(2), [0, 10**12])
    np.testing.assert_array_equal(s.get_value(), [1, 0, 0, 1, 0])


def test_what_differs_is_named():
    x = pt.vector("x")
    function = verified([x], [x * 2, pt.exp(x)])
    stock = function.vm._reference
    function.vm._reference = lambda x: (stock(x)[0], stock(x)[1] + 1e-3)
    with pytest.raises(
        NativeMismatchError, match=r"output 1 .* in 5 of 5 elements, by at most 0.001"
    ):
        function(V)


def test_regions_are_verified_too():
    x = pt.matrix("x")
    inverse = numba_inverse(pt.exp(x) + 3 * pt.eye(3))
    function = verified([x], [pt.tanh(inverse).sum(axis=0)])
    given = np.random.default_rng(0).normal(size=(3, 3))
    wanted = np.tanh(np.linalg.inv(np.exp(given) + 3 * np.eye(3))).sum(axis=0)
    np.testing.assert_allclose(function(given)[0], wanted)
    stock = function.vm._reference
    function.vm._reference = lambda x: (stock(x)[0] * 2,)
    with pytest.raises(NativeMismatchError, match="output 0"):
        function(given)


def test_double_outputs_of_single_precision():
    """Numba divides small integers in single precision, and rounds its own functions otherwise."""
    n, m = (pt.vector(name, dtype="int8") for name in "nm")
    x, y, z = pt.vector("x", dtype="float32"), pt.vector("y"), pt.scalar("z")
    single = [n / m, pt.exp(x).astype("float64") * y]
    function = verified([n, m, x, y, z], [*single, pt.exp(z)])
    numbers = np.arange(1, 6, dtype="int8")
    given = numbers, numbers[::-1], V.astype("float32"), V, 0.5
    found = function(*given)
    np.testing.assert_allclose(found[0], numbers / numbers[::-1], rtol=1e-12)
    # Other outputs are compared in double precision.
    stock = function.vm._reference
    function.vm._reference = lambda *inputs: [one * (1 + 1e-6) for one in stock(*inputs)]
    with pytest.raises(NativeMismatchError, match="output 2"):
        function(*given)


NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("ours", "theirs", "told"),
    [
        ([1.0, 2.0], [1.0, 2.0 + 1e-12], None),
        ([1.0, NAN, INFINITY], [1.0, NAN, INFINITY], None),
        ([1e16, 1e-3], [1e16, 0.0], None),
        ([1.0, 2.0], [1.0, 2.001], "differs from Numba's in 1 of 2 elements, by at most 0.001"),
        ([1.0], [NAN], "has NaN"),
        ([NAN], [1.0], "has NaN"),
        ([INFINITY], [-INFINITY], "infinities"),
        ([INFINITY], [1.0], "differs"),
        ([1.0], [INFINITY], "infinities"),
        ([1.0], [[1.0]], "has shape"),
        ([], [], None),
    ],
)
def test_differences_of_floats(ours, theirs, told):
    found = difference(np.array(ours), np.array(theirs))
    assert (found is None) if told is None else told in found


def test_differences_of_other_dtypes():
    assert difference(np.array([1, 2]), np.array([1, 2])) is None
    assert "in 1 of 2" in difference(np.array([1, 2]), np.array([1, 3]))
    assert "dtype" in difference(np.array([1, 2]), np.array([1.0, 2.0]))
    assert "in 1 of 1" in difference(np.array([True]), np.array([False]))
    assert difference(np.float32(1), np.float32(1 + 1e-6)) is None
    assert difference("a", "b") is None


def test_both_draw_from_a_generator_of_their_own():
    shared = pytensor.shared(np.random.default_rng(3))
    after, out = pt.random.gamma(shape=V + 2, scale=0.3, rng=shared, return_next_rng=True)
    function = verified([], out, updates={shared: after})
    oracle = np.random.default_rng(3)
    for _ in range(2):
        np.testing.assert_array_equal(function(), oracle.gamma(V + 2, 0.3))
    assert shared.get_value(borrow=True).random() == oracle.random()


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937])
def test_states_of_generators_are_compared(kind):
    one, other = (np.random.Generator(kind(3)) for _ in range(2))
    assert difference(one, other) is None
    other.random()
    assert difference(one, other) == "has another state than after Numba's function"
