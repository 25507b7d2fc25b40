"""What Numba is set to decides what it makes of a graph: only equal settings share it."""

from __future__ import annotations

from unittest import mock

import numba
import numpy as np
import pytensor
import pytensor.link.numba.dispatch  # noqa: F401 - before there is another njit
import pytensor.tensor as pt
import pytest
from numba.core.dispatcher import Dispatcher

pytestmark = pytest.mark.usefixtures("numba_alone")


def compiled():
    x = pt.vector("x")
    return pytensor.function([x], pt.cumsum(x) + pt.exp(x), mode="NUMBA")


def jitted(function):
    return function.vm.jit_fn


def identity(*args, **kwargs):
    """Compile nothing, as in PyTensor's own tests of what is given to Numba."""
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
