"""The reference graphs, each a maker of ``(inputs, outputs)`` with a maker of numbers for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from importlib.util import find_spec
from operator import add

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.raise_op import Assert

GraphIO = tuple[list[Variable], list[Variable]]

LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True)
class Reference:
    """A named graph: ``build()`` makes it, ``values(size)`` makes numbers for its inputs.

    ``size`` is the number of elements of the arrays that the kernels work on.
    """

    name: str
    build: Callable[[], GraphIO]
    values: Callable[[int], list[np.ndarray]]

    def fgraph(self) -> FunctionGraph:
        inputs, outputs = self.build()
        return FunctionGraph(inputs, outputs, clone=True)


def deep_small_kernels(n: int) -> GraphIO:
    """A chain of ``n`` small kernels that transposes keep apart."""
    x = pt.matrix("x")
    out = x
    for _ in range(n):
        out = pt.sin(out.T) + pt.cos(out)
    return [x], [out]


def deep_values(size: int) -> list[np.ndarray]:
    # The graph adds a matrix to its transpose, so the matrix must be square.
    side = max(1, round(np.sqrt(size)))
    return [_rng().normal(size=(side, side))]


def large_fuseable_graph(n: int) -> GraphIO:
    """The gradients of a sum of ``n`` normal log-densities with a common scale."""
    sd = pt.scalar("sd")
    means = pt.vector("means")
    minus_half, half, two, minus_two = (pt.constant(c) for c in (-0.5, 0.5, 2, -2))
    ones = pt.constant(np.ones(10))
    factors = []
    for i in range(n):
        f = minus_half * sd**minus_two * (ones - means[i]) ** two + half * pt.log(
            half * sd**minus_two / np.pi
        )
        factors.append(pt.sum(f))
    logp = pt.add(*factors)
    return [sd, means], [pytensor.grad(logp, v) for v in (sd, means)]


def large_values(n: int, size: int) -> list[np.ndarray]:
    return [np.array(1.3), _rng().normal(size=max(n, size))]


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
        _normal_logp(mu_a, 0.0, 10.0),
        _normal_logp(mu_b, 0.0, 10.0),
        _half_normal_logp(sigma_a, 5.0) + log_sigma_a,
        _half_normal_logp(sigma_b, 5.0) + log_sigma_b,
        _half_cauchy_logp(sigma_y, 5.0) + log_sigma_y,
        _normal_logp(z_a, 0.0, 1.0),
        _normal_logp(z_b, 0.0, 1.0),
        _normal_logp(log_radon, mu_y, sigma_y),
    ]
    parameters = [mu_a, mu_b, log_sigma_a, log_sigma_b, log_sigma_y, z_a, z_b]
    return [*parameters, county, floor, log_radon], _logp_and_gradient(terms, parameters)


def radon_values(size: int) -> list[np.ndarray]:
    rng = _rng()
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
        *(_normal_logp(beta, 0.0, 2.5) for beta in coefficients),
        _half_normal_logp(sigma, 2.0) + log_sigma,
        pt.log(0.1) - 0.1 * nu + log_nu,
        Assert("sigma > 0, nu > 0")(log_likelihood, pt.gt(sigma, 0), pt.gt(nu, 0)),
    ]
    parameters = [*coefficients, log_sigma, log_nu]
    return [*parameters, x, y], _logp_and_gradient(terms, parameters)


def student_t_values(n_coefficients: int, size: int) -> list[np.ndarray]:
    rng = _rng()
    return [
        *(np.asarray(v) for v in rng.normal(size=n_coefficients)),
        np.array(0.1),
        np.array(1.5),
        rng.normal(size=(size, n_coefficients)),
        rng.normal(size=size),
    ]


def pymc_model(n_observations: int = 919, n_counties: int = 85) -> GraphIO:
    """Log-density and gradient of a radon model written in PyMC; its data are constants."""
    import pymc as pm

    rng = _rng()
    county = rng.integers(n_counties, size=n_observations)
    floor = rng.integers(2, size=n_observations).astype("float64")
    log_radon = rng.normal(1.3, 0.8, size=n_observations)
    with pm.Model() as model:
        mu_a, mu_b = pm.Normal("mu_a", 0, 10), pm.Normal("mu_b", 0, 10)
        sigma_a, sigma_b = pm.HalfNormal("sigma_a", 5), pm.HalfNormal("sigma_b", 5)
        z_a = pm.Normal("z_a", 0, 1, shape=n_counties)
        z_b = pm.Normal("z_b", 0, 1, shape=n_counties)
        a = pm.Deterministic("a", mu_a + z_a * sigma_a)
        b = pm.Deterministic("b", mu_b + z_b * sigma_b)
        sigma_y = pm.HalfCauchy("sigma_y", 5)
        nu = pm.Gamma("nu", 2, 0.1)
        mu_y = a[county] + b[county] * floor
        pm.StudentT("log_radon", nu=nu, mu=mu_y, sigma=sigma_y, observed=log_radon)
    return list(model.continuous_value_vars), [model.logp(), model.dlogp()]


def pymc_values(n_counties: int = 85) -> list[np.ndarray]:
    rng = _rng()
    scalars = [np.array(v) for v in (1.4, -0.6, -0.9, -1.2)]
    vectors = [rng.normal(size=n_counties), rng.normal(size=n_counties)]
    return [*scalars, *vectors, np.array(-0.3), np.array(1.5)]


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


def pymc_mixture(n_observations: int = 300) -> GraphIO:
    """Log-density and gradient of a mixture of five normals written in PyMC."""
    import pymc as pm

    with pm.Model() as model:
        weights = pm.Dirichlet("w", np.ones(5))
        mu = pm.Normal("mu", np.linspace(-2, 2, 5), 1)
        sigma = pm.HalfNormal("sigma", 1, shape=5)
        pm.NormalMixture("y", weights, mu, sigma, observed=_rng().normal(size=n_observations))
    return list(model.value_vars), [model.logp(), model.dlogp()]


def pymc_mixture_values() -> list[np.ndarray]:
    rng = _rng()
    return [rng.normal(size=n) for n in (4, 5, 5)]


def pymc_student_t(n_coefficients: int = 40, n_observations: int = 200) -> GraphIO:
    """Log-density and gradient of a robust regression written in PyMC."""
    import pymc as pm

    rng = _rng()
    x, y = rng.normal(size=(n_observations, n_coefficients)), rng.normal(size=n_observations)
    with pm.Model() as model:
        coefficients = [pm.Normal(f"beta_{i}", 0, 2.5) for i in range(n_coefficients)]
        sigma, nu = pm.HalfNormal("sigma", 1), pm.Gamma("nu", 2, 0.1)
        mu = reduce(add, (beta * x[:, i] for i, beta in enumerate(coefficients)))
        pm.StudentT("y", nu=nu, mu=mu, sigma=sigma, observed=y)
    return list(model.value_vars), [model.logp(), model.dlogp()]


def pymc_student_t_values(n_coefficients: int = 40) -> list[np.ndarray]:
    return [np.array(v) for v in _rng().normal(size=n_coefficients + 2)]


def affine(x: Variable) -> Variable:
    """A stream that costs no more than the memory it moves."""
    return x * 2 + 1


def polynomial(x: Variable) -> Variable:
    """A stream of a dozen cheap operations per element."""
    return reduce(lambda out, c: out * x + c, (0.5, -1.5, 0.25, 2.0, -0.125, 1.0), x)


def rational(x: Variable) -> Variable:
    """A stream whose divisions take longer than its memory."""
    return (x + 2) / (1 + x * x)


# From the cheapest producer of a stream to the dearest.
PRODUCERS: dict[str, Callable[[Variable], Variable]] = {
    "affine": affine,
    "polynomial": polynomial,
    "rational": rational,
    "exp": pt.exp,
    "tanh": pt.tanh,
}


def joined_streams(producer: str, n_streams: int, length: int | None = None) -> GraphIO:
    """Streams of vectors, joined; ``length`` is the static one of each vector, if known."""
    vectors = [pt.tensor(f"x{i}", dtype="float64", shape=(length,)) for i in range(n_streams)]
    return list(vectors), [pt.concatenate([PRODUCERS[producer](x) for x in vectors])]


def joined_few(producer: str, n_streams: int, length: int | None = None) -> GraphIO:
    """One stream that a kernel computes, joined with arguments as they are."""
    vectors = [pt.tensor(f"x{i}", dtype="float64", shape=(length,)) for i in range(n_streams)]
    middle = n_streams // 2
    computed = PRODUCERS[producer](vectors[middle])
    return list(vectors), [pt.concatenate([*vectors[:middle], computed, *vectors[middle + 1 :]])]


def joined_columns(producer: str, n_streams: int, width: int | None) -> GraphIO:
    """Streams of matrices of that many columns joined along axis 1; stacked vectors if None."""
    make = PRODUCERS[producer]
    if width is None:
        vectors = [pt.vector(f"x{i}", dtype="float64") for i in range(n_streams)]
        return list(vectors), [pt.stack([make(x) for x in vectors], axis=1)]
    matrices = [pt.matrix(f"x{i}", dtype="float64") for i in range(n_streams)]
    return list(matrices), [pt.concatenate([make(x) for x in matrices], axis=1)]


def stacked_rows(producer: str, n_streams: int) -> GraphIO:
    """Streams of vectors stacked along axis 0."""
    vectors = [pt.vector(f"x{i}", dtype="float64") for i in range(n_streams)]
    return list(vectors), [pt.stack([PRODUCERS[producer](x) for x in vectors])]


def stream_values(n_streams: int, size: int) -> list[np.ndarray]:
    """``size`` is the length of each stream."""
    rng = _rng()
    return [rng.normal(size=size) for _ in range(n_streams)]


def padded(producer: str = "affine", length: int | None = None) -> GraphIO:
    """A kernel's result written into a vector, between two zeros."""
    x = pt.tensor("x", dtype="float64", shape=(length,))
    end = -1 if length is None else 1 + length
    return [x], [pt.zeros(x.shape[0] + 2)[1:end].set(PRODUCERS[producer](x))]


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
        _normal_logp(intercept, 0.0, 10.0),
        _normal_logp(beta, 0.0, 2.5),
        _half_normal_logp(tau, 5.0) + log_tau,
        _normal_logp(z, 0.0, 1.0),
        _normal_logp(effect, 0.0, 1.0),
        _half_normal_logp(omega, 1.0) + log_omega,
        _half_cauchy_logp(sigma, 5.0) + log_sigma,
        _normal_logp(y, mu, sigma),
    ]
    logp, *gradients = _logp_and_gradient(terms, parameters)
    return [theta, x, group, y], [logp, pt.concatenate([g.ravel() for g in gradients])]


def packed_values(n_rows: int) -> list[np.ndarray]:
    rng = _rng()
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


def has_pymc() -> bool:
    return find_spec("pymc") is not None


def deep(n: int) -> Reference:
    return Reference(f"deep({n})", lambda: deep_small_kernels(n), deep_values)


def large(n: int) -> Reference:
    return Reference(
        f"large({n})", lambda: large_fuseable_graph(n), lambda size: large_values(n, size)
    )


def streams(producer: str, n_streams: int, length: int | None = None) -> Reference:
    """Streams joined; with a static ``length``, the size of the values must be the same."""
    known = "" if length is None else ", static"
    return Reference(
        f"{n_streams} x {producer}{known}",
        lambda: joined_streams(producer, n_streams, length),
        lambda size: stream_values(n_streams, size),
    )


def few_written(producer: str, n_streams: int, length: int | None = None) -> Reference:
    """One computed stream among arguments."""
    known = "" if length is None else ", static"
    return Reference(
        f"{producer} among {n_streams}{known}",
        lambda: joined_few(producer, n_streams, length),
        lambda size: stream_values(n_streams, size),
    )


def columns(producer: str, n_streams: int, width: int | None) -> Reference:
    """Streams side by side; the size is the number of rows."""
    if width is None:
        return Reference(
            f"{n_streams} x {producer} stacked, axis 1",
            lambda: joined_columns(producer, n_streams, None),
            lambda size: stream_values(n_streams, size),
        )
    return Reference(
        f"{n_streams} x {producer} of {width} columns, axis 1",
        lambda: joined_columns(producer, n_streams, width),
        lambda size: [_rng().normal(size=(size, width)) for _ in range(n_streams)],
    )


def rows_stacked(producer: str, n_streams: int) -> Reference:
    return Reference(
        f"{n_streams} x {producer} stacked, axis 0",
        lambda: stacked_rows(producer, n_streams),
        lambda size: stream_values(n_streams, size),
    )


def packed(n_rows: int) -> Reference:
    """The packed gradient; its size is its number of rows."""
    return Reference(
        f"packed gradient, {n_rows} rows",
        lambda: packed_gradient(n_rows),
        lambda size: packed_values(n_rows),
    )


def padded_affine(length: int | None) -> Reference:
    known = "" if length is None else ", static"
    return Reference(
        f"padded affine{known}",
        lambda: padded("affine", length),
        lambda size: stream_values(1, size),
    )


RADON = Reference("radon", radon, radon_values)
STUDENT_T = Reference(
    "student-t(40)", lambda: student_t_regression(40), lambda size: student_t_values(40, size)
)
GP = Reference("Gaussian process", gaussian_process, gp_values)
MIXTURE = Reference("mixture(5)", mixture, mixture_values)


def pymc_references() -> list[Reference]:
    """Models written in PyMC, whose data are constants; none where it is not installed."""
    if not has_pymc():
        return []
    return [
        Reference("pymc radon", pymc_model, lambda size: pymc_values()),
        Reference("pymc mixture(5)", pymc_mixture, lambda size: pymc_mixture_values()),
        Reference("pymc student-t(40)", pymc_student_t, lambda size: pymc_student_t_values()),
    ]


def demo_references() -> list[Reference]:
    """The graphs of the demo: the PyMC model is among them where PyMC is installed."""
    references = [deep(20), large(25), RADON]
    if has_pymc():
        references.append(Reference("pymc radon", pymc_model, lambda size: pymc_values()))
    return references


def reference(name: str) -> Reference:
    """The reference graph that is called ``name``, for any ``n`` in those that have one."""
    for prefix, make in (("deep(", deep), ("large(", large)):
        if name.startswith(prefix) and name.endswith(")"):
            return make(int(name[len(prefix) : -1]))
    n_streams, _, producer = name.partition(" x ")
    if producer in PRODUCERS:
        return streams(producer, int(n_streams))
    others = [STUDENT_T, GP, MIXTURE, *pymc_references()]
    known = {r.name: r for r in [*demo_references(), *others]}
    if name not in known:
        shapes = f"deep(n), large(n), n x one of {[*PRODUCERS]}"
        raise ValueError(f"no reference graph {name!r}; known: {shapes}, {[*known]}")
    return known[name]


def _rng() -> np.random.Generator:
    return np.random.default_rng(20240517)


def _normal_logp(value: Variable, mu: Variable | float, sigma: Variable | float) -> Variable:
    sigma = pt.as_tensor(sigma)
    logp = -0.5 * pt.pow((value - mu) / sigma, 2) - LOG_SQRT_2PI - pt.log(sigma)
    return Assert("sigma > 0")(logp, pt.all(pt.gt(sigma, 0.0)))


def _half_normal_logp(value: Variable, sigma: float) -> Variable:
    logp = -0.5 * pt.pow(value / sigma, 2) + 0.5 * np.log(2 / np.pi) - np.log(sigma)
    return pt.switch(pt.ge(value, 0.0), logp, -np.inf)


def _half_cauchy_logp(value: Variable, beta: float) -> Variable:
    logp = np.log(2 / np.pi) - np.log(beta) - pt.log1p(pt.pow(value / beta, 2))
    return pt.switch(pt.ge(value, 0.0), logp, -np.inf)


def _logp_and_gradient(terms: Sequence[Variable], parameters: Sequence[Variable]) -> list[Variable]:
    logp = pt.add(*(pt.sum(term) for term in terms))
    return [logp, *pytensor.grad(logp, list(parameters))]
