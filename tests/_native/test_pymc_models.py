"""Log-densities of PyMC models with their gradients, as machine code and by the Python linker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

from pytensor_fuse._native.linking.thunks import NativeThunk
from pytensor_fuse.native import compile_c
from support.effort import IS_DEEP
from support.numba_only import numba_mirrored
from support.switching import switched

if TYPE_CHECKING:
    from collections.abc import Callable

pm = pytest.importorskip("pymc", reason="not installed; it has no release for Python 3.11")

N_POINTS = 100 if IS_DEEP else 3
MODELS: dict[str, Callable[[np.random.Generator], None]] = {}
# For the other models, Numba compiles for ten seconds each.
WHOLE: set[str] = set()
# PyMC and the Python linker take seconds to build these models.
SLOW = {
    "autoregression",
    "normal_mixture",
    "truncated",
    "censored",
    "poisson_of_groups",
    "categorical",
}


def whole(function: Callable[[np.random.Generator], None]) -> None:
    """Add a model that is machine code as a whole."""
    WHOLE.add(function.__name__)
    MODELS[function.__name__] = function


def in_part(function: Callable[[np.random.Generator], None]) -> None:
    """Add a model that Numba compiles in part."""
    MODELS[function.__name__] = function


@whole
def radon(rng: np.random.Generator) -> None:
    county, floor = rng.integers(7, size=40), rng.integers(2, size=40).astype("float64")
    a = pm.Normal("mu", 0, 10) + pm.Normal("z", shape=7) * pm.HalfNormal("sigma_a", 5)
    b = pm.Normal("b", 0, pm.HalfNormal("sigma_b", 5), shape=7)
    mean = a[county] + b[county] * floor
    pm.Normal("y", mean, pm.HalfCauchy("sigma", 5), observed=rng.normal(size=40))


@whole
def student_t_regression(rng: np.random.Generator) -> None:
    mean = pm.Normal("a") + (rng.normal(size=(20, 5)) * pm.Normal("b", shape=5)).sum(axis=1)
    nu, sigma = pm.Gamma("nu", 2, 0.1), pm.HalfNormal("sigma")
    pm.StudentT("y", nu=nu, mu=mean, sigma=sigma, observed=rng.normal(size=20))


@whole
def negative_binomial(rng: np.random.Generator) -> None:
    effects = pm.Normal("effects", pm.Normal("mu"), pm.HalfNormal("tau"), shape=5)
    rate = pm.math.exp(effects[rng.integers(5, size=30)])
    pm.NegativeBinomial("y", rate, alpha=pm.Exponential("alpha", 1), observed=rng.poisson(3, 30))


@whole
def poisson_of_groups(rng: np.random.Generator) -> None:
    group = rng.integers(4, size=25)
    rate = pm.Gamma("rate", alpha=pm.HalfNormal("a", 3), beta=pm.HalfNormal("b", 3), shape=4)
    exposure = rng.uniform(0.5, 2, size=25)
    pm.Poisson("y", rate[group] * exposure, observed=rng.poisson(2, size=25))


@whole
def normal_mixture(rng: np.random.Generator) -> None:
    weights = pm.Dirichlet("weights", np.ones(3))
    mu, sigma = pm.Normal("mu", 0, 3, shape=3), pm.HalfNormal("sigma", shape=3)
    pm.NormalMixture("y", w=weights, mu=mu, sigma=sigma, observed=rng.normal(size=15))


@whole
def many_scalars(rng: np.random.Generator) -> None:
    x = rng.normal(size=(20, 12))
    mean = sum(pm.Normal(f"b{i}", 0, 2) * x[:, i] for i in range(12))
    pm.Normal("y", mean, pm.HalfNormal("sigma"), observed=rng.normal(size=20))


@whole
def gamma(rng: np.random.Generator) -> None:
    mean = pm.math.exp(pm.Normal("a") + pm.Normal("b") * rng.normal(size=12))
    pm.Gamma("y", mu=mean, sigma=pm.HalfNormal("sigma"), observed=rng.gamma(2, size=12))


@whole
def weibull(rng: np.random.Generator) -> None:
    alpha, beta = pm.Gamma("alpha", 2, 1), pm.LogNormal("beta", 0, 1)
    pm.Weibull("y", alpha, beta, observed=rng.weibull(1.5, size=15))


@whole
def beta_binomial(rng: np.random.Generator) -> None:
    alpha, beta = pm.HalfNormal("alpha", 5), pm.HalfNormal("beta", 5)
    pm.BetaBinomial("y", alpha, beta, n=10, observed=rng.integers(11, size=12))


@whole
def logistic_regression(rng: np.random.Generator) -> None:
    linear = pm.Normal("a") + pm.Laplace("b", 0, 1) * rng.normal(size=20)
    pm.Bernoulli("y", logit_p=linear, observed=rng.integers(2, size=20))


@whole
def zero_inflated_poisson(rng: np.random.Generator) -> None:
    counts = rng.poisson(2, size=20) * rng.integers(2, size=20)
    pm.ZeroInflatedPoisson("y", pm.Beta("psi", 2, 2), pm.Exponential("mu", 1), observed=counts)


@whole
def truncated(rng: np.random.Generator) -> None:
    normal = pm.Normal.dist(pm.Normal("mu"), pm.HalfNormal("sigma"))
    pm.Truncated("y", normal, lower=-1, upper=2, observed=rng.uniform(-1, 2, size=10))


@whole
def censored(rng: np.random.Generator) -> None:
    normal = pm.Normal.dist(pm.Normal("mu"), pm.HalfNormal("sigma"))
    observed = np.clip(rng.normal(size=15), -0.5, 1.0)
    pm.Censored("y", normal, lower=-0.5, upper=1.0, observed=observed)


@whole
def ordered_logistic(rng: np.random.Generator) -> None:
    ordered = pm.distributions.transforms.ordered
    cuts = pm.Normal("cuts", 0, 2, transform=ordered, initval=[-1.0, 0.0, 1.0], shape=3)
    eta = pm.Normal("b") * rng.normal(size=15)
    pm.OrderedLogistic("y", eta=eta, cutpoints=cuts, observed=rng.integers(4, size=15))


@whole
def autoregression(rng: np.random.Generator) -> None:
    rho, sigma = pm.Normal("rho", 0, 0.5, shape=2), pm.HalfNormal("sigma")
    x = pm.AR("x", rho, sigma=sigma, init_dist=pm.Normal.dist(shape=2), steps=10)
    pm.Poisson("y", pm.math.exp(x), observed=rng.poisson(2, size=12))


@whole
def random_walk(rng: np.random.Generator) -> None:
    walk = pm.GaussianRandomWalk(
        "walk", 0.1, pm.HalfNormal("sigma"), init_dist=pm.Normal.dist(), steps=14
    )
    pm.Normal("y", walk, 0.5, observed=rng.normal(size=15))


@whole
def dirichlet_multinomial(rng: np.random.Generator) -> None:
    concentration = pm.HalfNormal("concentration", 3, shape=4)
    counts = rng.multinomial(9, [0.25] * 4, size=6)
    pm.DirichletMultinomial("y", n=9, a=concentration, observed=counts)


@whole
def categorical(rng: np.random.Generator) -> None:
    logits = pm.ZeroSumNormal("logits", 2, shape=(3, 4))
    chosen = logits[rng.integers(3, size=14)]
    pm.Categorical("y", logit_p=chosen, observed=rng.integers(4, size=14))


@in_part
def matrix_regression(rng: np.random.Generator) -> None:
    mean = rng.normal(size=(20, 5)) @ pm.Normal("b", shape=5)
    pm.Normal("y", mean, pm.HalfNormal("sigma"), observed=rng.normal(size=20))


@whole
def marginal_gaussian_process(rng: np.random.Generator) -> None:
    x = np.linspace(0, 1, 9)[:, None]
    covariance = pm.HalfNormal("eta", 2) ** 2 * pm.gp.cov.Matern52(1, pm.Gamma("length", 2, 1))
    process = pm.gp.Marginal(cov_func=covariance)
    process.marginal_likelihood("y", x, y=rng.normal(size=9), sigma=pm.HalfNormal("sigma"))


@in_part
def lkj_correlation(rng: np.random.Generator) -> None:
    scales = pm.Exponential.dist(1.0)
    cholesky, _, _ = pm.LKJCholeskyCov("cholesky", n=3, eta=2, sd_dist=scales, compute_corr=True)
    pm.MvNormal("y", pm.Normal("mean", shape=3), chol=cholesky, observed=rng.normal(size=(8, 3)))


@in_part
def hierarchy_of_correlated_effects(rng: np.random.Generator) -> None:
    scales = pm.HalfNormal.dist(1.0)
    cholesky, _, _ = pm.LKJCholeskyCov("cholesky", n=2, eta=2, sd_dist=scales, compute_corr=True)
    effects = pt.dot(pm.Normal("z", shape=(6, 2)), cholesky.T)
    group = rng.integers(6, size=20)
    mean = effects[group, 0] + effects[group, 1] * rng.normal(size=20)
    pm.Normal("y", mean, pm.HalfNormal("sigma"), observed=rng.normal(size=20))


@whole
def order_statistics(rng: np.random.Generator) -> None:
    z = pt.sort(pm.Normal("z", shape=6) * pm.HalfNormal("s"))
    pm.Normal("y", pt.exp(z).cumsum(), 1, observed=rng.normal(size=6))


@in_part
def with_an_op_of_others(rng: np.random.Generator) -> None:
    z = numba_mirrored(pm.Normal("z", shape=6) * pm.HalfNormal("s"))
    pm.Normal("y", pt.exp(z).cumsum(), 1, observed=rng.normal(size=6))


@whole
def loop(rng: np.random.Generator) -> None:
    rho = pm.Normal("rho")
    level = pytensor.scan(
        lambda x, before, rho: rho * before + pt.sin(x),
        sequences=[pt.as_tensor(rng.normal(size=10))],
        outputs_info=[pt.constant(np.float64(0.0))],
        non_sequences=[rho],
        return_updates=False,
    )
    pm.Normal("y", level, pm.HalfNormal("sigma"), observed=rng.normal(size=10))


def built(name: str) -> Any:
    with pm.Model() as model:
        MODELS[name](np.random.default_rng(3))
    return model


@pytest.mark.parametrize("name", MODELS if IS_DEEP else sorted(WHOLE - SLOW))
def test_log_density_and_gradient(name: str) -> None:
    model = built(name)
    inputs = model.continuous_value_vars
    outputs = [model.logp(), *pytensor.grad(model.logp(), inputs)]
    function = pytensor.function(inputs, outputs, mode="NUMBA")
    assert isinstance(function.vm, NativeThunk) == (name in WHOLE)
    with switched(False, native=False):
        stock = pytensor.function(inputs, outputs, mode=Mode("py", "fast_compile"))
    in_c = compile_c(function) if name in WHOLE else function
    # Numba would compile the draw of an initial point.
    rng = np.random.default_rng(5)
    shapes = [one.type.shape for one in inputs]
    if any(None in shape for shape in shapes):
        start = model.initial_point()
        shapes = [start[one.name].shape for one in inputs]
    for _ in range(N_POINTS):
        point = [rng.normal(scale=0.3, size=shape) for shape in shapes]
        expected = stock(*point)
        assert np.isfinite(expected[0])
        found = function(*point)
        for one, other in zip(in_c(*point), found, strict=True):
            np.testing.assert_array_equal(one, other)
        for one, other in zip(found, expected, strict=True):
            size = np.abs(other).max(initial=0.0)
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10 * size)


@pytest.mark.skipif(not IS_DEEP, reason="only in the deep profile: takes a minute")
@pytest.mark.parametrize("name", ["radon", "normal_mixture"])
def test_sampling(name: str) -> None:
    """The first draws are the same; later ones may not be, since each step multiplies rounding."""
    traces = []
    for is_native in (True, False):
        with switched(native=is_native), built(name):
            traces.append(
                pm.sample(
                    3,
                    tune=0,
                    nuts_sampler="pymc",
                    chains=1,
                    cores=1,
                    progressbar=False,
                    random_seed=7,
                    compute_convergence_checks=False,
                )
            )
    ours, stock = (np.asarray(trace.sample_stats["lp"])[0] for trace in traces)
    assert np.isfinite(ours).all()
    np.testing.assert_allclose(ours, stock, rtol=1e-6)
