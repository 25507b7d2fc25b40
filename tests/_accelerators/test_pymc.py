"""PyMC models, compiled step by step as without accelerators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.io import In, Out

from support.accelerated import assert_same_compiles

pytest.importorskip("pymc", reason="not installed; it has no release for Python 3.11")

import pymc as pm
from pymc.pytensorf import collect_default_updates
from scipy.sparse import csr_matrix

from test_pymc_models import MODELS


def log_density(define: Callable[[np.random.Generator], None]) -> Any:
    with pm.Model() as model:
        define(np.random.default_rng(7))
    return model.continuous_value_vars, [model.logp(), model.dlogp()], {}


@pytest.mark.parametrize("name", MODELS)
def test_models(name: str) -> None:
    assert_same_compiles(lambda: log_density(MODELS[name]), True, fails=False)


def neighbours(rng: np.random.Generator) -> None:
    """A spatial model, whose matrix of neighbours is sparse."""
    ring = np.roll(np.eye(6), 1, axis=0)
    weights = pytensor.sparse.as_sparse_variable(csr_matrix(ring + ring.T))
    alpha, tau = pm.Uniform("alpha", 0, 1), pm.HalfNormal("tau")
    effects = pm.CAR("effects", np.zeros(6), W=weights, alpha=alpha, tau=tau)
    pm.Poisson("y", pm.math.exp(effects), observed=rng.poisson(2, size=6))


def censored_survival(rng: np.random.Generator) -> None:
    scale = pm.math.exp(rng.normal(size=(9, 2)) @ pm.Normal("b", shape=2))
    times = pm.Weibull.dist(pm.HalfNormal("shape"), scale)
    pm.Censored("y", times, lower=None, upper=2.0, observed=rng.uniform(0.1, 2, size=9))


@pytest.mark.parametrize("define", [neighbours, censored_survival], ids=lambda one: one.__name__)
def test_other_models(define: Callable[[np.random.Generator], None]) -> None:
    assert_same_compiles(lambda: log_density(define), True, fails=False)


@pytest.mark.parametrize("linker", ["py", "numba"])
def test_draws(linker: str) -> None:
    """Random variables, whose generators are updated."""

    def build() -> Any:
        with pm.Model() as model:
            MODELS["hierarchical_regression"](np.random.default_rng(7))
        draws = [*model.free_RVs, *model.observed_RVs]
        updates = collect_default_updates(outputs=draws, inputs=[])
        assert updates
        return [], draws, {"updates": updates}

    assert_same_compiles(build, True, linker=linker, fails=False)


def test_steps_of_a_fit() -> None:
    """Data that are shared, parameters that are updated, and inputs that may be overwritten."""

    def build() -> Any:
        rng = np.random.default_rng(7)
        with pm.Model() as model:
            x = pm.Data("x", rng.normal(size=(12, 3)))
            mean = x @ pm.Normal("b", shape=3)
            pm.Normal("y", mean, pm.HalfNormal("sigma"), observed=rng.normal(size=12))
        values = model.continuous_value_vars
        parameters = [pytensor.shared(np.zeros(one.type.ndim * (3,)), one.name) for one in values]
        loss = -model.logp()
        slopes = pt.grad(loss, values)
        rate = pt.vector("rate")
        updates = {
            one: one + rate.sum() * slope for one, slope in zip(parameters, slopes, strict=True)
        }
        inputs = [In(rate, mutable=True), *[In(one, borrow=True) for one in values]]
        return inputs, [Out(loss, borrow=True), rate * 2], {"updates": updates}

    assert_same_compiles(build, True, fails=False)
