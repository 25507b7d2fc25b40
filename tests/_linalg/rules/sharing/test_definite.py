"""One Cholesky factorization serves what is done with a matrix that is definite by its form."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import get_mode
from pytensor.tensor.linalg import det, inv, slogdet, solve

from support.linalg.rules import (
    ORACLE,
    OTHER_BACKENDS,
    PYTHON,
    check,
    compile_both,
    cubic,
    estimated,
)

N = 7
X, Z = pt.dmatrices("X", "Z")
Y = pt.dvector("y")
SCALE, NOISE, HEIGHT = pt.dscalars("scale", "noise", "height")
INPUTS = [X, Y, SCALE, NOISE, HEIGHT]
RNG = np.random.default_rng(0)
VALUES = [RNG.normal(size=(N, 2)), RNG.normal(size=N), 0.7, 0.4, 1.3]
WORK = {"Cholesky": 1, "CholeskyInverse": 1}


def squared_distances(first, second):
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)[None, :]
    return squares - 2 * first @ second.T


def smooth(first, second):
    return HEIGHT**2 * pt.exp(-0.5 * squared_distances(first, second) / SCALE**2)


K = smooth(X, X) + NOISE**2 * pt.eye(X.shape[0])


def with_gradient(cost):
    return [cost, *pytensor.grad(cost, [SCALE, NOISE, HEIGHT], disconnected_inputs="ignore")]


def without_products(work):
    return {op: n for op, n in work.items() if not op.startswith(("Dot", "Gemm"))}


DENSITIES = {
    "inverse": -0.5 * (Y @ inv(K) @ Y + slogdet(K)[1]),
    "transposed inverse": -0.5 * (inv(K).T @ Y @ Y + slogdet(K.T)[1]),
    "solve": -0.5 * (Y @ solve(K, Y) + slogdet(K)[1]),
    "transposed solve": -0.5 * (Y @ solve(K.T, Y, assume_a="sym") + slogdet(K)[1]),
    "logarithm of the determinant": -0.5 * (Y @ inv(K) @ Y + pt.log(det(K))),
}


@pytest.mark.parametrize("name", DENSITIES)
def test_density_and_gradient(name):
    ours, stock = check(INPUTS, with_gradient(DENSITIES[name]), VALUES)
    assert without_products(ours) == WORK
    assert stock["MatrixInverse"] == 1


@pytest.mark.parametrize("mode", OTHER_BACKENDS)
def test_modes(mode):
    outputs = with_gradient(DENSITIES["inverse"])
    ours, _ = check(INPUTS, outputs, VALUES, mode=get_mode(mode), rtol=1e-8, stock_mode=ORACLE)
    assert without_products(ours) == WORK


def test_targets_that_do_not_know_the_ops():
    mode = PYTHON.excluding("inplace", "BlasOpt", "cxx_only")
    ours, _ = check(INPUTS, with_gradient(DENSITIES["inverse"]), VALUES, mode=mode)
    assert without_products(ours) == {"Cholesky": 1, "CholeskySolve": 1}


def test_prediction():
    inverse = inv(K)
    across = smooth(Z, X)
    mean = across @ inverse @ Y
    variance = HEIGHT**2 - pt.diag(across @ inverse @ across.T)
    ours, _ = check([Z, *INPUTS], [mean, variance], [RNG.normal(size=(3, 2)), *VALUES])
    assert ours["Cholesky"] == 1
    assert not {"LUFactor", "MatrixInverse", "Solve"} & set(ours)


@pytest.mark.parametrize(
    "outputs",
    [
        [inv(K)],
        [inv(K.T).T],
        [inv(K), inv(K).T + 1],
        [inv(K) @ X, inv(K)],
        [X.T @ inv(K) @ X, slogdet(K)[0]],
        [det(K), solve(K, X)],
        [inv(K) @ inv(K) @ Y],
        [solve(K, solve(K, Y)), solve(K, inv(K) @ Y)],
        [inv(K)[0], pt.log(det(K))],
    ],
)
def test_other_work(outputs):
    # Not counted against stock: an inverse of its own is two operations, of half the size together.
    ours, stock = compile_both(INPUTS, outputs)
    for mine, theirs in zip(ours(*VALUES), stock(*VALUES), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)
    work = cubic(ours)
    assert work["Cholesky"] == 1
    assert not {"LUFactor", "MatrixInverse", "Solve", "Det", "SLogDet"} & set(work)


def test_only_a_determinant():
    """It is 0 if the noise is; that of a matrix that is definite for sure is not."""
    ours, stock = check(INPUTS, [det(K)], VALUES)
    assert ours == stock
    certain = X @ X.T + pt.exp(NOISE) * pt.eye(X.shape[0])
    for output in det(certain), slogdet(certain)[1]:
        ours, _ = check(INPUTS, [output], VALUES)
        assert without_products(ours) == {"Cholesky": 1}


@pytest.mark.parametrize(
    "matrix",
    [
        smooth(X, X) + NOISE * pt.eye(X.shape[0]),
        pt.exp(squared_distances(X, X) / SCALE**2) + NOISE**2 * pt.eye(X.shape[0]),
        smooth(X, X) - 0.01 * pt.eye(X.shape[0]),
        smooth(X, X + 1) + NOISE**2 * pt.eye(X.shape[0]),
    ],
)
def test_what_is_not_known_to_be_definite(matrix):
    outputs = with_gradient(-0.5 * (Y @ inv(matrix) @ Y + slogdet(matrix)[1]))
    ours, _ = check(INPUTS, outputs, VALUES, rtol=1e-7)
    assert without_products(ours) == {"LUFactor": 1, "LUInverse": 1}


def test_what_serves_others_stays():
    """An LU factorization that is needed anyway serves all work on the matrix."""
    packed, _ = pt.linalg.lu_factor(K)
    ours, stock = check(INPUTS, [packed, det(K)], VALUES)
    assert ours == stock
    stack = pt.dtensor3("stack")
    outputs = [pt.linalg.solve(K, stack, b_ndim=2), solve(K, Y)]
    ours, _ = check([stack, *INPUTS], outputs, [RNG.normal(size=(2, N, 3)), *VALUES])
    assert "Cholesky" not in ours


def test_matrix_that_is_not_definite_as_rounded():
    """The noise is lost in rounding: NaN, as from a matrix that is said to be definite."""
    # Two points are the same, and so are two rows.
    points = np.concatenate([VALUES[0], VALUES[0][:1]])
    values = [points, np.ones(N + 1), 0.7, 1e-170, 1.3]
    ours, _ = compile_both(INPUTS, with_gradient(DENSITIES["inverse"]))
    assert np.isnan(ours(*values)).all()


def test_numbers_that_are_not_finite():
    ours, _ = compile_both(INPUTS, with_gradient(DENSITIES["inverse"]))
    values = [VALUES[0] * np.nan, *VALUES[1:]]
    assert np.isnan(ours(*values)).all()


@pytest.mark.parametrize("n", [1, 2])
def test_small_sizes(n):
    values = [VALUES[0][:n], VALUES[1][:n], *VALUES[2:]]
    check(INPUTS, with_gradient(DENSITIES["inverse"]), values)


def test_rule_can_be_excluded():
    outputs = with_gradient(DENSITIES["inverse"])
    mode = PYTHON.excluding("linalg_work_on_definite_matrix")
    ours, _ = compile_both(INPUTS, outputs, mode)
    assert "LUFactor" in cubic(ours)


def test_ridge_regression():
    gram = X.T @ X + pt.softplus(NOISE) * pt.eye(X.shape[1])
    weights = solve(gram, X.T @ Y)
    cost = weights @ weights + slogdet(gram)[1]
    ours, _ = check(INPUTS, [cost, pytensor.grad(cost, NOISE)], VALUES)
    assert without_products(ours) == WORK


BLOCK = X[:3].T @ X[:3] + pt.eye(2)

UNDONE = {
    "Kronecker": inv(pt.linalg.kron(BLOCK, BLOCK)),
    "blocks": inv(pt.linalg.block_diag(BLOCK, BLOCK, BLOCK)),
    "inverse of the inverse": inv(inv(K)),
    "determinant of the inverse": det(inv(K)),
    "solved with the inverse": solve(inv(K), Y),
    "multiplied with a batch": pt.matmul(inv(K), pt.stack([Y, 2 * Y])[:, :, None]),
}


@pytest.mark.parametrize("name", UNDONE)
def test_what_pytensor_does_with_an_inverse_is_left_to_it(name):
    ours, stock = compile_both(INPUTS, [UNDONE[name]])
    assert estimated(ours) <= estimated(stock)
    for found, expected in zip(ours(*VALUES), stock(*VALUES), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-8)
