"""Inverses, also from factors."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.tensor.linalg.inverse import MatrixInverse
from scipy.linalg import LinAlgError, lu_factor

from pytensor_fuse._linalg.ops.cholesky_inverse import CholeskyInverse
from pytensor_fuse._linalg.ops.lapack import NOT_SQUARE
from pytensor_fuse._linalg.ops.lu_inverse import WRONG_PIVOTS, LUInverse
from pytensor_fuse._native.lowering.registry import lower
from support.native.functions import native_function, stock_function
from support.native.linalg import (
    any_matrix,
    check_linalg,
    dtypes,
    given_as,
    layouts,
    lower_factor,
    readers_of,
    seeds,
    sizes,
    symmetric,
)
from support.native.lowering import check, check_failure, failure_of_stock, raw_graph, run

booleans = st.booleans()


@given(dtypes, sizes, layouts, booleans, seeds)
def test_inverses(dtype, n, layout, is_static, seed):
    x = given_as("x", any_matrix(n, seed, dtype), layout, is_static=is_static)
    outputs = [MatrixInverse()(x.variable), readers_of(x.variable)]
    check_linalg([x], outputs, rewrites=seed == 0)


@pytest.mark.parametrize(
    "values", [np.ones((2, 3)), np.array([[1, np.inf], [0, 1]]), np.ones((3, 3))]
)
def test_what_has_no_inverse(values):
    x = pt.dmatrix("x")
    inverse = [MatrixInverse()(x)]
    exception, message = failure_of_stock([x], inverse, [values])
    assert exception is LinAlgError
    check_failure([x], inverse, [values], exception, message)


@given(dtypes, sizes, layouts, booleans, booleans, booleans, seeds)
def test_inverses_of_factors(dtype, n, layout, is_lower, overwrites, checked, seed):
    factor = lower_factor(n, seed, dtype) * np.where(np.arange(n) % 2, 1, -1).astype(dtype)
    # The other triangle is not read.
    held = factor + np.triu(np.full((n, n), 9, dtype), 1)
    x = given_as("x", held if is_lower else held.T, layout)
    more = [given_as("a", factor @ factor.T)] if checked else []
    op = CholeskyInverse(lower=is_lower, overwrite_a=overwrites, checked=checked)
    inverse = op(x.variable, *[one.variable for one in more])
    check_linalg([x, *more], [inverse], destroyed=[0] if overwrites else [], rewrites=seed == 0)
    [found] = run(
        raw_graph([x.input, *[one.input for one in more]], [inverse]),
        [x.value, *[one.value for one in more]],
        destroyed=[0],
    )
    assert np.array_equal(found, found.T)


@pytest.mark.parametrize("n", [7, 8, 9, 15, 16, 17, 40])
@pytest.mark.parametrize("is_lower", [False, True])
def test_one_triangle_is_the_mirror_image_of_the_other(n, is_lower):
    factor = lower_factor(n, 0, "float64")
    x = pt.dmatrix("x")
    function = native_function([x], CholeskyInverse(lower=is_lower)(x))
    found = function(factor if is_lower else factor.T)
    assert np.array_equal(found, found.T)
    np.testing.assert_allclose(found @ factor @ factor.T, np.eye(n), atol=1e-12)


@pytest.mark.parametrize("overwrites", [False, True])
@pytest.mark.parametrize("layout", ["an input", "computed", "transposed"])
@pytest.mark.parametrize("on_diagonal", [0.0, np.nan, np.inf])
def test_factors_of_no_matrix(on_diagonal, layout, overwrites):
    factor = lower_factor(4, 0, "float64")
    matrix = factor @ factor.T + np.arange(4)
    factor[2, 2] = on_diagonal
    x, a = given_as("x", factor, layout), given_as("a", matrix, layout)
    destroyed = [0] if overwrites else []
    inverse = CholeskyInverse(overwrite_a=overwrites)(x.variable)
    if on_diagonal == 0:
        check_linalg([x], [inverse], destroyed=destroyed)
    if not np.isfinite(on_diagonal):
        op = CholeskyInverse(overwrite_a=overwrites, checked=True)
        check_linalg([x, a], [op(x.variable, a.variable)], destroyed=destroyed)
        failing = [CholeskyInverse(checked=True)(x.input, a.input)]
        values = [np.full((4, 4), np.nan), np.ones((4, 4))]
        exception, message = failure_of_stock([x.input, a.input], failing, values)
        check_failure([x.input, a.input], failing, values, exception, message)


def _packed(matrix):
    if not len(matrix):
        return matrix, np.empty(0, np.int32)
    return lu_factor(matrix)


@given(
    dtypes, sizes, layouts, booleans, booleans, booleans, st.sampled_from(["i4", "i8", "u1"]), seeds
)
def test_inverses_of_lu_factors(
    dtype, n, layout, overwrites, checked, is_symmetric, of_pivots, seed
):
    matrix = (symmetric if is_symmetric else any_matrix)(n, seed, dtype)
    packed, pivots = _packed(matrix)
    x = given_as("x", packed.astype(dtype), layout, is_static=is_symmetric)
    p = given_as("p", pivots.astype(of_pivots))
    arrays = [x, p, *([given_as("a", matrix)] if checked else [])]
    op = LUInverse(overwrite_a=overwrites, checked=checked, symmetric=is_symmetric)
    inverse = op(*[one.variable for one in arrays])
    check_linalg(arrays, [inverse], destroyed=[0] if overwrites else [], rewrites=seed == 0)


@pytest.mark.parametrize("overwrites", [False, True])
def test_lu_factors_of_no_matrix(overwrites):
    packed, pivots = _packed(any_matrix(4, 0, "float64"))
    singular, broken = packed.copy(), packed.copy()
    singular[1, 1], broken[:] = 0, np.nan
    p, a = given_as("p", pivots), given_as("a", any_matrix(4, 0, "float64"))
    destroyed = [0] if overwrites else []
    x = given_as("x", singular)
    op = LUInverse(overwrite_a=overwrites)
    check_linalg([x, p], [op(x.variable, p.variable)], destroyed=destroyed)
    x = given_as("x", broken)
    op = LUInverse(overwrite_a=overwrites, checked=True)
    check_linalg([x, p, a], [op(x.variable, p.variable, a.variable)], destroyed=destroyed)


def test_shapes_and_pivots_that_do_not_fit():
    x, p = pt.dmatrix("x"), pt.ivector("p")
    wide, square = np.ones((2, 3)), np.eye(3)
    check_failure([x], [CholeskyInverse()(x)], [wide], LinAlgError, NOT_SQUARE)
    inverse = [LUInverse()(x, p)]
    check_failure([x, p], inverse, [wide, [0, 1]], LinAlgError, NOT_SQUARE)
    for pivots in ([0, 1], [0, 1, 3], [0, -1, 2]):
        check_failure([x, p], inverse, [square, pivots], ValueError, WRONG_PIVOTS)


def test_what_is_refused():
    z, x, p = pt.zmatrix("z"), pt.dmatrix("x"), pt.ivector("p")
    assert "complex" in lower.refusal(MatrixInverse()(z).owner)
    assert "symmetric" in lower.refusal(LUInverse(symmetric=True)(x, p).owner)
    large = pt.tensor("large", dtype="float64", shape=(200, 200))
    assert "symmetric" in lower.refusal(LUInverse(symmetric=True)(large, p).owner)


def test_inverses_of_integers():
    x = pt.lmatrix("x")
    check([x], [MatrixInverse()(x)], [[[2, 1], [1, 3]]], rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_machine_code(dtype):
    x = pt.matrix("x", dtype=dtype)
    inverse = pt.linalg.inv(x)
    outputs = [inverse, pt.sum(inverse**2)]
    function, stock = native_function([x], outputs), stock_function([x], outputs)
    for n in (1, 2, 40):
        values = any_matrix(n, n, dtype)
        for layout in (np.ascontiguousarray, np.asfortranarray, lambda v: v[::-1][::-1]):
            rtol = 1e-8 if dtype == "float64" else 2e-2
            for one, other in zip(function(layout(values)), stock(values), strict=True):
                np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)
    with pytest.raises(LinAlgError, match="singular to machine precision"):
        function(np.zeros((3, 3), dtype))


def test_the_gradient_of_a_cost_of_a_definite_matrix():
    a = pt.dmatrix("a")
    matrix = a @ a.T + 3 * pt.eye(a.shape[0])
    inverse = pt.linalg.inv(matrix)
    cost = pt.sum(inverse**2) + pt.log(pt.linalg.det(matrix))
    outputs = [inverse, cost, pytensor.grad(cost, a)]
    function = native_function([a], outputs)
    names = {type(node.op).__name__ for node in function.maker.fgraph.apply_nodes}
    assert "CholeskyInverse" in names
    stock = stock_function([a], outputs)
    for n in (1, 3, 20):
        values = any_matrix(n, n, "float64")
        for one, other in zip(function(values), stock(values), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
