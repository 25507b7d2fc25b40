"""Functions that take and return generators: machine code gets their addresses."""

from __future__ import annotations

import threading

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.random.type import random_generator_type

from pytensor_fuse._native.linking.parts import ThunkOfParts
from pytensor_fuse.exceptions import NativeLinkError
from pytensor_fuse.native import compile_c

BIT_GENERATORS = (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox)


def require_same_state(one, other):
    """Require that two generators continue with the same numbers."""
    np.testing.assert_equal(one.bit_generator.state, other.bit_generator.state)


def function(*args, **kwargs):
    made = pytensor.function(*args, mode="NUMBA", **kwargs)
    assert type(made.vm) is ThunkOfParts
    return made


@pytest.mark.parametrize("kind", BIT_GENERATORS)
def test_a_shared_generator_goes_on(kind):
    rng, oracle = (np.random.Generator(kind(3)) for _ in range(2))
    shared = pytensor.shared(rng, borrow=True)
    m = pt.vector("m")
    after, x = pt.random.normal(m, 2.0, size=(3, 4), rng=shared, return_next_rng=True)
    f = function([m], [x, x.sum()], updates={shared: after})
    means = np.arange(4.0)
    for _ in range(3):
        drawn, total = f(means)
        expected = oracle.normal(means, 2.0, size=(3, 4))
        assert np.array_equal(drawn, expected)
        np.testing.assert_allclose(total, expected.sum())
        require_same_state(shared.get_value(borrow=True), oracle)
    assert shared.get_value(borrow=True) is rng


def test_an_argument_stays_and_a_copy_goes_on():
    r = random_generator_type("r")
    after, x = pt.random.normal(size=(5,), rng=r, return_next_rng=True)
    f = function([r], [x, after])
    given, oracle = np.random.default_rng(1), np.random.default_rng(1)
    state = given.bit_generator.state
    for _ in range(2):
        drawn, changed = f(given)
        assert given.bit_generator.state == state
        assert changed is not given
        assert np.array_equal(drawn, np.random.default_rng(1).normal(size=5))
    oracle.normal(size=5)
    require_same_state(changed, oracle)


def test_an_argument_that_may_be_changed_is_returned_itself():
    r = random_generator_type("r")
    after, x = pt.random.normal(size=(5,), rng=r, return_next_rng=True)
    f = function([pytensor.In(r, mutable=True)], [x, after])
    given, oracle = np.random.default_rng(1), np.random.default_rng(1)
    drawn, changed = f(given)
    assert changed is given
    assert np.array_equal(drawn, oracle.normal(size=5))
    require_same_state(given, oracle)


def test_nothing_is_kept_between_calls():
    r = random_generator_type("r")
    f = function([r], pt.random.normal(size=(5,), rng=r, return_next_rng=True)[1])
    f(np.random.default_rng(1))
    assert all(part == [None] for part in f.vm._parts)


def test_what_numba_calls_is_by_numba():
    from numba.core.registry import CPUDispatcher

    r = random_generator_type("r")
    f = function([r], pt.random.normal(size=(5,), rng=r, return_next_rng=True)[1])
    jitted = f.vm.jit_fn
    assert isinstance(jitted, CPUDispatcher)
    [drawn] = jitted(np.random.default_rng(1))
    assert np.array_equal(drawn, np.random.default_rng(1).normal(size=5))


def test_c_has_arrays_only():
    r = random_generator_type("r")
    f = function([r], pt.random.normal(size=(5,), rng=r, return_next_rng=True)[1])
    with pytest.raises(NativeLinkError, match="C knows no r: give it arrays alone"):
        compile_c(f)
    shared = pytensor.shared(np.random.default_rng(1), name="r")
    later, x = pt.random.normal(rng=shared, return_next_rng=True)
    with pytest.raises(NativeLinkError, match="C knows no r"):
        compile_c(function([], x, updates={shared: later}))


def test_a_generator_is_not_drawn_from_while_another_thread_does():
    # NumPy's methods draw without the interpreter's lock, but with that of the generator.
    rng = np.random.default_rng(5)
    shared = pytensor.shared(rng, borrow=True)
    after, x = pt.random.normal(size=(3,), rng=shared, return_next_rng=True)
    f = function([], x, updates={shared: after})
    drawn = []
    thread = threading.Thread(target=lambda: drawn.append(f()))
    with rng.bit_generator.lock:
        thread.start()
        thread.join(0.2)
        assert not drawn
        expected = np.random.default_rng(5).normal(size=6)
        # This thread already holds the lock.
        assert np.array_equal(f(), expected[:3])
    thread.join()
    assert np.array_equal(drawn[0], expected[3:])


def test_one_generator_may_be_two_arguments():
    one, other = random_generator_type("one"), random_generator_type("other")
    after, x = pt.random.normal(rng=one, return_next_rng=True)
    later, y = pt.random.normal(rng=other, return_next_rng=True)
    given = [pytensor.In(one, mutable=True), pytensor.In(other, mutable=True)]
    f = function(given, [x, y, after, later])
    rng, last = np.random.default_rng(2), np.random.default_rng(3)
    assert sorted(f(rng, rng)[:2]) == sorted(np.random.default_rng(2).normal(size=2))
    for pair in ((rng, last), (last, rng)):
        assert f(*pair)[2:] == list(pair)
