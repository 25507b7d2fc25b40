"""What Numba is set to decides what it makes of a graph: only equal settings share it."""

from __future__ import annotations

from contextlib import nullcontext
from unittest import mock

import numba
import numpy as np
import pytensor
import pytensor.link.numba.dispatch  # noqa: F401 - before there is another njit
import pytensor.tensor as pt
import pytest
from numba.core.dispatcher import Dispatcher
from pytensor.graph.traversal import ancestors

pytestmark = pytest.mark.usefixtures("numba_alone")


def compiled():
    x = pt.vector("x")
    return pytensor.function([x], pt.cumsum(x) + pt.exp(x), mode="NUMBA")


def jitted(function):
    return function.vm.jit_fn


def identity(*args, **kwargs):
    """Compile nothing, as PyTensor's own tests of functions for Numba do."""
    if len(args) != 1 or not callable(args[0]):
        return identity
    args[0].py_func = args[0]
    return args[0]


def test_what_was_not_compiled_is_not_reused():
    with (
        mock.patch("numba.njit", identity),
        mock.patch("pytensor.link.numba.dispatch.basic.numba_njit", identity),
    ):
        plain = compiled()
    assert not isinstance(jitted(plain), Dispatcher)
    after = compiled()
    assert isinstance(jitted(after), Dispatcher)
    np.testing.assert_allclose(after(np.ones(3)), np.arange(1, 4) + np.e)


VECTOR, MATRIX, INDICES = pt.dvector("v"), pt.dmatrix("m"), pt.lvector("i")

# What PyTensor's own tests of Numba compile in Python first, as here.
OF_ITS_TESTS = {
    "elementwise": pt.exp(VECTOR) + VECTOR**2,
    "sum": MATRIX.sum(axis=0),
    "dimshuffle": MATRIX.dimshuffle(1, "x", 0),
    "dot": pt.dot(MATRIX, VECTOR),
    "softmax": pt.special.softmax(MATRIX, axis=1),
    "clip": pt.clip(VECTOR, 0.1, 0.5),
    "cast": pt.cast(VECTOR, "int64"),
    "reshape": MATRIX.reshape((-1, 2)),
    "make vector": pt.stack([VECTOR[0], VECTOR[1], pt.constant(1.0)]),
    "index": MATRIX[INDICES, 1:],
    "two indices": MATRIX[INDICES, INDICES],
    "increment": pt.inc_subtensor(VECTOR[INDICES], 1.0),
    "increment of two": pt.set_subtensor(MATRIX[INDICES, INDICES], 0.5),
    "Cholesky": pt.linalg.cholesky(MATRIX),
    "scan": pytensor.scan(lambda x, before: before * x, VECTOR, VECTOR[0], return_updates=False)[
        -1
    ],
}


@pytest.mark.parametrize("order", [("Python", "Numba"), ("Numba", "Python")], ids="-".join)
@pytest.mark.parametrize("name", OF_ITS_TESTS)
def test_equal_graphs_are_compiled_by_who_is_asked(name, order):
    """Numba itself has nothing to do before a function is called."""
    result = OF_ITS_TESTS[name]
    known = set(ancestors([result]))
    inputs = [one for one in (VECTOR, MATRIX, INDICES) if one in known]

    def made_by(who):
        replaced = mock.patch("pytensor.link.numba.dispatch.basic.numba_njit", identity)
        with replaced if who == "Python" else nullcontext():
            return jitted(pytensor.function(inputs, result, mode="NUMBA"))

    made = {who: made_by(who) for who in order}
    assert not isinstance(made["Python"], Dispatcher)
    assert isinstance(made["Numba"], Dispatcher)
    for who in order:
        assert isinstance(made_by(who), Dispatcher) == (who == "Numba")


def test_what_was_compiled_is_not_given_to_those_who_want_python():
    before = compiled()
    with mock.patch("pytensor.link.numba.dispatch.basic.numba_njit", identity):
        plain = compiled()
    assert isinstance(jitted(before), Dispatcher)
    assert not isinstance(jitted(plain), Dispatcher)
    assert jitted(compiled()) is jitted(before)


@pytest.mark.parametrize("name", ["OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK"])
def test_settings_of_numba_tell_functions_apart(name):
    before = compiled()
    with mock.patch.object(numba.config, name, 0 if getattr(numba.config, name) != 0 else 1):
        other = compiled()
        assert jitted(other) is not jitted(before)
        assert jitted(compiled()) is jitted(other)
