"""What is done with an upper Cholesky factor is what is done with a lower one."""

from functools import cache

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.assumptions import assume
from pytensor.compile.mode import get_mode
from pytensor.tensor.linalg import cho_solve, cholesky, inv, slogdet, solve_triangular

from support.linalg.rules import (
    ORACLE,
    OTHER_BACKENDS,
    check,
    compile_both,
    compile_ours,
    cubic,
    positive_definite,
)

N = 6
X, A, Z = pt.dmatrices("X", "A", "Z")
Y = pt.dvector("y")
SCALE = pt.dscalar("scale")
INPUTS = [X, A, Z, Y, SCALE]
RNG = np.random.default_rng(0)
VALUES = [
    RNG.normal(size=(N, 2)),
    positive_definite(N),
    RNG.normal(size=(N, 3)),
    RNG.normal(size=N),
    0.7,
]
SQUARES = (X**2).sum(axis=1)
DISTANCES = SQUARES[:, None] + SQUARES[None, :] - 2 * X @ X.T
KERNEL = pt.exp(-DISTANCES / SCALE**2) + 0.5 * pt.eye(X.shape[0])


class Factor:
    """A Cholesky factor with the gradient by what its matrix is made of, and what is solved."""

    def __init__(self, matrix, *, lower):
        self.by = SCALE if matrix is KERNEL else A
        self.packed = cholesky(matrix, lower=lower), lower
        self.given = self.packed[0]
        self.lower = self.given if lower else self.given.T
        self.matrix = matrix

    def white(self, right, **options):
        return solve_triangular(self.lower, right, lower=True, **options)

    def solved(self, right):
        return cho_solve(self.packed, right)

    def back(self, right):
        return solve_triangular(self.lower.T, right, lower=False)

    def with_gradient(self, value):
        return [value, pytensor.grad(value, self.by)]

    def logarithm(self):
        return pt.log(pt.diagonal(self.given)).sum()

    def product(self):
        return self.lower @ self.lower.T


# One for each rule that knows lower factors, by its name.
WORK = {
    "cholesky_gradient": lambda f: f.with_gradient((f.white(Y) ** 2).sum() + f.logarithm()),
    "cholesky_gradient, solved": lambda f: f.with_gradient(Y @ f.solved(Y) - f.logarithm()),
    "cholesky_gradient, other terms": lambda f: f.with_gradient(pt.sin(f.product()).sum()),
    "cholesky_gradient, none": lambda f: f.with_gradient((f.given * A).sum()),
    "sum_of_outer_products": lambda f: f.with_gradient((f.white(Z.T, b_ndim=1) ** 2).sum()),
    "quadratic_forms_from_half_solve": lambda f: [
        pt.diagonal(Z.T @ f.solved(Z)),
        f.solved(Z).T @ Y,
    ],
    "quadratic_forms_from_half_solve, by two": lambda f: [pt.diagonal(Z.T @ f.back(f.white(Z)))],
    "inverse_from_cholesky": lambda f: [f.solved(pt.eye(f.matrix.shape[0]))],
    "solve_of_outer_product": lambda f: [f.solved(pt.outer(Y, Y))],
    "solve_from_forward_solve": lambda f: [f.white(Y), f.solved(3 * Y)],
    "paired solves": lambda f: [f.back(f.white(Z))],
    "triangular_inverse": lambda f: [inv(f.given)],
    "triangular_determinant": lambda f: list(slogdet(f.product())),
}


@pytest.mark.parametrize("matrix", [KERNEL, A], ids=["kernel", "given"])
@pytest.mark.parametrize("work", WORK)
def test_as_with_the_lower_factor(work, matrix):
    upper = WORK[work](Factor(matrix, lower=False))
    ours, _ = check(INPUTS, upper, VALUES, ORACLE, rtol=1e-8)
    lower = compile_ours(INPUTS, WORK[work](Factor(matrix, lower=True)), ORACLE)
    assert ours == cubic(lower)


PARTS = {
    "element": lambda factor: factor[1, 2],
    "row": lambda factor: factor[1],
    "rows": lambda factor: factor[1:3],
    "block": lambda factor: factor[1:3, 2:4],
    "block from the start": lambda factor: factor[:4, :5],
    "rows at indices": lambda factor: factor[np.array([0, 2, 2])],
    "rows at indices, columns": lambda factor: factor[np.array([0, 2]), 1:],
    "elements": lambda factor: factor[np.array([0, 2, 2]), np.array([2, 3, 3])],
    "mask": lambda factor: factor[np.triu(np.ones((N, N), bool), 1)],
    "column": lambda factor: factor[:, 2],
}


@pytest.mark.parametrize("part", PARTS)
def test_gradient_by_a_part_of_the_factor(part):
    value = (PARTS[part](cholesky(A, lower=False)) ** 2).sum()
    with pytensor.config.change_flags(on_opt_error="raise"):
        check(INPUTS, [pytensor.grad(value, A)], VALUES, ORACLE, rtol=1e-8)


def test_inverse_of_factorized_matrix():
    known = assume(A, positive_definite=True)
    for lower in (True, False):
        outputs = [Factor(known, lower=lower).given, slogdet(known)[1], inv(known)]
        ours, _ = check(INPUTS, outputs, VALUES, ORACLE)
        assert ours == {"Cholesky": 1, "CholeskyInverse": 1}


def test_one_factorization_serves_both():
    both = [(Factor(KERNEL, lower=lower).white(Y) ** 2).sum() for lower in (True, False)]
    ours, stock = check(INPUTS, both, VALUES, ORACLE)
    assert ours["Cholesky"] == 1
    assert stock["Cholesky"] == 2


@pytest.mark.parametrize("lower", [True, False])
def test_triangle_that_is_not_read(lower):
    """Rules read the same triangle of an asymmetric matrix as before."""
    values = [*VALUES]
    unread = np.tril(np.ones((N, N)), -1) if not lower else np.triu(np.ones((N, N)), 1)
    values[1] = np.where(unread, np.nan, VALUES[1])
    factor = Factor(A, lower=lower)
    for outputs in [factor.given], factor.with_gradient(factor.logarithm()):
        ours, stock = compile_both(INPUTS, outputs, ORACLE)
        for mine, theirs in zip(ours(*values), stock(*values), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-12)


@cache
def of_upper_factor(dtype):
    matrix, right = pt.matrix("matrix", dtype=dtype), pt.vector("right", dtype=dtype)
    factor = cholesky(matrix, lower=False)
    cost = (solve_triangular(factor.T, right, lower=True) ** 2).sum()
    cost -= pt.log(pt.diagonal(factor)).sum()
    outputs = [factor, cho_solve((factor, False), right), cost, pytensor.grad(cost, matrix)]
    return compile_both([matrix, right], outputs, ORACLE)


ELEMENTS = st.integers(-8, 8).map(lambda n: n / 4) | st.sampled_from([np.nan, 1e3])


@given(st.data(), st.sampled_from(["float32", "float64"]), st.integers(0, 4), st.booleans())
def test_any_matrix(data, dtype, n, is_definite):
    """Definite or not, with NaN, of no rows or one: what stock computes, and NaN where it has."""
    numbers = data.draw(st.lists(ELEMENTS, min_size=n * n, max_size=n * n))
    square = np.array(numbers).reshape(n, n)
    matrix = (square @ square.T + np.eye(n) if is_definite else square).astype(dtype)
    ours, stock = of_upper_factor(dtype)
    right = np.ones(n, dtype)
    with np.errstate(all="ignore"):
        pairs = list(zip(ours(matrix, right), stock(matrix, right), strict=True))
    for mine, theirs in pairs:
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        # Stock multiplies zeros below the diagonal of a gradient by NaN.
        np.testing.assert_array_equal(np.isnan(mine).any(), np.isnan(theirs).any())
        if np.isfinite(theirs).all() and (not n or np.linalg.cond(square) < 1e3):
            rounding = 1e-3 if dtype == "float32" else 1e-9
            bound = rounding * np.abs(theirs).max(initial=0)
            np.testing.assert_allclose(mine, theirs, rtol=rounding, atol=bound)


def test_batches_and_complex_numbers():
    stack, right = pt.dtensor3("stack"), pt.dmatrix("right")
    factor = cholesky(stack, lower=False)
    outputs = [factor, cho_solve((factor, False), right, b_ndim=1), inv(factor)]
    ours, stock = compile_both([stack, right], outputs, ORACLE)
    given_values = [np.stack([positive_definite(N), positive_definite(N, 1)]), np.ones((2, N))]
    for mine, theirs in zip(ours(*given_values), stock(*given_values), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
    number = pt.zmatrix("number")
    ours, stock = compile_both([number], [cholesky(number, lower=False)], ORACLE)
    hermitian = positive_definite(N) + 0.1j * np.triu(np.ones((N, N)), 1)
    np.testing.assert_array_equal(ours(hermitian), stock(hermitian))


@pytest.mark.parametrize("mode", OTHER_BACKENDS)
def test_modes(mode):
    outputs = WORK["cholesky_gradient, solved"](Factor(KERNEL, lower=False))
    ours, _ = check(INPUTS, outputs, VALUES, get_mode(mode), 1e-8, ORACLE)
    assert "SolveTriangular" not in ours
