"""PyMC models that people write, at any number of rows.

    from benchmarks.graphs.pymc_models import MODELS

    inputs, outputs, values = MODELS["radon"].graph()   # at the model's own number of rows
    inputs, outputs, values = MODELS["radon"].graph(100_000)
    model = MODELS["radon"].pymc()                      # the PyMC model itself

The inputs of a graph are the value variables, which range over all real numbers; the outputs are
the log-density and its gradient with respect to each of them. Data are constants, as PyMC has them.
Nothing here compiles a function, so that a process can measure its first compile after this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
import pytensor

from benchmarks.graphs.reference import random_numbers
from benchmarks.graphs.sparse import sparse_design, sparse_intercepts

N_COUNTIES = 85
N_GROUPS = 20
N_SCALARS = 40
N_PREDICTORS = 8
MANY = 100_000


@dataclass(frozen=True)
class PyMCModel:
    """A model: ``define(rows)`` adds its variables to the PyMC model whose context is open."""

    name: str
    define: Callable[[int], None]
    rows: int
    many: int | None = MANY

    def pymc(self, rows: int | None = None) -> Any:
        """The PyMC model; at its own number of rows if none is given."""
        import pymc as pm

        with pm.Model() as model:
            self.define(self.rows if rows is None else rows)
        return model

    def graph(self, rows: int | None = None) -> tuple[list[Any], list[Any], list[np.ndarray]]:
        """Value variables, the log-density with its gradients, and values for the inputs."""
        model = self.pymc(rows)
        inputs = list(model.value_vars)
        logp = model.logp()
        return inputs, [logp, *pytensor.grad(logp, inputs)], values_of(inputs)


def values_of(inputs: list[Any]) -> list[np.ndarray]:
    """Values of moderate size at a fixed seed, by the static shapes of the inputs."""
    rng = np.random.default_rng(28)
    return [np.asarray(rng.normal(scale=0.3, size=variable.type.shape)) for variable in inputs]


def radon(rows: int, *, scale: str = "half-normal", likelihood: str = "normal") -> None:
    """Varying intercepts and slopes per county, not centred; the edits change one line each."""
    import pymc as pm

    rng = random_numbers()
    county = rng.integers(N_COUNTIES, size=rows)
    floor = rng.integers(2, size=rows).astype("float64")
    log_radon = rng.normal(1.3, 0.8, size=rows)
    mu_a, mu_b = pm.Normal("mu_a", 0, 10), pm.Normal("mu_b", 0, 10)
    if scale == "half-normal":
        sigma_a = pm.HalfNormal("sigma_a", 5)
    else:
        sigma_a = pm.Exponential("sigma_a", 1)
    sigma_b = pm.HalfNormal("sigma_b", 5)
    z_a = pm.Normal("z_a", 0, 1, shape=N_COUNTIES)
    z_b = pm.Normal("z_b", 0, 1, shape=N_COUNTIES)
    a = pm.Deterministic("a", mu_a + z_a * sigma_a)
    b = pm.Deterministic("b", mu_b + z_b * sigma_b)
    sigma_y = pm.HalfCauchy("sigma_y", 5)
    mu_y = a[county] + b[county] * floor
    if likelihood == "normal":
        pm.Normal("y", mu_y, sigma_y, observed=log_radon)
    else:
        nu = pm.Gamma("nu", 2, 0.1)
        pm.StudentT("y", nu=nu, mu=mu_y, sigma=sigma_y, observed=log_radon)


def negative_binomial(rows: int) -> None:
    """Counts in groups, with an overdispersion of their own."""
    import pymc as pm

    rng = random_numbers()
    group = rng.integers(N_GROUPS, size=rows)
    x = rng.normal(size=rows)
    counts = rng.poisson(np.exp(rng.normal(1.0, 0.7, size=rows)))
    mu, tau = pm.Normal("mu", 0, 2), pm.HalfNormal("tau", 1)
    effects = pm.Normal("effects", mu, tau, shape=N_GROUPS)
    slope = pm.Normal("slope", 0, 1)
    alpha = pm.Exponential("alpha", 1)
    rate = pm.math.exp(effects[group] + slope * x)
    pm.NegativeBinomial("y", mu=rate, alpha=alpha, observed=counts)


def mixture(rows: int) -> None:
    """A mixture of five normals."""
    import pymc as pm

    weights = pm.Dirichlet("w", np.ones(5))
    mu = pm.Normal("mu", np.linspace(-2, 2, 5), 1)
    sigma = pm.HalfNormal("sigma", 1, shape=5)
    pm.NormalMixture("y", weights, mu, sigma, observed=random_numbers().normal(size=rows))


def scalars(rows: int, *, likelihood: str = "normal") -> None:
    """A regression whose predictor is a loop over scalar coefficients, as people write it."""
    import pymc as pm

    rng = random_numbers()
    x, y = rng.normal(size=(rows, N_SCALARS)), rng.normal(size=rows)
    coefficients = [pm.Normal(f"beta_{i}", 0, 2.5) for i in range(N_SCALARS)]
    sigma = pm.HalfNormal("sigma", 1)
    mu = reduce(add, (beta * x[:, i] for i, beta in enumerate(coefficients)))
    if likelihood == "normal":
        pm.Normal("y", mu, sigma, observed=y)
    else:
        pm.StudentT("y", nu=pm.Gamma("nu", 2, 0.1), mu=mu, sigma=sigma, observed=y)


def student_t(rows: int) -> None:
    """A regression with eight predictors whose errors have heavy tails."""
    import pymc as pm

    rng = random_numbers()
    x = rng.normal(size=(rows, N_PREDICTORS))
    y = x @ rng.normal(size=N_PREDICTORS) + rng.standard_t(4, size=rows)
    intercept = pm.Normal("intercept", 0, 5)
    beta = pm.Normal("beta", 0, 2, shape=N_PREDICTORS)
    sigma, nu = pm.HalfNormal("sigma", 2), pm.Gamma("nu", 2, 0.1)
    pm.StudentT("y", nu=nu, mu=intercept + x @ beta, sigma=sigma, observed=y)


def logistic(rows: int) -> None:
    """A logistic regression with eight predictors."""
    import pymc as pm

    rng = random_numbers()
    x = rng.normal(size=(rows, N_PREDICTORS))
    y = rng.random(rows) < 1 / (1 + np.exp(-x @ rng.normal(size=N_PREDICTORS)))
    intercept = pm.Normal("intercept", 0, 5)
    beta = pm.Normal("beta", 0, 2, shape=N_PREDICTORS)
    pm.Bernoulli("y", logit_p=intercept + x @ beta, observed=y.astype("int64"))


def weibull(rows: int) -> None:
    """Times of survival, whose scale depends on a predictor."""
    import pymc as pm

    rng = random_numbers()
    x = rng.normal(size=rows)
    times = rng.weibull(1.5, size=rows) * np.exp(0.3 * x)
    alpha, intercept = pm.HalfNormal("alpha", 2), pm.Normal("intercept", 0, 2)
    slope = pm.Normal("slope", 0, 1)
    pm.Weibull("y", alpha=alpha, beta=pm.math.exp(intercept + slope * x), observed=times)


def gamma(rows: int) -> None:
    """Positive numbers, whose mean depends on a predictor."""
    import pymc as pm

    rng = random_numbers()
    x = rng.normal(size=rows)
    numbers = rng.gamma(2, size=rows) * np.exp(0.3 * x)
    alpha, intercept = pm.HalfNormal("alpha", 2), pm.Normal("intercept", 0, 2)
    slope = pm.Normal("slope", 0, 1)
    mean = pm.math.exp(intercept + slope * x)
    pm.Gamma("y", alpha=alpha, beta=alpha / mean, observed=numbers)


def ordered_logistic(rows: int) -> None:
    import pymc as pm

    rng = random_numbers()
    x = rng.normal(size=(rows, 3))
    cutpoints = pm.Normal(
        "cutpoints",
        np.linspace(-1, 1, 4),
        1,
        transform=pm.distributions.transforms.ordered,
        initval=np.linspace(-1, 1, 4),
    )
    beta = pm.Normal("beta", 0, 1, shape=3)
    pm.OrderedLogistic("y", eta=x @ beta, cutpoints=cutpoints, observed=rng.integers(5, size=rows))


def gaussian_process(rows: int) -> None:
    import pymc as pm

    x = np.linspace(0, 1, rows)[:, None]
    length, eta = pm.Gamma("length", 2, 1), pm.HalfNormal("eta", 2)
    process = pm.gp.Marginal(cov_func=eta**2 * pm.gp.cov.ExpQuad(1, length))
    process.marginal_likelihood(
        "y", x, y=random_numbers().normal(size=rows), sigma=pm.HalfNormal("sigma", 1)
    )


def lkj(rows: int) -> None:
    import pymc as pm

    scales = pm.Exponential.dist(1.0)
    cholesky, _, _ = pm.LKJCholeskyCov("cholesky", n=3, eta=2, sd_dist=scales, compute_corr=True)
    mean = pm.Normal("mean", shape=3)
    pm.MvNormal("y", mean, chol=cholesky, observed=random_numbers().normal(size=(rows, 3)))


def autoregression(rows: int) -> None:
    """An autoregressive process of order three."""
    import pymc as pm

    rho = pm.Normal("rho", 0, 0.3, shape=4)
    sigma = pm.HalfNormal("sigma", 1)
    initial = pm.Normal.dist(0, 2, shape=3)
    values = random_numbers().normal(size=rows)
    pm.AR("y", rho, sigma=sigma, constant=True, init_dist=initial, observed=values)


def eight_schools(rows: int) -> None:
    """The effects of coaching in eight schools (Rubin, 1981), not centred."""
    import pymc as pm

    effects = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])[:rows]
    errors = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])[:rows]
    mu, tau = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5)
    z = pm.Normal("z", 0, 1, shape=rows)
    theta = pm.Deterministic("theta", mu + tau * z)
    pm.Normal("y", theta, errors, observed=effects)


MODELS = {
    model.name: model
    for model in (
        PyMCModel("radon", radon, 919),
        PyMCModel("radon-student-t", partial(radon, likelihood="student-t"), 919),
        PyMCModel("negative-binomial", negative_binomial, 500),
        PyMCModel("mixture", mixture, 500, many=20_000),
        PyMCModel("scalars", scalars, 100),
        PyMCModel("scalars-student-t", partial(scalars, likelihood="student-t"), 200, many=None),
        PyMCModel("student-t", student_t, 1000),
        PyMCModel("logistic", logistic, 1000),
        PyMCModel("weibull", weibull, 1000),
        PyMCModel("gamma", gamma, 1000),
        PyMCModel("ordered-logistic", ordered_logistic, 200, many=None),
        PyMCModel("gaussian-process", gaussian_process, 50, many=500),
        PyMCModel("lkj", lkj, 50, many=None),
        PyMCModel("ar", autoregression, 200, many=None),
        PyMCModel("eight-schools", eight_schools, 8, many=None),
        PyMCModel("sparse-design", sparse_design, 1000),
        PyMCModel("sparse-intercepts", sparse_intercepts, 1000),
        # Radon, edited.
        PyMCModel("radon-prior", partial(radon, scale="exponential"), 919, many=None),
    )
}
