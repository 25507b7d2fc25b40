"""Faults that were found in machine code, each once."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

import pytensor_fuse


def native(inputs, outputs):
    assert pytensor_fuse.is_enabled("native")
    return pytensor.function(inputs, outputs, mode="NATIVE", on_unused_input="ignore")


def test_alloc_of_another_length_than_its_value_raises():
    x, n = pt.vector("x", shape=(5,)), pt.lscalar("n")
    function = native([x, n], pt.alloc(x, 2, n))
    assert function(np.arange(5.0), 5).shape == (2, 5)
    with pytest.raises(ValueError, match="could not broadcast input array"):
        function(np.arange(5.0), 2)


def test_reshape_to_another_size_raises():
    x, n = pt.vector("x"), pt.lscalar("n")
    function = native([x, n], x.reshape((2, n)))
    assert function(np.arange(4.0), 2).shape == (2, 2)
    with pytest.raises(ValueError, match="total size of new array"):
        function(np.arange(4.0), 3)


def test_cumulative_sums_begin_with_the_sign_of_the_first_element():
    x = pt.vector("x")
    (first, _) = native([x], pt.cumsum(x))(np.array([-0.0, 1.0]))
    assert np.signbit(first)


def test_temporaries_of_no_bytes_may_be_read():
    x, empty = pt.vector("x"), pt.matrix("empty", shape=(0, 3))
    function = native([x, empty], pt.exp(pt.exp(empty)[:, 0][: x.shape[0]]).sum() + x.sum())
    assert function(np.ones(2), np.ones((0, 3))) == 2


def test_two_temporaries_with_lengths_computed_on_the_way():
    x, n, m = pt.vector("x"), pt.lscalar("n"), pt.lscalar("m")
    function = native([x, n, m], pt.cumsum(pt.exp(x[:n])).sum() + pt.cumsum(pt.exp(x[:m])).sum())
    values = np.linspace(0, 1, 9)
    expected = sum(np.cumsum(np.exp(values[:k])).sum() for k in (4, 7))
    np.testing.assert_allclose(function(values, 4, 7), expected)


def test_code_of_an_equal_graph_reads_the_constants_that_are_there_now():
    data = np.arange(3.0)

    def made():
        x = pt.vector("x", shape=(3,))
        return native([x], x * pt.constant(data, name="data"))

    first = made()
    np.testing.assert_array_equal(first(np.ones(3)), [0, 1, 2])
    data[:] = 7
    np.testing.assert_array_equal(made()(np.ones(3)), [7, 7, 7])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_sums_of_few_terms_begin_with_zero(n):
    x = pt.matrix("x", shape=(n, 4))
    with pytensor.config.change_flags(numba__fastmath=False):
        # As it is: PyTensor rewrites sums along an axis of length 1 to what is along it.
        function = pytensor.function(
            [x], [x.sum(axis=0), x.T.sum(axis=1), x.sum()], mode=Mode("native", None)
        )
    for total in function(np.full((n, 4), -0.0)):
        assert not np.signbit(total).any()


@pytest.mark.parametrize("known", [None, 0])
def test_masks_of_no_elements_select_nothing(known):
    x, mask = pt.matrix("x"), pt.tensor("mask", dtype="bool", shape=(known,))
    # As it is: PyTensor's rewriter knows nothing of such masks.
    function = pytensor.function(
        [x, mask], [x[mask], pt.set_subtensor(x[mask], 5.0)], mode=Mode("native", None)
    )
    given = np.arange(6.0).reshape(3, 2)
    selected, assigned = function(given, np.zeros(0, bool))
    assert selected.shape == (0, 2)
    np.testing.assert_array_equal(assigned, given)
    if known is None:
        np.testing.assert_array_equal(function(given, np.array([True, False, True]))[0], given[::2])
        with pytest.raises(IndexError, match=r"size of axis is 3 but .* boolean axis is 2"):
            function(given, np.zeros(2, bool))
