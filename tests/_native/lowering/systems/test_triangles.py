"""Cholesky factors, triangular systems, and systems with Cholesky factors."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.solvers.psd import CholeskySolve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from scipy.linalg import LinAlgError

from pytensor_fuse._native.lowering.matrices.operands import NOT_CONFORMING, NOT_SQUARE
from pytensor_fuse._native.lowering.registry import lower
from support.native.functions import native_function, stock_function
from support.native.linalg import (
    any_matrix,
    check_linalg,
    definite,
    dtypes,
    given_as,
    layouts,
    lower_factor,
    readers_of,
    right_side,
    seeds,
    sizes,
    widths,
)
from support.native.lowering import check, check_failure, raw_graph, rewritten_graph, run, text

booleans = st.booleans()


@given(dtypes, sizes, layouts, booleans, booleans, booleans, seeds)
def test_cholesky(dtype, n, layout, is_lower, overwrites, is_static, seed):
    # The other triangle is not read.
    kept = (np.tril if is_lower else np.triu)(definite(n, seed, dtype))
    noise = (np.triu if is_lower else np.tril)(np.full((n, n), 9, dtype), 1 if is_lower else -1)
    x = given_as("x", kept + noise, layout, is_static=is_static)
    op = Cholesky(lower=is_lower, overwrite_a=overwrites)
    destroyed = [0] if overwrites else []
    check_linalg([x], [op(x.variable)], destroyed=destroyed, rewrites=seed == 0)


@pytest.mark.parametrize("n", [2, 6])
@pytest.mark.parametrize("layout", ["transposed", "computed, transposed"])
@pytest.mark.parametrize("is_lower", [False, True])
def test_one_triangle_of_a_transpose_is_read(is_lower, layout, n):
    values = (np.tril if is_lower else np.triu)(definite(n, 0, "float64"))
    x = given_as("x", values, layout, is_static=True)
    check_linalg([x], [Cholesky(lower=is_lower)(x.variable)], rewrites=False)


@pytest.mark.parametrize("overwrites", [False, True])
@pytest.mark.parametrize("layout", ["an input", "computed", "transposed"])
@pytest.mark.parametrize("values", [-1.0, 0.0, np.nan, np.inf])
def test_without_a_factor_there_is_nan(values, layout, overwrites):
    matrix = np.eye(4)
    matrix[2, 2] = values
    if np.isinf(values):
        matrix[2, 3] = matrix[3, 2] = values
    x = given_as("x", matrix, layout)
    factor = Cholesky(overwrite_a=overwrites)(x.variable)
    check_linalg([x], [factor], destroyed=[0] if overwrites else [])
    if values in (-1, 0):
        [found] = run(raw_graph([x.input], [factor]), [x.value], destroyed=[0])
        assert np.isnan(found).all()


@given(dtypes, sizes, widths, layouts, layouts, booleans, booleans, booleans, seeds)
def test_triangular_systems(dtype, n, width, layout, of_right, is_lower, unit, overwrites, seed):
    factor = lower_factor(n, seed, dtype)
    # The other triangle is not read.
    noise = np.triu(np.full((n, n), np.nan, dtype), 1)
    matrix = factor + np.nan_to_num(noise, nan=9)
    a = given_as("a", matrix if is_lower else matrix.T, layout)
    b = given_as("b", right_side(n, width, seed, dtype), of_right)
    op = SolveTriangular(
        lower=is_lower,
        unit_diagonal=unit,
        b_ndim=b.variable.type.ndim,
        overwrite_b=overwrites,
    )
    check_linalg(
        [a, b],
        [op(a.variable, b.variable)],
        destroyed=[1] if overwrites else [],
        rewrites=seed == 0,
    )


@pytest.mark.parametrize("overwrites", [False, True])
@pytest.mark.parametrize("width", [None, 2])
def test_a_zero_on_the_diagonal_gives_nan(width, overwrites):
    matrix = lower_factor(4, 0, "float64")
    matrix[2, 2] = 0
    a, b = given_as("a", matrix), given_as("b", right_side(4, width, 0, "float64"))
    op = SolveTriangular(lower=True, b_ndim=b.value.ndim, overwrite_b=overwrites)
    destroyed = [1] if overwrites else []
    check_linalg([a, b], [op(a.variable, b.variable)], destroyed=destroyed)
    # With a unit diagonal, the matrix is regular.
    op = SolveTriangular(
        lower=True, b_ndim=b.value.ndim, unit_diagonal=True, overwrite_b=overwrites
    )
    check_linalg([a, b], [op(a.variable, b.variable)], destroyed=destroyed)


@given(dtypes, sizes, widths, layouts, layouts, booleans, booleans, seeds)
def test_systems_with_factors(dtype, n, width, layout, of_right, is_lower, overwrites, seed):
    factor = lower_factor(n, seed, dtype)
    c = given_as("c", factor if is_lower else factor.T, layout)
    b = given_as("b", right_side(n, width, seed, dtype), of_right)
    op = CholeskySolve(lower=is_lower, b_ndim=b.variable.type.ndim, overwrite_b=overwrites)
    check_linalg(
        [c, b],
        [op(c.variable, b.variable)],
        destroyed=[1] if overwrites else [],
        rewrites=seed == 0,
    )


@pytest.mark.parametrize("overwrites", [False, True])
def test_what_is_read_later_is_not_overwritten(overwrites):
    x = given_as("x", definite(5, 0, "float64"))
    b = given_as("b", right_side(5, 2, 0, "float64"))
    computed, right = x.variable * 2, b.variable + 1
    factor = Cholesky(overwrite_a=False)(computed)
    solved = SolveTriangular(lower=True, b_ndim=2, overwrite_b=False)(factor, right)
    outputs = [
        solved,
        readers_of(computed),
        readers_of(right),
        readers_of(factor),
        computed[::-1],
        right.T,
    ]
    # Also if inputs may be overwritten: the rewritten graph overwrites where it can.
    check_linalg([x, b], outputs, destroyed=[0, 1] if overwrites else [])


def _n_made(program):
    lines = [line.split() for line in program.splitlines()]
    return sum(line[:1] == ["buffer"] and line[2] in ("temporary", "output") for line in lines)


def test_temporary_arrays_and_given_ones_are_overwritten():
    x, b = pt.dmatrix("x"), pt.dvector("b")
    factor = Cholesky(overwrite_a=True)(pt.dot(x, x.T))
    program = text([x, b], [SolveTriangular(lower=True, b_ndim=1)(factor, b)])
    # The product, which the factor overwrites, and the solution.
    assert _n_made(program) == 2, program
    copied = Cholesky(overwrite_a=False)(pt.dot(x, x.T))
    program = text([x, b], [SolveTriangular(lower=True, b_ndim=1)(copied, b)])
    assert _n_made(program) == 3, program


def test_an_outer_product_is_computed_before_its_factors_are_overwritten():
    x, y, b = pt.col("x"), pt.row("y"), pt.dmatrix("b")
    solved = SolveTriangular(lower=True, b_ndim=2, overwrite_b=True)(b, x)
    values = [right_side(3, 1, 0, "float64"), right_side(1, 4, 1, "float64"), np.eye(3) * 2]
    outputs = [pt.dot(x, y), solved]
    check([x, y, b], [outputs[0] + solved, solved], values, destroyed=[0], rtol=1e-12)


@pytest.mark.parametrize("layout", ["an input", "computed"])
def test_an_input_given_back_is_overwritten(layout):
    x = given_as("x", definite(6, 0, "float64"), layout)
    factor = Cholesky(overwrite_a=True)(x.variable)
    check_linalg([x], [factor, pt.sum(factor)], destroyed=[0])


def test_shapes_that_do_not_fit():
    a, b = pt.dmatrix("a"), pt.dmatrix("b")
    wide, square, right = np.ones((2, 3)), np.eye(3), np.ones((2, 2))
    check_failure([a], [Cholesky()(a)], [wide], LinAlgError, NOT_SQUARE)
    for op in (SolveTriangular(b_ndim=2), CholeskySolve(lower=True, b_ndim=2)):
        solved = [op(a, b)]
        check_failure([a, b], solved, [square, right], LinAlgError, NOT_CONFORMING)
        check_failure([a, b], solved, [wide, right], LinAlgError, NOT_SQUARE)


def test_shapes_that_do_not_fit_an_upper_factor():
    a, b = pt.dmatrix("a"), pt.dmatrix("b")
    wide, square, right = np.ones((2, 3)), np.eye(3), np.ones((2, 2))
    solved = [CholeskySolve(lower=False, b_ndim=2)(a, b)]
    check_failure([a, b], solved, [square, right], LinAlgError, NOT_CONFORMING)
    # After rewriting, the transposed matrix is the lower factor, whose rows do not fit either.
    for fgraph, message in (
        (raw_graph([a, b], solved), NOT_SQUARE),
        (rewritten_graph([a, b], solved), NOT_CONFORMING),
    ):
        with pytest.raises(LinAlgError, match=message):
            run(fgraph, [wide, right])


def test_complex_numbers_are_refused():
    z = pt.zmatrix("z")
    assert "complex" in lower.refusal(Cholesky()(z).owner)
    assert "complex" in lower.refusal(SolveTriangular(b_ndim=2)(z, z).owner)


@given(dtypes, sizes, booleans, seeds)
def test_integers_become_floats(dtype, n, is_lower, seed):
    values = np.tril(np.random.default_rng(seed).integers(1, 5, size=(n, n)))
    a = given_as("a", values if is_lower else values.T)
    b = given_as("b", right_side(n, None, seed, dtype))
    op = SolveTriangular(lower=is_lower, b_ndim=1)
    # PyTensor's result for integers and float32 is float64.
    check(
        [a.input, b.input],
        [op(a.variable, b.variable)],
        [a.value, b.value],
        rtol=1e-9,
        rewrites=False,
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_machine_code(dtype):
    x, b = pt.matrix("x", dtype=dtype), pt.vector("b", dtype=dtype)
    factor = pt.linalg.cholesky(x)
    solved = pt.linalg.solve_triangular(factor, b, lower=True)
    cost = pt.sum(solved**2) + 2 * pt.sum(pt.log(pt.diag(factor)))
    outputs = [cost, *pytensor.grad(cost, [x, b]), pt.linalg.cho_solve((factor, True), b)]
    function, stock = native_function([x, b], outputs), stock_function([x, b], outputs)
    for n in (0, 1, 2, 40):
        values = definite(n, n, dtype), right_side(n, None, n, dtype)
        for layout in (np.ascontiguousarray, np.asfortranarray, lambda v: v[::-1][::-1]):
            found = function(layout(values[0]), values[1])
            rtol = 1e-8 if dtype == "float64" else 2e-2
            for one, other in zip(found, stock(*values), strict=True):
                np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


def test_any_matrix_solves_as_its_triangle():
    matrix = any_matrix(6, 1, "float64") + 3 * np.eye(6)
    a, b = given_as("a", matrix), given_as("b", right_side(6, 3, 1, "float64"))
    for is_lower in (False, True):
        op = SolveTriangular(lower=is_lower, b_ndim=2)
        [found] = run(
            raw_graph([a.input, b.input], [op(a.variable, b.variable)]), [a.value, b.value]
        )
        triangle = (np.tril if is_lower else np.triu)(matrix)
        np.testing.assert_allclose(triangle @ found, b.value, atol=1e-12)
