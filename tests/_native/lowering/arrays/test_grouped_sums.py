"""Gradients by group: long loops that add rows to the elements of their groups."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

import pytensor_fuse
from support.native.functions import kind, native_function, stock_function

N_GROUPS = 7


def grouped(n_rows, dtype, *, is_known):
    """Return inputs, outputs and values of sums by group, with the rows sorted by group."""
    rng = np.random.default_rng(n_rows)
    groups = np.sort(rng.integers(-N_GROUPS, N_GROUPS, size=n_rows))
    terms = rng.normal(size=n_rows).astype(dtype)
    base = rng.normal(size=N_GROUPS).astype(dtype)
    length = n_rows if is_known else None
    base_in = kind(dtype, N_GROUPS if is_known else None)("base")
    terms_in, groups_in = kind(dtype, length)("terms"), kind("int64", length)("groups")
    outputs = [
        base_in[groups_in].inc(terms_in * base_in[groups_in]),
        pt.sum(terms_in),
    ]
    return [base_in, terms_in, groups_in], outputs, [base, terms, groups]


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n_rows", [0, 1, 100, 2047, 2048, 5001])
def test_sums(n_rows, dtype, is_known):
    inputs, outputs, values = grouped(n_rows, dtype, is_known=is_known)
    function = native_function(inputs, outputs)
    found, expected = function(*values), stock_function(inputs, outputs)(*values)
    rtol = 1e-11 if dtype == "float64" else 2e-3
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)
    for one, again in zip(found, function(*values), strict=True):
        assert one.tobytes() == again.tobytes()


@pytest.mark.parametrize("is_known", [True, False])
def test_the_order_stays_without_fastmath(is_known):
    inputs, outputs, values = grouped(5001, "float64", is_known=is_known)
    with pytensor.config.change_flags(numba__fastmath=False):
        found = native_function(inputs, outputs)(*values)
        expected = stock_function(inputs, outputs)(*values)
    for one, other in zip(found, expected, strict=True):
        assert one.tobytes() == other.tobytes()


def test_lengths_that_must_be_equal_make_one_loop():
    effects, rows, groups = pt.vector("effects"), pt.vector("rows"), pt.lvector("groups")
    density = -(((rows - effects[groups]) ** 2).sum())
    function = native_function([effects, rows, groups], [density, pytensor.grad(density, effects)])
    loops = pytensor_fuse.explain(function, "native").loops
    # Filling the gradient, checking indices, and adding the rows; with copies, also filling them
    # and adding them up.
    assert len([loop for loop in loops if loop.why_scalar is None]) == 6


def test_a_length_that_a_check_of_data_finds_equal_is_not_taken_before_it():
    """The rows to write are known only after a loop, and so is the mismatch of their lengths."""
    x, y = pt.matrix("x"), pt.matrix("y", shape=(None, 700))
    first = pt.gt(x.sum(axis=1), 1e9).sum()
    outputs = [pt.set_subtensor(x[first:], y), pt.exp(x)]
    function = native_function([x, y], outputs)
    for n_rows in (30, 3000):
        with pytest.raises(ValueError, match="shape"):
            function(np.zeros((n_rows, 3)), np.ones((1, 700)))


def test_large_arrays_have_no_copies_of_few_rows():
    """Filling copies of a large array takes longer than adding to a few of its elements."""
    x, rows = pt.vector("x"), pt.vector("rows")
    groups = pt.lvector("groups")
    function = native_function([x, groups, rows], x[groups].inc(rows))
    region = pytensor_fuse.explain(function, "native").regions[0]
    assert "if %" in region.text
    values = np.zeros(10**6), np.arange(10), np.ones(10)
    np.testing.assert_array_equal(function(*values), np.r_[np.ones(10), np.zeros(10**6 - 10)])
