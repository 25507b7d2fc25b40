"""Each routine against NumPy, to test the declarations of LAPACK calls."""

from __future__ import annotations

import numpy as np
import pytest

from pytensor_fuse._native.program.external.routines import ROUTINES, run_routine

DTYPES = ["float64", "float32"]


def matrix(*shape, dtype):
    return np.random.default_rng(7).normal(size=shape).astype(dtype)


def definite(n, dtype):
    half = matrix(n, n, dtype=dtype)
    return half @ half.T + n * np.eye(n, dtype=dtype)


def call(name, sizes, *arrays):
    arrays = [np.array(one, order="C") for one in arrays]
    report = run_routine(ROUTINES[name], sizes, arrays)
    return report, arrays


def near(one, other):
    rtol = 1e-10 if one.dtype == np.float64 else 1e-3
    np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("k", [0, 1, 3, None])
@pytest.mark.parametrize("unit", ["", "_unit"])
@pytest.mark.parametrize("which", ["l", "lt", "u", "ut"])
def test_triangular_systems(which, unit, k, n, dtype):
    a = definite(n, dtype)
    triangle = np.tril(a) if which[0] == "l" else np.triu(a)
    if unit:
        triangle = triangle - np.diag(np.diag(triangle)) + np.eye(n, dtype=dtype)
    held = a.T if which.endswith("t") else a
    x = matrix(*((n,) if k is None else (n, k)), dtype=dtype)
    name = f"solve_{which}{unit}" + ("_vector" if k is None else "")
    _, [found, _] = call(name, [n] if k is None else [n, k], x, held)
    near(triangle @ found, x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("which", ["l", "u"])
def test_cholesky_factors_and_their_inverses(which, n, dtype):
    a = definite(n, dtype)
    half = np.tril if which == "l" else np.triu
    report, [factor] = call(f"potrf_{which}", [n], half(a))
    assert report == 0
    # The other triangle is unchanged.
    assert np.array_equal(factor, half(factor))
    product = factor @ factor.T if which == "l" else factor.T @ factor
    near(product, a)
    if which == "u":
        x = matrix(3, n, dtype=dtype)
        report, [found, _] = call("potrs_u", [n, 3], x, factor)
        assert report == 0
        near(a @ found.T, x.T)
    report, [inverse] = call(f"potri_{which}", [n], factor)
    assert report == 0
    near(inverse, half(np.linalg.inv(a.astype("float64"))).astype(dtype))


def test_what_lapack_reports():
    assert call("potrf_l", [2], np.diag([1.0, -1.0]))[0] == 2
    assert call("potri_l", [2], np.diag([1.0, 0.0]))[0] == 2
    assert call("getrf", [2], np.zeros((2, 2)), np.zeros(2, np.int32))[0] == 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 5])
def test_lu_factors_what_they_solve_and_their_inverses(n, dtype):
    a, x = definite(n, dtype)[::-1], matrix(3, n, dtype=dtype)
    report, [factors, pivots] = call("getrf", [n], a.T, np.zeros(n, np.int32))
    assert report == 0
    lower = np.tril(factors.T, -1) + np.eye(n, dtype=dtype)
    rows = np.arange(n)
    for row, other in enumerate(pivots - 1):
        rows[[row, other]] = rows[[other, row]]
    near(lower @ np.triu(factors.T), a[rows])
    report, [found, _, _] = call("getrs", [n, 3], x, factors, pivots)
    assert report == 0
    near(a @ found.T, x.T)
    size = max(64 * n, 1)
    report, [inverse, _, _] = call("getri", [n, size], factors, pivots, np.empty(size, dtype))
    assert report == 0
    near(inverse.T @ a, np.eye(n, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("k", [0, 1, 3])
@pytest.mark.parametrize("which", ["l", "u"])
def test_symmetric_systems(which, k, n, dtype):
    a, x = definite(n, dtype) - 4 * np.eye(n, dtype=dtype), matrix(k, n, dtype=dtype)
    half = (np.tril if which == "l" else np.triu)(a)
    size = max(64 * n, 1)
    work = np.empty(size, dtype)
    report, arrays = call(f"sysv_{which}", [n, k, size], half, np.zeros(n, np.int32), x, work)
    assert report == 0
    near(a @ arrays[2].T, x.T)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 6])
@pytest.mark.parametrize("which", ["n", "t"])
def test_tridiagonal_systems(which, n, dtype):
    m, f = max(n - 1, 0), max(n - 2, 0)
    lower, main, upper = matrix(m, dtype=dtype) + 3, matrix(n, dtype=dtype), matrix(m, dtype=dtype)
    a = np.diag(main)
    if m:
        a = a + np.diag(lower, -1) + np.diag(upper, 1)
    second, pivots = np.empty(f, dtype), np.zeros(n, np.int32)
    report, factors = call("gttrf", [n, m, f], lower, main, upper, second, pivots)
    assert report == 0
    x = matrix(3, n, dtype=dtype)
    report, [found, *_] = call(f"gttrs_{which}", [n, m, f, 3], x, *factors)
    assert report == 0
    near((a if which == "n" else a.T) @ found.T, x.T)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 6])
@pytest.mark.parametrize("which", ["n", "t"])
@pytest.mark.parametrize(("below", "above"), [(0, 0), (1, 2), (2, 0)])
def test_banded_systems(below, above, which, n, dtype):
    a = np.tril(np.triu(definite(n, dtype), -below), above)
    rows = 2 * below + above + 1
    band = np.zeros((n, rows), dtype)
    for j in range(n):
        for i in range(max(j - above, 0), min(j + below + 1, n)):
            band[j, below + above + i - j] = a[i, j]
    sizes = [n, below, above, rows]
    report, factors = call("gbtrf", sizes, band, np.zeros(n, np.int32))
    assert report == 0
    x = matrix(3, n, dtype=dtype)
    report, [found, *_] = call(f"gbtrs_{which}", [*sizes, 3], x, *factors)
    assert report == 0
    near((a if which == "n" else a.T) @ found.T, x.T)
