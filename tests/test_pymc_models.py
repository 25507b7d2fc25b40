"""Log-densities of PyMC models and their gradients: the same with the package and without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.graph.fg import FunctionGraph

from pytensor_fuse._activation.passes.fusion import FusionRewriter
from support.graphs import assert_same_results, expensive
from support.linalg.rules import estimated
from support.switching import switched

pm = pytest.importorskip("pymc", reason="not installed; it has no release for Python 3.11")

MODELS: dict[str, Callable[[np.random.Generator], None]] = {}


def model(function: Callable[[np.random.Generator], None]) -> None:
    MODELS[function.__name__] = function


@model
def hierarchical_regression(rng: np.random.Generator) -> None:
    group = np.arange(24) % 4
    mu, tau = pm.Normal("mu", 0, 5, shape=2), pm.HalfNormal("tau", 2, shape=2)
    effects = mu + pm.Normal("z", shape=(4, 2)) * tau
    mean = effects[group, 0] + effects[group, 1] * rng.normal(size=24)
    pm.Normal("y", mean, pm.HalfCauchy("sigma", 2), observed=rng.normal(size=24))


@model
def student_t_regression(rng: np.random.Generator) -> None:
    mean = pm.Normal("a") + rng.normal(size=(20, 5)) @ pm.Normal("b", shape=5)
    nu, sigma = pm.Gamma("nu", 2, 0.1), pm.HalfNormal("sigma")
    pm.StudentT("y", nu=nu, mu=mean, sigma=sigma, observed=rng.normal(size=20))


@model
def marginal_gaussian_process(rng: np.random.Generator) -> None:
    x = np.linspace(0, 1, 9)[:, None]
    length, eta = pm.Gamma("length", 2, 1), pm.HalfNormal("eta", 2)
    covariance = eta**2 * pm.gp.cov.Matern52(1, length) + pm.gp.cov.ExpQuad(1, 2 * length)
    process = pm.gp.Marginal(cov_func=covariance)
    process.marginal_likelihood("y", x, y=rng.normal(size=9), sigma=pm.HalfNormal("sigma"))


@model
def latent_gaussian_process(rng: np.random.Generator) -> None:
    x = np.linspace(0, 1, 7)[:, None]
    length, eta = pm.Gamma("length", 2, 1), pm.HalfNormal("eta", 2)
    f = pm.gp.Latent(cov_func=eta**2 * pm.gp.cov.ExpQuad(1, length)).prior("f", x)
    pm.StudentT("y", nu=4, mu=f, sigma=0.5, observed=rng.normal(size=7))


@model
def mixture(rng: np.random.Generator) -> None:
    weights = pm.Dirichlet("weights", np.ones(3))
    mu, sigma = pm.Normal("mu", 0, 3, shape=3), pm.HalfNormal("sigma", shape=3)
    pm.NormalMixture("y", w=weights, mu=mu, sigma=sigma, observed=rng.normal(size=15))


@model
def autoregression_and_random_walk(rng: np.random.Generator) -> None:
    rho, sigma = pm.Normal("rho", 0, 0.5, shape=3), pm.HalfNormal("sigma")
    start = pm.Normal.dist(shape=2)
    x = pm.AR("x", rho, sigma=sigma, constant=True, init_dist=start, steps=10)
    walk = pm.GaussianRandomWalk("w", 0.1, sigma, init_dist=pm.Normal.dist(), steps=11)
    pm.Poisson("y", pm.math.exp(x + walk), observed=rng.poisson(2, size=12))


@model
def loop(rng: np.random.Generator) -> None:
    rho = pm.Normal("rho")
    level = pytensor.scan(
        lambda x, before, rho: rho * before + pt.sin(x) * pt.exp(-(before**2)),
        sequences=[pt.as_tensor(rng.normal(size=10))],
        outputs_info=[pt.constant(np.float64(0.0))],
        non_sequences=[rho],
        return_updates=False,
    )
    pm.Normal("y", level, pm.HalfNormal("sigma"), observed=rng.normal(size=10))


@model
def lkj_correlation(rng: np.random.Generator) -> None:
    scales = pm.Exponential.dist(1.0)
    cholesky, _, _ = pm.LKJCholeskyCov("cholesky", n=3, eta=2, sd_dist=scales, compute_corr=True)
    mean = pm.Normal("mean", shape=3)
    pm.MvNormal("y", mean, chol=cholesky, observed=rng.normal(size=(8, 3)))


@model
def two_normals_of_one_covariance(rng: np.random.Generator) -> None:
    scale, common = pm.HalfNormal("scale", shape=3), pm.HalfNormal("common")
    covariance = pt.diag(scale) + common**2 * pt.ones((3, 3))
    mean = pm.MvNormal("mean", pt.zeros(3), cov=covariance)
    pm.MvNormal("y", mean, cov=covariance, observed=rng.normal(size=(8, 3)))


def kinds(fgraph: FunctionGraph) -> Counter[str]:
    """The expensive nodes, whether of a Blockwise or not: PyTensor unwraps some after fusion."""
    found: Counter[str] = Counter()
    for name, number in expensive(fgraph).items():
        found[name.removeprefix("Blockwise ")] += number
    return found


@pytest.fixture
def before_fusion(monkeypatch: pytest.MonkeyPatch) -> list[tuple[FunctionGraph, Counter[str]]]:
    """Each graph that our fusion has come to, and the expensive nodes that it had then."""
    seen: list[tuple[FunctionGraph, Counter[str]]] = []
    apply = FusionRewriter.apply

    def note_and_apply(self: FusionRewriter, fgraph: FunctionGraph) -> tuple[Any, ...]:
        seen.append((fgraph, kinds(fgraph)))
        return apply(self, fgraph)

    monkeypatch.setattr(FusionRewriter, "apply", note_and_apply)
    return seen


@pytest.mark.parametrize("name", MODELS)
def test_log_density_and_gradient(
    name: str, before_fusion: list[tuple[FunctionGraph, Counter[str]]]
) -> None:
    rng = np.random.default_rng(3)
    with pm.Model() as built:
        MODELS[name](rng)
    inputs, outputs = built.continuous_value_vars, [built.logp(), built.dlogp()]
    start = built.initial_point()
    point = [start[v.name] + rng.normal(scale=0.3, size=start[v.name].shape) for v in inputs]
    functions = []
    for setting in ({"flag": False}, {"linalg": False}, {}):
        with switched(**setting):
            functions.append(pytensor.function(inputs, outputs, mode=Mode("py", "fast_run")))
    stock, without_linalg, function = functions
    expected = stock(*point)
    assert all(np.isfinite(result).all() for result in expected)
    for ours in functions[1:]:
        assert_same_results(ours(*point), expected)
    assert kinds(without_linalg.maker.fgraph) <= kinds(stock.maker.fgraph)
    # A product of matrices may have become one of vectors.
    assert estimated(function) <= estimated(stock)
    assert function.maker.fgraph in [fgraph for fgraph, _ in before_fusion]
    for fgraph, before in before_fusion:
        assert kinds(fgraph) <= before
