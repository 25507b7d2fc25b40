"""One LU factorization for all work on a matrix, its transpose and its multiples."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.assumptions import assume
from pytensor.tensor.linalg import det, eigh, inv, lu_factor, slogdet, solve

from support.linalg.rules import PYTHON, check, compile_both, estimated, positive_definite

N = 5
A, B = pt.dmatrices("A", "B")
Y, Z = pt.dvectors("y", "z")
C = pt.dscalar("c")
RNG = np.random.default_rng(2)
# Without permutations, the sign of which stock loses in PyTensor 3.0.
GENERAL = RNG.normal(size=(N, N)) - 5 * np.eye(N)
VALUES = [GENERAL, RNG.normal(size=N), RNG.normal(size=N), RNG.normal(size=(N, 3)), 1.7]
INPUTS = [A, Y, Z, B, C]
ONE = {"LUFactor": 1}
WITH_INVERSE = {"LUFactor": 1, "LUInverse": 1}
POSITIVE = pt.exp(C)

SHARED = {
    "solve and determinant": ([solve(A, Y), det(A)], ONE),
    "and its sign": ([solve(A, Y), *slogdet(A)], ONE),
    "of the transpose": ([solve(A, Y), slogdet(A.T)[1]], ONE),
    "with the transpose": ([solve(A.T, Y), slogdet(A)[1]], ONE),
    "vectors": ([solve(A, Y), solve(A, Z)], ONE),
    "vectors and the transpose": ([solve(A, Y), solve(A.T, Z), *slogdet(A)], ONE),
    "vector and matrix": ([solve(A, Y), solve(A, B), det(A)], {**ONE, "SolveTriangular": 2}),
    "factorization and determinant": ([*lu_factor(A), slogdet(A)[1]], ONE),
    "solution of a solution": ([solve(A, solve(A, Y)), slogdet(A)[1]], ONE),
    "equal terms": ([solve(A + 1, Y), slogdet(1 + A)[1]], ONE),
    "inverse of the transpose": ([inv(A.T), solve(A, Y)], WITH_INVERSE),
    "solve with a multiple": ([solve(2 * A, Y), slogdet(A)[1]], ONE),
    "determinant of a multiple": ([solve(A, Y), *slogdet(-3 * A)], ONE),
    "determinant of a negative": ([solve(A, Y), *slogdet(-A)], ONE),
    "multiples alone": ([solve(2 * A, Y), slogdet(A / 3)[1]], ONE),
    "positive multiple": ([solve(POSITIVE * A, Y), slogdet(A / POSITIVE)[1]], ONE),
    "multiple of the transpose": ([solve(2 * A.T, Y), slogdet(A)[1]], ONE),
    "product with an inverse": ([Y @ inv(2 * A) @ Y, *slogdet(2 * A)], ONE),
    "products with inverses": ([Y @ inv(-A) @ Y, Y @ inv(A) @ Z], {"Solve": 1}),
    "product with a transposed inverse": ([inv(2 * A).T @ Y, Y @ inv(A)], {"Solve": 1}),
    "product in a product": (
        [inv(2 * A) @ pt.sin(A) @ inv(2 * A), slogdet(A)[1]],
        {"LUFactor": 1, "SolveTriangular": 4},
    ),
    "product of a product": (
        [inv(2 * A) @ (pt.sin(A) @ inv(2 * A)), slogdet(A)[1]],
        {"LUFactor": 1, "SolveTriangular": 4},
    ),
    "gradient of a quadratic form": (
        [pytensor.grad(Y @ inv(2 * A) @ Y, A), slogdet(A)[1]],
        ONE,
    ),
    "inverse and its product": ([inv(2 * A), inv(2 * A) @ Y, solve(A, Z)], WITH_INVERSE),
    "inverse of a multiple": ([inv(2 * A), slogdet(A)[1]], WITH_INVERSE),
    "inverses": ([inv(2 * A), inv(A)], {"MatrixInverse": 1}),
}


@pytest.mark.parametrize("name", SHARED)
def test_shared(name):
    outputs, work = SHARED[name]
    ours, _ = check(INPUTS, outputs, VALUES)
    assert ours == work


@pytest.mark.parametrize(
    "product",
    [
        inv(2 * A) @ inv(2 * A) @ Y,
        inv(2 * A) @ inv(2 * A).T,
        inv(2 * A) @ pt.stack([B, -B]),
        pt.stack([B, -B]).mT @ inv(2 * A),
    ],
)
def test_products_are_as_cheap_as_without_the_rule(product):
    outputs = [product, slogdet(A)[1]]
    check(INPUTS, outputs, VALUES)
    ours, stock = compile_both(INPUTS, outputs)
    without, _ = compile_both(INPUTS, outputs, PYTHON.excluding("linalg_work_on_multiple"))
    assert estimated(ours) <= min(estimated(without), estimated(stock))


APART = {
    "a number that may be 0": [solve(C * A, Y), slogdet(A)[1]],
    "a square, which may be 0": [inv(C**2 * A), slogdet(A)[1]],
    "no number": [solve(0.0 * A + B @ B.T + pt.eye(N), Y), slogdet(A)[1]],
    "a row": [solve(Y * A, Y), slogdet(A)[1]],
    "elements": [solve(A * A, Y), slogdet(A)[1]],
    "a multiple alone": [solve(2 * A, Y)],
    "an inverse alone": [inv(2 * A)],
    "a determinant alone": [*slogdet(2 * A)],
    "eigenvalues": [*eigh(A + A.T), slogdet(A + A.T)[1]],
    "all of one multiple": [solve(2 * A, B), solve(2 * A, Y), slogdet(2 * A)[1]],
    "a determinant itself": [solve(A, Y), det(2 * A)],
    "its own matrix": [solve(A, A), det(A)],
    "a definite multiple": [solve(assume(2 * A, positive_definite=True), Y), slogdet(A)[1]],
}


@pytest.mark.parametrize("name", APART)
def test_apart(name):
    values = [positive_definite(N), *VALUES[1:]]
    ours, stock = check(INPUTS, APART[name], values)
    assert ours == stock


def test_a_determinant_of_a_multiple_that_overflows_where_it_does_not():
    """The power of the number is infinite, the determinant of the matrix is 0."""
    small = positive_definite(100) * 1e-4
    ours, stock = compile_both([A], [inv(A), det(1e4 * A)])
    np.testing.assert_allclose(ours(small)[1], stock(small)[1], rtol=1e-10)


def test_signs_of_permutations():
    outputs = [solve(A, Y), solve(A.T, Z), solve(-2 * A, Z), *slogdet(A), det(A)]
    ours, _ = compile_both([A, Y, Z], outputs)
    for seed in range(6):
        matrix = np.random.default_rng(seed).normal(size=(N, N))
        *_, sign, logarithm, number = ours(matrix, *VALUES[1:3])
        np.testing.assert_allclose((sign, logarithm), np.linalg.slogdet(matrix), rtol=1e-12)
        np.testing.assert_allclose(number, np.linalg.det(matrix), rtol=1e-12)


SPECIAL = {
    "singular": np.ones((3, 3)),
    "zero": np.zeros((2, 2)),
    "no rows": np.zeros((0, 0)),
    "one number": np.full((1, 1), -2.0),
    "permutation": -np.eye(3)[[1, 0, 2]],
    "not a number": np.full((2, 2), np.nan),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SPECIAL)
def test_determinant_of_special_matrices(name):
    matrix = SPECIAL[name]
    ours, stock = compile_both([A, Y], [solve(A, Y), det(A), slogdet(A)[1]])
    mine, theirs = (function(matrix, np.ones(len(matrix))) for function in (ours, stock))
    # Stock's solution of what is singular has the shape of the matrix.
    np.testing.assert_array_equal(np.isnan(mine[0]).all(), np.isnan(theirs[0]).all())
    for one, other in zip(mine[1:], theirs[1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)


def test_gradients():
    cost = Y @ solve(2 * A, Y) + slogdet(A)[1]
    check(INPUTS, [cost, *pytensor.grad(cost, [A, Y])], VALUES)


def test_single_precision():
    a, y = pt.fmatrix("a"), pt.fvector("y")
    values = [value.astype("float32") for value in VALUES[:2]]
    ours, _ = check([a, y], [solve(a, y), slogdet(a)[1]], values, rtol=1e-3)
    assert ours == ONE
    check([a, y], [solve(2 * a, y), slogdet(a)[1]], values, rtol=1e-3)


def test_complex_numbers_are_left_alone():
    a, y = pt.zmatrix("a"), pt.zvector("y")
    values = [GENERAL + 1j, VALUES[1] * 1j]
    ours, stock = check([a, y], [solve(a, y), det(a)], values)
    assert ours == stock
