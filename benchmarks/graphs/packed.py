"""A log-density whose parameters come as one vector and whose gradients leave as one."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt

from benchmarks.graphs.log_densities import (
    half_cauchy_logp,
    half_normal_logp,
    logp_and_gradient,
    normal_logp,
)
from benchmarks.graphs.reference import GraphIO, Reference, random_numbers


def packed_gradient(n_rows: int) -> GraphIO:
    """Log-density and packed gradient of a hierarchical regression with 7 parameter blocks.

    The parameters come as one vector and their gradients leave as one, as samplers want it. The
    blocks are an intercept, coefficients, the log-scales of intercepts and slopes per group, these
    as a matrix (not centred), an effect per row, its log-scale and that of the noise.
    """
    n_groups, n_coefficients = _packed_sizes(n_rows)
    shapes = [(), (n_coefficients,), (2,), (n_groups, 2), (n_rows,), (), ()]
    lengths = [int(np.prod(shape)) for shape in shapes]
    theta = pt.tensor("theta", dtype="float64", shape=(sum(lengths),))
    x = pt.tensor("x", dtype="float64", shape=(n_rows, n_coefficients))
    group = pt.tensor("group", dtype="int64", shape=(n_rows,))
    y = pt.tensor("y", dtype="float64", shape=(n_rows,))

    ends = np.cumsum(lengths)
    parameters = [
        theta[end - length : end].reshape(shape)
        for length, end, shape in zip(lengths, ends.tolist(), shapes, strict=True)
    ]
    intercept, beta, log_tau, z, effect, log_omega, log_sigma = parameters
    tau, omega, sigma = pt.exp(log_tau), pt.exp(log_omega), pt.exp(log_sigma)
    of_group = (z * tau)[group]
    mu = intercept + x @ beta + of_group[:, 0] + of_group[:, 1] * x[:, 0] + omega * effect
    terms = [
        normal_logp(intercept, 0.0, 10.0),
        normal_logp(beta, 0.0, 2.5),
        half_normal_logp(tau, 5.0) + log_tau,
        normal_logp(z, 0.0, 1.0),
        normal_logp(effect, 0.0, 1.0),
        half_normal_logp(omega, 1.0) + log_omega,
        half_cauchy_logp(sigma, 5.0) + log_sigma,
        normal_logp(y, mu, sigma),
    ]
    logp, *gradients = logp_and_gradient(terms, parameters)
    return [theta, x, group, y], [logp, pt.concatenate([g.ravel() for g in gradients])]


def packed_values(n_rows: int) -> list[np.ndarray]:
    rng = random_numbers()
    n_groups, n_coefficients = _packed_sizes(n_rows)
    n_parameters = 1 + n_coefficients + 2 + 2 * n_groups + n_rows + 2
    return [
        rng.normal(scale=0.3, size=n_parameters),
        rng.normal(size=(n_rows, n_coefficients)),
        rng.integers(n_groups, size=n_rows),
        rng.normal(1.3, 0.8, size=n_rows),
    ]


def _packed_sizes(n_rows: int) -> tuple[int, int]:
    """The numbers of groups and of coefficients."""
    return max(2, n_rows // 10), 5


def packed(n_rows: int) -> Reference:
    """The packed gradient; its size is its number of rows."""
    return Reference(
        f"packed gradient, {n_rows} rows",
        lambda: packed_gradient(n_rows),
        lambda size: packed_values(n_rows),
    )
