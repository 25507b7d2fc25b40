"""What rules compute, in extended precision and as a numerical analyst writes it in floats."""

from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from support import extended
from support.extended import factored, log_determinant, solved
from support.linalg.cases import RANK, Given
from support.linalg.structures import general, positive_definite


def values_of(n, condition, seed):
    """Return values with which each matrix that is factorized has about this condition."""
    rng = np.random.default_rng(seed)
    factor = round(n**0.5)
    thin = rng.normal(size=(n, RANK))
    log = np.log(n / condition)
    return Given(
        positive_definite(n, condition, seed=seed),
        general(n, condition, seed=seed) * 10,
        general(factor, condition**0.5, seed=seed),
        general(factor, condition**0.5, seed=seed + 1),
        log + 0.1 * rng.normal(size=n),
        rng.normal(size=n),
        rng.normal(size=n),
        thin,
        np.array(-np.log(condition)),
    )


def inverse(matrix):
    """Return the inverse in extended precision."""
    return solved(factored(matrix), extended.extended(np.eye(len(matrix))))


def exact(given_values):
    return Given(*(extended.extended(one) for one in given_values))


def definite(g, exp):
    return g.b @ g.b.T + exp(g.number) * np.eye(len(g.b))


def low_rank(g, exp):
    return np.diag(exp(g.u)) + g.thin @ g.thin.T


def shifted(g, exp):
    return np.kron(g.left @ g.left.T, g.right @ g.right.T) + exp(g.number) * np.eye(len(g.u))


def kernel(g, exp):
    squares = (g.thin**2).sum(axis=1)
    distances = squares[:, None] + squares[None, :] - 2 * g.thin @ g.thin.T
    smooth = exp(-distances / g.number**2)
    return smooth + 0.5 * np.eye(len(g.u)), smooth * distances * 2 / g.number**3


def lower_gradient(by_matrix):
    """Return the gradient by a matrix of which one triangle counts."""
    return np.tril(2 * by_matrix) - np.diag(np.diagonal(by_matrix))


def density_gradient(matrix, y):
    """Return the gradient of a log-density by its covariance, in extended precision."""
    inverted = inverse(matrix)
    solution = inverted @ y
    return (np.outer(solution, solution) - inverted) / 2


# By hand, in floats.


def potri(matrix):
    factor, info = lapack.dpotrf(matrix, lower=1)
    assert info == 0
    found, _ = lapack.dpotri(factor, lower=1)
    return np.tril(found) + np.tril(found, -1).T


def getri(matrix):
    packed, pivots, _ = lapack.dgetrf(matrix)
    found, _ = lapack.dgetri(packed, pivots)
    return found


def cho(matrix, right):
    return scipy.linalg.cho_solve(scipy.linalg.cho_factor(matrix, lower=True), right)


def lu(matrix, right):
    return scipy.linalg.lu_solve(scipy.linalg.lu_factor(matrix), right)


def density_gradient_by_hand(matrix, y):
    solution = cho(matrix, y)
    return (np.outer(solution, solution) - potri(matrix)) / 2


def woodbury(g):
    """Return what solves with ``D + U U'``, its inverse, and its log-determinant."""
    d = np.exp(g.u)
    scaled = g.thin / d[:, None]
    inner = np.eye(RANK) + g.thin.T @ scaled
    half = np.linalg.solve(inner, scaled.T).T

    def solve(right):
        turned = (right.T / d).T
        return turned - half @ (g.thin.T @ turned)

    return solve, np.diag(1 / d) - half @ scaled.T, np.log(d).sum() + np.linalg.slogdet(inner)[1]


def by_eigenvectors(g):
    p, left = np.linalg.eigh(g.left @ g.left.T)
    q, right = np.linalg.eigh(g.right @ g.right.T)
    return p[:, None] * q[None, :] + np.exp(g.number), left, right


def kronecker_solved(g, solve):
    table = solve(g.left, g.y.reshape(len(g.left), -1))
    return solve(g.right, table.T).T.ravel()


def extended_solve(matrix, right):
    found = solved(factored(matrix), right.reshape(len(matrix), -1))
    return found.reshape(right.shape)


def extended_log_kronecker(g):
    found = len(g.right) * log_determinant(g.left) + len(g.left) * log_determinant(g.right)
    sign = np.linalg.slogdet(np.kron(g.left.astype(float), g.right.astype(float)))[0]
    return [sign, found]


def shifted_by_hand(g):
    values, left, right = by_eigenvectors(g)
    table = left.T @ g.y.reshape(len(left), -1) @ right / values
    return (left @ table @ right.T).ravel()


def shifted_inverse_by_hand(g):
    values, left, right = by_eigenvectors(g)
    vectors = np.kron(left, right)
    return (vectors / values.ravel()) @ vectors.T


def kronecker_gradient(g, invert):
    """Return the gradient of the log-determinant and a quadratic form by the left factor."""
    left, right = invert(g.left), invert(g.right)
    table = g.y.reshape(len(g.left), -1)
    solution = left @ table @ right.T
    # Of y' A^-1 y it is -w x', with A x = y and A' w = y.
    other = left.T @ table @ right
    return len(g.right) * left.T - other @ (solution @ g.right.T).T


def blocks(solve, block, right):
    """Solve with a matrix, the diagonal of which is made of one block."""
    k = len(block)
    table = right.reshape(k, k, -1)
    return np.concatenate([solve(block, one) for one in table]).reshape(right.shape)


def tridiagonal(g):
    return np.diag(g.u + 4) + np.diag(g.v[1:], 1) + np.diag(g.y[1:], -1)


def banded(g):
    return np.diag(g.u + 4) + np.diag(g.v[2:], 2) + np.diag(g.y[1:], -1)


def toeplitz(g, exp):
    places = np.arange(len(g.u))
    return exp(-exp(g.number) * places)[np.abs(places[:, None] - places)]


def by_diagonal(g, solve):
    matrix, right = tridiagonal(g), g.thin[:, 0].copy()
    return -solve(matrix, right) * solve(matrix.T, right)


def rows_gradient(solution):
    return lower_gradient(-(solution @ solution.T))


def by_number(matrix_and_derivative, y, gradient):
    matrix, derivative = matrix_and_derivative
    return [(gradient(matrix, y) * derivative).sum()]


def with_diagonal(g):
    return g.a + np.diag(g.v**2)


def cholesky(matrix):
    """Return the lower Cholesky factor in extended precision."""
    a = matrix.copy()
    factor = extended.extended(np.zeros(a.shape))
    for k in range(len(a)):
        factor[k:, k] = a[k:, k] / extended.root(a[k, k])
        a[k:, k:] -= np.outer(factor[k:, k], factor[k:, k])
    return factor


def forward(matrix, y):
    """Return the solution with the Cholesky factor in extended precision."""
    factor = cholesky(matrix)
    z = y.copy()
    for k in range(len(z)):
        z[k] /= factor[k, k]
        z[k + 1 :] -= factor[k + 1 :, k] * z[k]
    return z


def with_positive_diagonal(triangle):
    """Return the Cholesky factor of a lower triangular matrix times its transpose."""
    return triangle * np.where(np.diagonal(triangle) < 0, -1, 1)


class Row(NamedTuple):
    """What a rule's case gives: in extended precision, and by hand."""

    exact: object
    by_hand: object
