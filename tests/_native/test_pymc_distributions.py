"""Coverage of PyMC's distributions: log density, its gradient, and the rest as machine code.

Graphs are rewritten and lowered here, and not compiled.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.gradient import NullTypeGradError

from pytensor_fuse._native.lowering.registry import lower
from support.effort import IS_DEEP
from support.native.lowering import lowered, rewritten_graph

pm = pytest.importorskip("pymc", reason="not installed; it has no release for Python 3.11")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from support.native.pymc_distributions import DISTRIBUTIONS, NO_DISTRIBUTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

# Distributions for which PyMC has no gradient, or no graph of the density: Python computes it.
WITHOUT_GRADIENT = {
    "PolyaGamma": "the density is a series, which a function of Python sums up",
    "Simulator": "there is no density, but a Python function of the user's that draws",
}
# Distributions with a gradient that Numba compiles nevertheless, with the reason.
NOT_NATIVE: dict[str, str] = {}
# Distributions with a cumulative distribution function, except LogitNormal, whose parameters PyMC
# copies.
CUMULATIVE = (
    "Bernoulli",
    "Beta",
    "BetaBinomial",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Censored",
    "ChiSquared",
    "DiracDelta",
    "DiscreteUniform",
    "DiscreteWeibull",
    "ExGaussian",
    "Exponential",
    "Flat",
    "Gamma",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfFlat",
    "HalfNormal",
    "HurdleGamma",
    "HurdleLogNormal",
    "HurdleNegativeBinomial",
    "HurdlePoisson",
    "HyperGeometric",
    "InverseGamma",
    "Kumaraswamy",
    "Laplace",
    "LogNormal",
    "Logistic",
    "Mixture",
    "Moyal",
    "NegativeBinomial",
    "Normal",
    "NormalMixture",
    "OrderedLogistic",
    "OrderedProbit",
    "Pareto",
    "Poisson",
    "SkewStudentT",
    "StudentT",
    "Triangular",
    "Truncated",
    "TruncatedNormal",
    "Uniform",
    "Wald",
    "Weibull",
    "ZeroInflatedBinomial",
    "ZeroInflatedNegativeBinomial",
    "ZeroInflatedPoisson",
)
# PyTensor takes half a minute to rewrite all of them.
QUICK = ("Bernoulli", "BetaBinomial", "Geometric", "HyperGeometric", "Normal", "Wald")
# Distributions that PyMC computes for scalars only.
OF_ONE = ("BetaBinomial", "HyperGeometric")


def why_not(inputs: Sequence[Any], outputs: Sequence[Any]) -> list[str]:
    """Return why a graph is not machine code as a whole; nothing if it is."""
    fgraph = rewritten_graph(inputs, outputs)
    reasons = {lower.refusal(node) for node in fgraph.apply_nodes} - {None}
    if not reasons:
        # A rule may refuse during lowering.
        lowered(fgraph)
    return sorted(map(str, reasons))


def model_of(name: str) -> Any:
    with pm.Model() as model:
        DISTRIBUTIONS[name]()
    return model


def test_all_distributions_are_here() -> None:
    there = set(pm.distributions.__all__) - NO_DISTRIBUTIONS
    assert {name for name in there if name[0].isupper()} == set(DISTRIBUTIONS)


def test_the_share_that_is_native() -> None:
    with_gradient = set(DISTRIBUTIONS) - set(WITHOUT_GRADIENT)
    assert 1 - len(NOT_NATIVE) / len(with_gradient) >= 0.98


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in DISTRIBUTIONS if name not in WITHOUT_GRADIENT])
def test_log_densities_and_gradients(name: str) -> None:
    model = model_of(name)
    density, inputs = model.logp(), model.continuous_value_vars
    gradients = pytensor.grad(density, inputs, disconnected_inputs="ignore")
    assert bool(why_not(model.value_vars, [density, *gradients])) == (name in NOT_NATIVE)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CUMULATIVE if IS_DEEP else QUICK)
def test_cumulative_distributions_and_gradients(name: str) -> None:
    model = model_of(name)
    variable = model["y"]
    value = pt.scalar("value", dtype=variable.dtype) if name in OF_ONE else variable.type("value")
    [out] = model.replace_rvs_by_values([pm.logcdf(variable, value)])
    inputs = model.continuous_value_vars
    gradients = pytensor.grad(out.sum(), inputs, disconnected_inputs="ignore")
    assert not why_not([value, *model.value_vars], [out, *gradients])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WITHOUT_GRADIENT)
def test_those_without_gradient(name: str) -> None:
    model = model_of(name)
    with pytest.raises((NotImplementedError, NullTypeGradError)):
        pytensor.grad(model.logp(), model.continuous_value_vars)
