"""A model of each of PyMC's distributions, with random variables as their parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

if TYPE_CHECKING:
    from collections.abc import Callable

# Base classes, and aliases.
NO_DISTRIBUTIONS = {
    "Continuous",
    "DensityDist",
    "Discrete",
    "Distribution",
    "Lognormal",
    "SymbolicRandomVariable",
}

_TWO, _COUNTS = np.array([0.1, 0.2]), np.array([1, 2])
_RING = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])


def _number(name: str = "number", **options: Any) -> Any:
    return pm.Normal(name, **options)


def _size(name: str = "size", **options: Any) -> Any:
    return pm.HalfNormal(name, **options)


def _share(name: str = "share") -> Any:
    return pm.Beta(name, 1, 1)


def _shares(length: int) -> Any:
    return pm.Dirichlet("shares", np.ones(length))


def _observed(kind: Any, data: Any, *parameters: Any, **options: Any) -> Any:
    return kind("y", *parameters, **options, observed=data)


def _walk_step() -> Any:
    return pm.Normal.dist(_number(), _size())


_START = pm.Normal.dist
_CUTS = [-1.0, 1.0]

# Functions that add the variable "y" to a model.
DISTRIBUTIONS: dict[str, Callable[[], Any]] = {
    "AR": lambda: pm.AR("y", [_number()], sigma=_size(), init_dist=_START(), observed=np.ones(9)),
    "AsymmetricLaplace": lambda: _observed(
        pm.AsymmetricLaplace, _TWO, kappa=_size(), mu=_number(), b=_size("b")
    ),
    "Bernoulli": lambda: _observed(pm.Bernoulli, [1, 0], logit_p=_number()),
    "Beta": lambda: _observed(pm.Beta, _TWO, _size("a"), _size("b")),
    "BetaBinomial": lambda: _observed(pm.BetaBinomial, _COUNTS, _size("a"), _size("b"), 5),
    "Binomial": lambda: _observed(pm.Binomial, _COUNTS, 5, _share()),
    "CAR": lambda: pm.CAR(
        "y", np.zeros(3), _RING.astype(float), _share(), _size(), observed=np.ones(3)
    ),
    "Categorical": lambda: _observed(pm.Categorical, _COUNTS, _shares(3)),
    "Cauchy": lambda: _observed(pm.Cauchy, _TWO, _number(), _size()),
    "Censored": lambda: _observed(
        pm.Censored, [0.0, 1.0], pm.Normal.dist(_number(), _size()), lower=0, upper=2
    ),
    "ChiSquared": lambda: _observed(pm.ChiSquared, _TWO, _size()),
    "CustomDist": lambda: pm.CustomDist(
        "y", _number(), logp=lambda value, mean: -((value - mean) ** 2), observed=_TWO
    ),
    "DiracDelta": lambda: pm.Normal("x", pm.DiracDelta("y", 2.0) * _number(), observed=_TWO),
    "Dirichlet": lambda: _observed(pm.Dirichlet, np.ones(3) / 3, _size(shape=3)),
    "DirichletMultinomial": lambda: _observed(
        pm.DirichletMultinomial, [1, 2, 2], 5, _size(shape=3)
    ),
    "DiscreteUniform": lambda: pm.Poisson("x", _size() + pm.DiscreteUniform("y", 0, 5)),
    "DiscreteWeibull": lambda: _observed(pm.DiscreteWeibull, _COUNTS, _share(), _size()),
    "EulerMaruyama": lambda: pm.EulerMaruyama(
        "y",
        dt=0.1,
        sde_fn=lambda x, rate: (rate * x, 0.1),
        sde_pars=[_number()],
        init_dist=_START(),
        observed=np.ones(9),
    ),
    "ExGaussian": lambda: _observed(
        pm.ExGaussian, _TWO, mu=_number(), sigma=_size(), nu=_size("nu")
    ),
    "Exponential": lambda: _observed(pm.Exponential, _TWO, _size()),
    "Flat": lambda: pm.Normal("x", pm.Flat("y"), observed=_TWO),
    "GARCH11": lambda: pm.GARCH11(
        "y",
        omega=_size(),
        alpha_1=_share(),
        beta_1=0.2,
        initial_vol=1.0,
        observed=np.ones(9),
    ),
    "Gamma": lambda: _observed(pm.Gamma, _TWO, _size("a"), _size("b")),
    "GaussianRandomWalk": lambda: pm.GaussianRandomWalk(
        "y", sigma=_size(), init_dist=_START(), observed=np.ones(9)
    ),
    "Geometric": lambda: _observed(pm.Geometric, _COUNTS, _share()),
    "Gumbel": lambda: _observed(pm.Gumbel, _TWO, _number(), _size()),
    "HalfCauchy": lambda: _observed(pm.HalfCauchy, _TWO, _size()),
    "HalfFlat": lambda: pm.Normal("x", 0, pm.HalfFlat("y"), observed=_TWO),
    "HalfNormal": lambda: _observed(pm.HalfNormal, _TWO, _size()),
    "HalfStudentT": lambda: _observed(pm.HalfStudentT, _TWO, _size("a"), _size("b")),
    "HurdleGamma": lambda: _observed(pm.HurdleGamma, [0, 2.0], _share(), _size("a"), _size("b")),
    "HurdleLogNormal": lambda: _observed(pm.HurdleLogNormal, [0, 2.0], _share(), _number()),
    "HurdleNegativeBinomial": lambda: _observed(
        pm.HurdleNegativeBinomial, [0, 2], _share(), _size("a"), _size("b")
    ),
    "HurdlePoisson": lambda: _observed(pm.HurdlePoisson, [0, 2], _share(), _size()),
    "HyperGeometric": lambda: pm.Poisson("x", _size() + pm.HyperGeometric("y", N=20, k=5, n=4)),
    "ICAR": lambda: pm.ICAR("y", W=_RING, sigma=_size()),
    "Interpolated": lambda: pm.Normal(
        "x", pm.Interpolated("y", np.linspace(0, 1, 20), np.ones(20)), observed=_TWO
    ),
    "InverseGamma": lambda: _observed(pm.InverseGamma, _TWO, _size("a"), _size("b")),
    "KroneckerNormal": lambda: pm.KroneckerNormal(
        "y",
        mu=pt.ones(6) * _number(),
        covs=[np.eye(2), np.eye(3)],
        sigma=_size(),
        observed=np.ones(6),
    ),
    "Kumaraswamy": lambda: _observed(pm.Kumaraswamy, _TWO, _size("a"), _size("b")),
    "LKJCholeskyCov": lambda: pm.LKJCholeskyCov("y", n=3, eta=2, sd_dist=pm.Exponential.dist(1.0)),
    "LKJCorr": lambda: pm.LKJCorr("y", n=3, eta=2),
    "Laplace": lambda: _observed(pm.Laplace, _TWO, _number(), _size()),
    "LogNormal": lambda: _observed(pm.LogNormal, _TWO, _number(), _size()),
    "Logistic": lambda: _observed(pm.Logistic, _TWO, _number(), _size()),
    "LogitNormal": lambda: _observed(pm.LogitNormal, _TWO, _number(), _size()),
    "MatrixNormal": lambda: pm.MatrixNormal(
        "y",
        mu=pt.ones((2, 3)) * _number(),
        rowcov=np.eye(2),
        colcov=np.eye(3),
        observed=np.ones((2, 3)),
    ),
    "Mixture": lambda: _observed(
        pm.Mixture, _TWO, _shares(2), [_walk_step(), pm.Gamma.dist(_size("a"), 1)]
    ),
    "Moyal": lambda: _observed(pm.Moyal, _TWO, _number(), _size()),
    "Multinomial": lambda: _observed(pm.Multinomial, [1, 2, 2], 5, _shares(3)),
    "MvGaussianRandomWalk": lambda: pm.MvGaussianRandomWalk(
        "y",
        mu=np.zeros(2),
        cov=np.eye(2) * _size(),
        init_dist=pm.MvNormal.dist(np.zeros(2), np.eye(2)),
        observed=np.ones((9, 2)),
    ),
    "MvNormal": lambda: _observed(pm.MvNormal, np.ones(3), _number(), cov=pt.eye(3) * _size()),
    "MvStudentT": lambda: _observed(
        pm.MvStudentT,
        np.ones(3),
        nu=_size("nu"),
        mu=pt.ones(3) * _number(),
        scale=pt.eye(3) * _size(),
    ),
    "MvStudentTRandomWalk": lambda: pm.MvStudentTRandomWalk(
        "y",
        nu=_size("nu"),
        mu=np.zeros(2),
        scale=np.eye(2) * _size(),
        init_dist=pm.MvNormal.dist(np.zeros(2), np.eye(2)),
        observed=np.ones((9, 2)),
    ),
    "NegativeBinomial": lambda: _observed(pm.NegativeBinomial, _COUNTS, _size("a"), _size("b")),
    "Normal": lambda: _observed(pm.Normal, _TWO, _number(), _size()),
    "NormalMixture": lambda: _observed(
        pm.NormalMixture, _TWO, _shares(2), _number(shape=2), _size()
    ),
    "OrderedLogistic": lambda: _observed(
        pm.OrderedLogistic, _COUNTS, eta=_number(), cutpoints=_CUTS
    ),
    "OrderedMultinomial": lambda: _observed(
        pm.OrderedMultinomial, [1, 2, 2], eta=_number(), cutpoints=_CUTS, n=5
    ),
    "OrderedProbit": lambda: _observed(pm.OrderedProbit, _COUNTS, eta=_number(), cutpoints=_CUTS),
    "Pareto": lambda: _observed(pm.Pareto, _TWO, _size(), 0.05),
    "Poisson": lambda: _observed(pm.Poisson, _COUNTS, _size()),
    "PolyaGamma": lambda: _observed(pm.PolyaGamma, _TWO, h=1, z=_number()),
    "RandomWalk": lambda: pm.RandomWalk(
        "y", innovation_dist=_walk_step(), init_dist=_START(), steps=8, observed=np.ones(9)
    ),
    "Rice": lambda: _observed(pm.Rice, _TWO, _size("nu"), _size()),
    "Simulator": lambda: pm.Simulator(
        "y", lambda rng, mean, size: rng.normal(mean, size=size), _number(), observed=_TWO
    ),
    "SkewNormal": lambda: _observed(
        pm.SkewNormal, _TWO, mu=_number(), sigma=_size(), alpha=_number("alpha")
    ),
    "SkewStudentT": lambda: _observed(
        pm.SkewStudentT, _TWO, a=_size("a"), b=_size("b"), mu=_number(), sigma=_size()
    ),
    "StickBreakingWeights": lambda: pm.StickBreakingWeights("y", alpha=_size(), K=4),
    "StudentT": lambda: _observed(pm.StudentT, _TWO, nu=_size("nu"), mu=_number(), sigma=_size()),
    "Triangular": lambda: pm.Triangular("y", lower=0, c=_share(), upper=1),
    "Truncated": lambda: _observed(
        pm.Truncated, [0.5, 1], pm.Gamma.dist(_size("a"), _size()), lower=0.1, upper=2
    ),
    "TruncatedNormal": lambda: _observed(
        pm.TruncatedNormal, _TWO, _number(), _size(), lower=0, upper=3
    ),
    "Uniform": lambda: pm.Uniform("y", _number(), 5),
    "VonMises": lambda: _observed(pm.VonMises, _TWO, _number(), _size()),
    "Wald": lambda: _observed(pm.Wald, _TWO, _size("mu"), _size()),
    "Weibull": lambda: _observed(pm.Weibull, _TWO, _size("a"), _size("b")),
    "Wishart": lambda: _observed(pm.Wishart, np.eye(3), nu=5, V=np.eye(3) * _size()),
    "WishartBartlett": lambda: pm.WishartBartlett("y", np.eye(3), 5),
    "ZeroInflatedBinomial": lambda: _observed(
        pm.ZeroInflatedBinomial, [0, 2], _share(), 5, _share("p")
    ),
    "ZeroInflatedNegativeBinomial": lambda: _observed(
        pm.ZeroInflatedNegativeBinomial, [0, 2], _share(), _size("mu"), _size()
    ),
    "ZeroInflatedPoisson": lambda: _observed(pm.ZeroInflatedPoisson, [0, 2], _share(), _size()),
    "ZeroSumNormal": lambda: pm.ZeroSumNormal("y", sigma=_size(), shape=4),
}
