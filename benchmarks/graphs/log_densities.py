"""Log-densities with their gradients, written in PyTensor, whose data are inputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.raise_op import Assert

from benchmarks.graphs.reference import GraphIO, Reference, random_numbers

LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)


def radon() -> GraphIO:
    """Log-density and gradient of a hierarchical regression of radon levels.

    Non-centred intercepts and slopes per county; the scales have half-normal and half-Cauchy priors
    and are sampled on the log scale. The data are inputs, so the same graph runs at every size.
    """
    mu_a, mu_b = pt.scalar("mu_a"), pt.scalar("mu_b")
    log_sigma_a, log_sigma_b = pt.scalar("sigma_a_log__"), pt.scalar("sigma_b_log__")
    log_sigma_y = pt.scalar("sigma_y_log__")
    z_a, z_b = pt.vector("z_a"), pt.vector("z_b")
    county = pt.vector("county", dtype="int64")
    floor, log_radon = pt.vector("floor"), pt.vector("log_radon")

    sigma_a, sigma_b = pt.exp(log_sigma_a), pt.exp(log_sigma_b)
    sigma_y = pt.exp(log_sigma_y)
    a = mu_a + z_a * sigma_a
    b = mu_b + z_b * sigma_b
    mu_y = a[county] + b[county] * floor

    terms = [
        normal_logp(mu_a, 0.0, 10.0),
        normal_logp(mu_b, 0.0, 10.0),
        half_normal_logp(sigma_a, 5.0) + log_sigma_a,
        half_normal_logp(sigma_b, 5.0) + log_sigma_b,
        half_cauchy_logp(sigma_y, 5.0) + log_sigma_y,
        normal_logp(z_a, 0.0, 1.0),
        normal_logp(z_b, 0.0, 1.0),
        normal_logp(log_radon, mu_y, sigma_y),
    ]
    parameters = [mu_a, mu_b, log_sigma_a, log_sigma_b, log_sigma_y, z_a, z_b]
    return [*parameters, county, floor, log_radon], logp_and_gradient(terms, parameters)


def radon_values(size: int) -> list[np.ndarray]:
    rng = random_numbers()
    n_counties = max(2, size // 10)
    return [
        *(np.array(v) for v in (1.4, -0.6, -0.9, -1.2, -0.3)),
        rng.normal(size=n_counties),
        rng.normal(size=n_counties),
        rng.integers(n_counties, size=size),
        rng.integers(2, size=size).astype("float64"),
        rng.normal(1.3, 0.8, size=size),
    ]


def student_t_regression(n_coefficients: int = 40) -> GraphIO:
    """Log-density and gradient of a robust regression whose coefficients are scalars.

    The linear predictor is a loop over the coefficients, as people write it: one wide kernel.
    """
    x = pt.matrix("x")
    y = pt.vector("y")
    coefficients = [pt.scalar(f"beta_{i}") for i in range(n_coefficients)]
    log_sigma, log_nu = pt.scalar("sigma_log__"), pt.scalar("nu_log__")
    sigma, nu = pt.exp(log_sigma), pt.exp(log_nu)

    mu = reduce(add, (beta * x[:, i] for i, beta in enumerate(coefficients)))
    residual = (y - mu) / sigma
    log_likelihood = (
        pt.gammaln((nu + 1) / 2)
        - pt.gammaln(nu / 2)
        - 0.5 * pt.log(nu * np.pi)
        - pt.log(sigma)
        - (nu + 1) / 2 * pt.log1p(residual**2 / nu)
    )
    terms = [
        *(normal_logp(beta, 0.0, 2.5) for beta in coefficients),
        half_normal_logp(sigma, 2.0) + log_sigma,
        pt.log(0.1) - 0.1 * nu + log_nu,
        Assert("sigma > 0, nu > 0")(log_likelihood, pt.gt(sigma, 0), pt.gt(nu, 0)),
    ]
    parameters = [*coefficients, log_sigma, log_nu]
    return [*parameters, x, y], logp_and_gradient(terms, parameters)


def student_t_values(n_coefficients: int, size: int) -> list[np.ndarray]:
    rng = random_numbers()
    return [
        *(np.asarray(v) for v in rng.normal(size=n_coefficients)),
        np.array(0.1),
        np.array(1.5),
        rng.normal(size=(size, n_coefficients)),
        rng.normal(size=size),
    ]


def gaussian_process() -> GraphIO:
    """Marginal log-density of a Gaussian process and its gradient."""
    x, y = pt.matrix("x"), pt.vector("y")
    length, eta, sigma = pt.scalars("length", "eta", "sigma")
    distance = pt.sqr(x[:, None, :] - x[None, :, :]).sum(-1)
    covariance = eta**2 * pt.exp(-0.5 * distance / length**2) + sigma**2 * pt.eye(x.shape[0])
    factor = pt.linalg.cholesky(covariance)
    whitened = pt.linalg.solve_triangular(factor, y, lower=True)
    logp = -0.5 * pt.sqr(whitened).sum() - pt.log(pt.diag(factor)).sum()
    return [x, y, length, eta, sigma], [logp, *pt.grad(logp, [length, eta, sigma])]


def gp_values(size: int) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    scalars = [np.array(v) for v in (1.0, 1.5, 0.5)]
    return [rng.normal(size=(size, 2)), rng.normal(size=size), *scalars]


def mixture(n_components: int = 5) -> GraphIO:
    """Log-density of a mixture of normals and its gradient."""
    w, mu, log_sigma = (pt.vector(name, shape=(n_components,)) for name in ("w", "mu", "s"))
    y = pt.vector("y")
    weights = w - pt.logsumexp(w)
    logps = -0.5 * ((y[:, None] - mu) / pt.exp(log_sigma)) ** 2 - log_sigma
    logp = pt.logsumexp(weights + logps, axis=1).sum()
    return [w, mu, log_sigma, y], [logp, *pt.grad(logp, [w, mu, log_sigma])]


def mixture_values(size: int) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [*(rng.normal(size=5) for _ in range(3)), rng.normal(size=size)]


RADON = Reference("radon", radon, radon_values)
STUDENT_T = Reference(
    "student-t(40)", lambda: student_t_regression(40), lambda size: student_t_values(40, size)
)
GP = Reference("Gaussian process", gaussian_process, gp_values)
MIXTURE = Reference("mixture(5)", mixture, mixture_values)


def normal_logp(value: Variable, mu: Variable | float, sigma: Variable | float) -> Variable:
    sigma = pt.as_tensor(sigma)
    logp = -0.5 * pt.pow((value - mu) / sigma, 2) - LOG_SQRT_2PI - pt.log(sigma)
    return Assert("sigma > 0")(logp, pt.all(pt.gt(sigma, 0.0)))


def half_normal_logp(value: Variable, sigma: float) -> Variable:
    logp = -0.5 * pt.pow(value / sigma, 2) + 0.5 * np.log(2 / np.pi) - np.log(sigma)
    return pt.switch(pt.ge(value, 0.0), logp, -np.inf)


def half_cauchy_logp(value: Variable, beta: float) -> Variable:
    logp = np.log(2 / np.pi) - np.log(beta) - pt.log1p(pt.pow(value / beta, 2))
    return pt.switch(pt.ge(value, 0.0), logp, -np.inf)


def logp_and_gradient(terms: Sequence[Variable], parameters: Sequence[Variable]) -> list[Variable]:
    logp = pt.add(*(pt.sum(term) for term in terms))
    return [logp, *pytensor.grad(logp, list(parameters))]
