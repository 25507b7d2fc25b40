"""The error of the ops against extended precision, and against what is written by hand."""

from math import comb

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg
from pytensor.tensor.linalg import cholesky, lu_factor

from pytensor_fuse._linalg.ops.cholesky_inverse import cholesky_inverse
from pytensor_fuse._linalg.ops.lu_inverse import lu_inverse
from support.extended import error, inverse_columns, log_determinant
from support.linalg.structures import as_it_is, general, positive_definite

# Of size and condition number.
CASES = [(5, 1e2), (5, 1e12), (40, 1e2), (40, 1e6), (40, 1e12), (200, 1e12)]


def columns_of(n):
    """Return a few columns: the first, one in the middle, the last."""
    return sorted({0, n // 2, n - 1})


def allowed(hand_written, reference, dtype):
    """Return ten times the error of the hand-written form, but for what any rounding makes."""
    return 10 * max(error(hand_written, reference), np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("n", "condition"), CASES)
def test_inverse_from_cholesky(n, condition, dtype):
    if dtype == "float32":
        condition **= 0.5
    matrix = positive_definite(n, condition, dtype=dtype)
    a = pt.matrix("a", dtype=dtype)
    computed = pytensor.function([a], cholesky_inverse(cholesky(a)), mode=as_it_is("CVM"))(matrix)
    columns = columns_of(n)
    reference = inverse_columns(matrix, columns)
    factor = scipy.linalg.cho_factor(matrix, lower=True)
    by_hand = scipy.linalg.cho_solve(factor, np.eye(n, dtype=dtype)[:, columns])
    assert error(computed[:, columns], reference) <= allowed(by_hand, reference, dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("n", "condition"), CASES)
def test_inverse_from_lu(n, condition, dtype):
    if dtype == "float32":
        condition **= 0.5
    matrix = general(n, condition, dtype=dtype)
    a = pt.matrix("a", dtype=dtype)
    computed = pytensor.function([a], lu_inverse(*lu_factor(a)), mode=as_it_is("CVM"))(matrix)
    columns = columns_of(n)
    reference = inverse_columns(matrix, columns)
    factors = scipy.linalg.lu_factor(matrix)
    by_hand = scipy.linalg.lu_solve(factors, np.eye(n, dtype=dtype)[:, columns])
    assert error(computed[:, columns], reference) <= allowed(by_hand, reference, dtype)


def test_references_are_exact():
    """A Hilbert matrix, whose inverse and determinant are known, from entries that are floats."""
    n = 8
    multiple = float(np.lcm.reduce(np.arange(1, 2 * n)))
    hilbert = multiple / (np.arange(1, n + 1)[:, None] + np.arange(n))
    np.testing.assert_array_equal(hilbert, np.round(hilbert))
    exact = scipy.linalg.invhilbert(n, exact=True)
    inverse = inverse_columns(hilbert, range(n)) * int(multiple)
    assert error(exact, inverse) < 1e-30
    determinant = 1
    for k in range(1, n):
        # The determinant of the inverse is the product of these.
        determinant *= (2 * k + 1) * comb(2 * k, k) ** 2
    expected = n * np.log(multiple) - np.log(float(determinant))
    assert float(log_determinant(hilbert)) == pytest.approx(expected, rel=1e-13)
