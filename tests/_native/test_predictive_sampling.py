"""Predictive sampling by PyMC: machine code draws the same numbers as PyTensor's Python linker."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
import pytest

pm = pytest.importorskip("pymc")

from pytensor_fuse._native.linking.parts import ThunkOfParts  # noqa: E402


def _model():
    rng = np.random.default_rng(1)
    group = rng.integers(4, size=30)
    with pm.Model() as model:
        scale = pm.Exponential("scale", 1.0)
        effects = pm.Normal("effects", 0, scale, shape=4)
        weights = pm.Gamma("weights", 2.0, 1.0, shape=4)
        pm.Poisson("counts", pm.math.exp(effects[group] / 9), observed=np.zeros(30, int))
        pm.Binomial("hits", 9, pm.math.sigmoid(effects[group]), observed=np.zeros(30, int))
        pm.Normal("y", weights[group], 1 + scale, observed=np.zeros(30))
    return model


def test_prior_and_posterior_are_those_of_the_python_linker():
    found = {}
    for mode in ("NUMBA", "FAST_COMPILE"):
        more = {"random_seed": 3, "compile_kwargs": {"mode": mode}, "model": _model()}
        prior = pm.sample_prior_predictive(draws=5, **more)
        posterior = pm.sample_posterior_predictive(prior["prior"], progressbar=False, **more)
        found[mode] = [prior["prior"], prior["prior_predictive"], posterior["posterior_predictive"]]
    for ours, theirs in zip(*found.values(), strict=True):
        assert sorted(ours) == sorted(theirs)
        for name, drawn in ours.items():
            np.testing.assert_allclose(drawn, theirs[name], rtol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    "made",
    [
        lambda: pm.DiscreteUniform.dist(2, 9, size=(3, 4)),
        lambda: pm.DiscreteUniform.dist([-3, 5], [2, 2**40]),
        lambda: pm.BetaBinomial.dist([1.0, 0.3], [[2.0], [7.0]], [9, 200]),
        lambda: pm.BetaBinomial.dist(1.0, 2.0, 9, size=(3, 4)),
        lambda: pm.Wald.dist(1.5, np.array([2.0, 3.0]), alpha=0.5, size=(3, 2)),
    ],
)
def test_what_python_draws_is_drawn_by_machine_code(made):
    found = []
    for mode in ("NUMBA", "FAST_COMPILE"):
        function = pm.pytensorf.compile([], made(), random_seed=3, mode=mode)
        assert (type(function.vm) is ThunkOfParts) == (mode == "NUMBA")
        found.append([function(), function()])
    assert np.array_equal(*found)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda n: pm.DiscreteUniform.dist(n, 3), r"^Domain error in arguments.*`scipy.stats.rand"),
        (lambda n: pm.BetaBinomial.dist(1.0, 1.0, -n), r"^Domain error in arguments.*betabinom`"),
        (lambda n: pm.Wald.dist(-n * 1.0, 1.0), "^mean <= 0"),
    ],
)
def test_parameters_that_python_refuses(made, message):
    n = pt.lscalar("n")
    for mode in ("NUMBA", "FAST_COMPILE"):
        with pytest.raises(ValueError, match=message):
            pm.pytensorf.compile([n], made(n), random_seed=3, mode=mode)(5)


@pytest.mark.parametrize(
    "made",
    [
        lambda: pm.NormalMixture.dist([0.3, 0.7], [0.0, 3.0], [1.0, 2.0], size=9),
        lambda: pm.Truncated.dist(pm.Gamma.dist(2.0, 1.0), lower=0.5, upper=4.0, size=9),
        lambda: pm.Censored.dist(pm.Normal.dist(), lower=-1.0, upper=1.0, size=9),
        lambda: pm.ZeroInflatedPoisson.dist(0.3, 2.1, size=9),
        lambda: pm.MvStudentT.dist(nu=4.0, mu=np.zeros(3), scale=np.eye(3) + 0.2),
        lambda: pm.AR.dist([0.5, 0.1], sigma=1.0, steps=6, init_dist=pm.Normal.dist(shape=2)),
        lambda: pm.LKJCholeskyCov.dist(n=3, eta=2.0, sd_dist=pm.Exponential.dist(1.0))[0],
    ],
)
def test_distributions_of_several_draws_are_machine_code(made):
    function = pm.pytensorf.compile([], made(), random_seed=3)
    assert type(function.vm) is ThunkOfParts
    first, second = function(), function()
    assert np.isfinite(first).all()
    assert not np.array_equal(first, second)
