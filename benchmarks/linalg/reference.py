"""Linear algebra as a numerical analyst writes it: LAPACK's functions, and few passes over arrays.

What the rewrites of linear algebra are measured against. Each function computes a value and its
gradients by the fewest cubic operations that are known, on arrays of 64-bit floats that it leaves
as they are. Of an inverse that is only summed against a symmetric matrix, LAPACK gives one
triangle, which is enough: the other counts the same.

`tests/test_linalg_reference.py` compares them with the same quantities as a textbook writes them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import (
    dgetrf,
    dgetri,
    dgetri_lwork,
    dgetrs,
    dpotrf,
    dpotri,
    dpotrs,
    dtrtrs,
)

Array = NDArray[np.float64]


class Posterior(NamedTuple):
    """What a Gaussian process predicts."""

    mean: Array
    variance: Array


class Regression(NamedTuple):
    """Weights of a Bayesian linear regression, and how likely it is."""

    weights: Array
    log_determinant: float
    log_evidence: float
    d_precision: float


def squared_distances(a: Array, b: Array) -> Array:
    """Return the squared distances of the rows of two matrices, as the tutorial writes them."""
    distances = a @ b.T
    distances *= -2
    distances += (a**2).sum(axis=1)[:, None]
    distances += (b**2).sum(axis=1)
    return distances


def gaussian_process(
    locations: Array, observed: Array, scale: float, noise: float
) -> tuple[float, float, float]:
    """Return ``-(y' K^-1 y + log |K|) / 2`` and its derivatives by the scale and the noise.

    ``K`` is ``exp(-distances / (2 scale^2)) + noise^2 I``. One potrf, one potri.
    """
    distances, smooth, covariance = _covariance(locations, scale, noise)
    factor = _cholesky(covariance)
    alpha = _solve(factor, observed)
    value = -0.5 * (observed @ alpha + _log_determinant(factor))
    triangle, _ = dpotri(factor, lower=1, overwrite_c=1)
    d_scale, d_noise = _by_parameters(smooth, distances, scale, noise)
    # The triangle is one by columns, hence that of a transposed array by rows.
    against = 2 * np.einsum("ij,ij->", triangle.T, d_scale)
    against -= np.diagonal(triangle) @ np.diagonal(d_scale)
    return (
        float(value),
        float(0.5 * (alpha @ (d_scale @ alpha) - against)),
        float(0.5 * d_noise * (alpha @ alpha - np.trace(triangle))),
    )


def gaussian_process_by_lu(
    locations: Array, observed: Array, scale: float, noise: float
) -> tuple[float, float, float]:
    """Return the same with nothing known of ``K``: one getrf, one getri."""
    distances, smooth, covariance = _covariance(locations, scale, noise)
    # By columns it is transposed, and all of what follows with it.
    lu, pivots, _ = dgetrf(covariance.T, overwrite_a=1)
    alpha, _ = dgetrs(lu, pivots, observed, trans=1)
    beta, _ = dgetrs(lu, pivots, observed)
    value = -0.5 * (observed @ alpha + np.log(np.abs(np.diagonal(lu))).sum())
    lwork, _ = dgetri_lwork(len(lu))
    inverse, _ = dgetri(lu, pivots, lwork=int(lwork), overwrite_lu=1)
    d_scale, d_noise = _by_parameters(smooth, distances, scale, noise)
    # The sum of products with the transposed inverse, which by columns is the inverse by rows.
    against = np.einsum("ij,ij->", inverse.T, d_scale.T)
    return (
        float(value),
        float(0.5 * (beta @ (d_scale @ alpha) - against)),
        float(0.5 * d_noise * (beta @ alpha - np.trace(inverse))),
    )


def gaussian_process_prediction(
    locations: Array, observed: Array, new: Array, scale: float, noise: float
) -> Posterior:
    """Return mean and variance of the function at new points: one potrf, one thin trtrs."""
    _, _, covariance = _covariance(locations, scale, noise)
    factor = _cholesky(covariance)
    cross = squared_distances(locations, new)
    cross *= -0.5 / scale**2
    np.exp(cross, out=cross)
    mean = _solve(factor, observed) @ cross
    white, _ = dtrtrs(factor, cross, lower=1)
    return Posterior(mean, 1 - np.einsum("ij,ij->j", white, white))


def low_rank(diagonal: Array, thin: Array, observed: Array) -> tuple[float, Array, Array]:
    """Return ``-(y' A^-1 y + log |A|) / 2`` and its derivatives, of ``A = D + U U'``.

    By Woodbury's identity and the determinant lemma: one potrf, one potri, of the size of the rank.
    """
    scaled = thin / diagonal[:, None]
    inner = thin.T @ scaled
    inner[np.diag_indices_from(inner)] += 1
    factor = _cholesky(inner)
    correction = scaled @ _solve(factor, scaled.T @ observed)
    alpha = observed / diagonal - correction
    value = -0.5 * (observed @ alpha + np.log(diagonal).sum() + _log_determinant(factor))
    # The inverse times U.
    inverse_thin = _solve(factor, scaled.T).T
    d_diagonal = alpha**2 - 1 / diagonal + np.einsum("ij,ij->i", inverse_thin, scaled)
    d_thin = np.outer(alpha, alpha @ thin) - inverse_thin
    return float(value), 0.5 * d_diagonal, d_thin


def linear_regression(x: Array, y: Array, precision: float) -> Regression:
    """Return weights, log-determinant and evidence of a regression with noise of variance one.

    The weights, of that precision a priori, solve ``A w = X' y`` with ``A = X' X + precision I``;
    the log-determinant is that of ``A``. One potrf and one potri on the smaller side of ``X``.
    """
    n, p = x.shape
    wide = p > n
    gram = x @ x.T if wide else x.T @ x
    gram[np.diag_indices_from(gram)] += precision
    factor = _cholesky(gram)
    log_determinant = _log_determinant(factor)
    if wide:
        dual = _solve(factor, y)
        weights = x.T @ dual
        misfit = precision * (y @ dual)
        log_determinant += (p - n) * np.log(precision)
    else:
        projected = x.T @ y
        weights = _solve(factor, projected)
        misfit = y @ y - projected @ weights
    triangle, _ = dpotri(factor, lower=1, overwrite_c=1)
    trace = np.trace(triangle) + (p - n) / precision * wide
    evidence = -0.5 * (misfit + log_determinant - p * np.log(precision) + n * np.log(2 * np.pi))
    return Regression(
        weights,
        float(log_determinant),
        float(evidence),
        float(0.5 * (p / precision - weights @ weights - trace)),
    )


def _covariance(locations: Array, scale: float, noise: float) -> tuple[Array, Array, Array]:
    """Return the distances, and the covariance without the noise and with it."""
    distances = squared_distances(locations, locations)
    smooth = distances * (-0.5 / scale**2)
    np.exp(smooth, out=smooth)
    covariance = smooth.copy()
    covariance[np.diag_indices_from(covariance)] += noise**2
    return distances, smooth, covariance


def _by_parameters(
    smooth: Array, distances: Array, scale: float, noise: float
) -> tuple[Array, float]:
    """Return the derivative of the covariance by the scale, and that of its diagonal by the noise.

    Over the distances, which nothing reads any more.
    """
    distances *= smooth
    distances *= scale**-3
    return distances, 2 * noise


def _cholesky(matrix: Array) -> Array:
    """Return the lower factor, by columns, over a symmetric matrix by rows."""
    factor, _ = dpotrf(matrix.T, lower=1, overwrite_a=1)
    return factor


def _solve(factor: Array, right: Array) -> Array:
    solution, _ = dpotrs(factor, right, lower=1)
    return solution


def _log_determinant(factor: Array) -> float:
    return 2 * np.log(np.diagonal(factor)).sum()
