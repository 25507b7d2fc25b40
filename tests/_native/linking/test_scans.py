"""Functions with a Scan: calls, failures, copies, and the parts that Numba compiles."""

from __future__ import annotations

import pickle

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.io import In
from pytensor.scan import until

from pytensor_fuse import explain
from pytensor_fuse._native import setting
from pytensor_fuse._native.linking.thunks import NativeThunk
from pytensor_fuse._native.linking.verification import VerifiedThunk
from pytensor_fuse._native.setting import Use
from pytensor_fuse.exceptions import NativeLinkError
from support.native.functions import native_function

X = np.linspace(-1.0, 2.0, 7)


def scan(fn, **kwargs):
    return pytensor.scan(fn, return_updates=False, **kwargs)


def series():
    """Return the variables of an autoregression and of its gradient."""
    x, a = pt.dvector("x"), pt.dscalar("a")
    trace = scan(
        lambda now, before, a: pt.tanh(before * a + now),
        sequences=[x],
        outputs_info=[pt.constant(np.float64(0.5))],
        non_sequences=[a],
    )
    return [x, a], [trace, *pytensor.grad((trace**2).sum(), [a, x])]


def by_hand(x, a):
    states, slopes = [0.5], [0.0]
    for now in x:
        states.append(np.tanh(states[-1] * a + now))
        slopes.append((1 - states[-1] ** 2) * (states[-2] + a * slopes[-1]))
    return np.array(states[1:]), 2 * np.dot(states[1:], slopes[1:])


def require_right(function, x=X, a=0.7):
    trace, slope, gradient = function(x, a)
    states, expected = by_hand(x, a)
    np.testing.assert_allclose(trace, states, rtol=1e-12)
    np.testing.assert_allclose(slope, expected, rtol=1e-12, atol=1e-14)
    assert gradient.shape == x.shape


def test_calls_and_copies():
    function = native_function(*series())
    for x in (X, X[:1], X[::-2], np.linspace(-1, 1, 5000)):
        before = x.copy()
        require_right(function, x)
        np.testing.assert_array_equal(x, before)
    require_right(pickle.loads(pickle.dumps(function)))
    require_right(function.copy())


@pytest.mark.usefixtures("empty_memory")
def test_equal_graphs_are_one_machine_code():
    first, second = native_function(*series()), native_function(*series())
    assert first.vm.compiled.code is second.vm.compiled.code


def test_nothing_but_machine_code():
    require_right(pytensor.function(*series(), mode="NATIVE"))


def test_the_loop_of_steps_is_explained():
    found = explain(native_function(*series()), "native")
    reasons = [loop.why_scalar for loop in found.loops]
    assert "an iteration needs the previous one" in reasons
    assert "an iteration needs the previous one" in str(found)


def test_verification(monkeypatch):
    monkeypatch.setattr(setting, "_use", Use.VERIFY)
    x, most = pt.dvector("x"), pt.dscalar("most")
    trace, sums = scan(
        lambda now, before: ([before + now, before * now], until(before > most)),
        sequences=[x],
        outputs_info=[pt.constant(np.float64(0.0)), None],
    )
    function = pytensor.function([x, most], [trace, sums[-1]], mode="NUMBA")
    assert isinstance(function.vm, VerifiedThunk)
    for limit in (-1.0, 0.5, 100.0):
        function(np.ones(4), limit)
    function = pytensor.function(*series(), mode="NUMBA")
    assert isinstance(function.vm, VerifiedThunk)
    for x in (X, X[:1], X[::-2]):
        require_right(function, x)


def test_shared_variables():
    state = pytensor.shared(np.array([1.0, 2.0]), name="state")
    trace = scan(lambda before: before[::-1] * 2, outputs_info=[state], n_steps=3)
    function = native_function([], [trace[0], trace.sum()], updates={state: trace[-1]})
    for first, last in (([4.0, 2.0], [16.0, 8.0]), ([16.0, 32.0], [64.0, 128.0])):
        found = function()[0]
        np.testing.assert_array_equal(found, first)
        np.testing.assert_array_equal(sorted(state.get_value()), sorted(last))


@pytest.mark.filterwarnings("ignore:Scan return signature")
def test_shared_variables_that_a_step_updates():
    x, state = pt.dvector("x"), pytensor.shared(np.zeros(3), name="state")
    sums, updates = pytensor.scan(
        lambda now: (now + state.sum(), {state: state * 0.5 + now}), sequences=[x]
    )
    function = native_function([x], sums, updates=updates)
    np.testing.assert_array_equal(function(np.arange(3.0)), [0.0, 1.0, 5.0])
    np.testing.assert_array_equal(state.get_value(), [2.5, 2.5, 2.5])
    np.testing.assert_array_equal(function(np.zeros(1)), [7.5])
    np.testing.assert_array_equal(state.get_value(), [1.25, 1.25, 1.25])


@pytest.mark.parametrize("is_mutable", [True, False])
def test_inputs_in_whose_place_a_scan_works(is_mutable):
    first = pt.dmatrix("first")
    trace = scan(
        lambda one, other: one + other,
        outputs_info=[{"initial": first, "taps": [-2, -1]}],
        n_steps=4,
    )
    function = native_function([In(first, mutable=is_mutable)], trace[-1])
    given = np.array([[1.0, 0.0], [1.0, 1.0]])
    own = given.copy()
    np.testing.assert_array_equal(function(own), [8.0, 5.0])
    if not is_mutable:
        np.testing.assert_array_equal(own, given)


@pytest.mark.parametrize(
    ("x", "places", "steps", "kind", "text"),
    [
        (np.ones((2, 2)), [0, 1], 3, ValueError, "Sequence 0 has shape"),
        (np.ones((2, 2)), [0, 2], 2, IndexError, "index"),
        (np.ones((2, 3)), [0, 1], 2, ValueError, "shape"),
    ],
)
def test_failures_change_no_input(x, places, steps, kind, text):
    given = [pt.dmatrix("x"), pt.lvector("places"), pt.lscalar("steps")]
    trace = scan(
        lambda place, before, x: before + x[place],
        sequences=[given[1]],
        outputs_info=[pt.zeros(2, dtype="float64")],
        non_sequences=[given[0]],
        n_steps=given[2],
    )
    function = native_function(given, trace)
    before = x.copy()
    with pytest.raises(kind, match=text):
        function(x, np.array(places), steps)
    np.testing.assert_array_equal(x, before)
    found = function(np.ones((2, 2)), np.array([0, 1]), 2)
    np.testing.assert_array_equal(found, [[1.0, 1.0], [2.0, 2.0]])


def decided_by_steps():
    x = pt.dmatrix("x")
    rows = scan(lambda row: row[row > 0], sequences=[x])
    return [x], [pt.exp(rows).sum(axis=0)]


def test_a_shape_that_steps_decide_on_is_refused():
    with pytest.raises(NativeLinkError, match="a result whose shape is computed in each step"):
        pytensor.function(*decided_by_steps(), mode="NATIVE")


def test_what_is_refused_stays_with_numba():
    inputs, outputs = decided_by_steps()
    outputs.append(pt.exp(inputs[0]).sum(axis=0) / 2)
    function = pytensor.function(inputs, outputs, mode="NUMBA")
    assert not isinstance(function.vm, NativeThunk)
    assert "a result whose shape is computed in each step" in str(explain(function, "native"))
    x = np.array([[1.0, -1.0, 2.0], [3.0, 4.0, -1.0]])
    one, other = function(x)
    np.testing.assert_allclose(one, np.exp([1.0, 2.0]) + np.exp([3.0, 4.0]))
    np.testing.assert_allclose(other, np.exp(x).sum(axis=0) / 2)
