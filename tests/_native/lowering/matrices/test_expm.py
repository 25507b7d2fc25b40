"""Expm: each approximant, scaling, and the gradient."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from pytensor.tensor import linalg
from pytensor.tensor.linalg.products import Expm

from support.native.functions import native_function
from support.native.lowering import check_failure, rewritten_graph, run
from support.native.matrices import RTOL, Given, given_matrices, require_close, results

# Norms on both sides of each threshold.
NORMS = (0.0, 1e-300, 0.014, 0.016, 0.25, 0.26, 0.42, 0.43, 0.9, 1.0, 1.8, 2.0, 3.9, 4.0, 5.3, 5.4)


@given(given_matrices(dtypes=("float64", "float32", "int8")), st.sampled_from([*NORMS, 11, 40]))
def test_values(one: Given, norm: float) -> None:
    dtype = str(one.expected.dtype)
    data, values = one.expected, one.values
    if dtype != "int8" and data.size:
        factor = norm / np.linalg.norm(data, 1)
        data = (data * factor).astype(dtype)
        values = [(value * factor).astype(dtype) for value in values]
    output = Expm()(one.matrix)
    # SciPy's function may overflow, and warns.
    with np.errstate(all="ignore"):
        expected = scipy.linalg.expm(data.astype("float64"))
    for [found] in results(one.inputs, [output], values):
        if len(found) and np.isfinite(found).all():
            require_close(found, expected, 10 * RTOL[output.type.dtype])
        else:
            assert found.shape == data.shape


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size", [2, 6, 50])
def test_errors_in_units_of_the_last_place(dtype, size):
    x = pt.matrix("x", dtype=dtype)
    function = native_function([x], linalg.expm(x))
    base = np.random.default_rng(10).normal(size=(size, size))
    for norm in (*NORMS[2:], 30.0):
        data = (base * (norm / np.linalg.norm(base, 1))).astype(dtype)
        exact = scipy.linalg.expm(data.astype("float64"))
        error = np.abs(function(data) - exact).max() / np.abs(exact).max()
        # Squaring doubles errors.
        assert error <= (40 if norm < 4 else 200) * np.finfo(dtype).eps


def test_of_diagonal_matrices():
    x, diagonal = pt.dmatrix("x"), np.array([-700.0, -1.0, 0.0, 3.0, 300.0])
    [found] = run(rewritten_graph([x], [linalg.expm(x)]), [np.diag(diagonal)])
    require_close(np.diag(found) / np.exp(diagonal), np.ones(5), 1e-10)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(bad):
    x, data = pt.dmatrix("x"), np.eye(3)
    data[0, 2] = bad
    [found] = run(rewritten_graph([x], [linalg.expm(x)]), [data])
    assert np.isnan(found).all()


def test_errors():
    x = pt.dmatrix("x")
    text = "Last 2 dimensions of A must be square"
    check_failure([x], [Expm()(x)], [np.ones((2, 3))], np.linalg.LinAlgError, text)


@pytest.mark.parametrize("size", [1, 4, 20])
def test_value_and_gradient(size):
    x, weights = pt.dmatrix("x"), pt.dmatrix("weights")
    cost = (weights * linalg.expm(x)).sum()
    outputs = [cost, pytensor.grad(cost, x)]
    given = np.random.default_rng(11).normal(size=(2, size, size))
    found = native_function([x, weights], outputs)(*given)
    expected = pytensor.function([x, weights], outputs, mode="FAST_COMPILE")(*given)
    for one, other in zip(found, expected, strict=True):
        require_close(one, other, 1e-10)
