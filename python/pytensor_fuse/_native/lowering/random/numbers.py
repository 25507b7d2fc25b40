"""Scalar random variables: the formula of one draw of each.

The formulas follow PyTensor's Numba mode, down to the order of the draws: its own formulas where it
has some, and NumPy's functions where Numba draws the same numbers. A few results differ from those
of PyTensor's Python implementations, which call SciPy for some ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytensor.tensor.random import basic

from pytensor_fuse._native.program.external.draws import DRAWS
from pytensor_fuse._pytensor.compat.checks import is_known

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._native.lowering.types import BufferId, Builder, Value

    Number = Callable[[Builder, BufferId, Sequence[Value]], Value]


def _draws(name: str) -> Number:
    """Return the emitter of a distribution that has the parameters of the op."""
    takes = DRAWS[name].takes

    def number(b: Builder, generator: BufferId, params: Sequence[Value]) -> Value:
        given = [b.cast(one, dtype) for one, dtype in zip(params, takes, strict=True)]
        return b.draw(name, generator, given)

    return number


def _floats(b: Builder, params: Sequence[Value]) -> list[Value]:
    return [b.cast(one, "f64") for one in params]


def _uniform(b: Builder, generator: BufferId, params: Sequence[Value]) -> Value:
    low, high = _floats(b, params)
    return b.draw("uniform", generator, [low, b.op("sub", high, low)])


def _location_scale(name: str, *, folds: bool = False) -> Number:
    """Return the emitter of a standard distribution, moved to a location and scaled.

    Parameters
    ----------
    name
        The distribution, whose parameters come before the location and the scale.
    folds
        Whether the absolute values of its numbers are taken.
    """

    def number(b: Builder, generator: BufferId, params: Sequence[Value]) -> Value:
        *given, loc, scale = _floats(b, params)
        drawn = b.draw(name, generator, given)
        drawn = b.op("abs", drawn) if folds else drawn
        return b.op("add", loc, b.op("mul", scale, drawn))

    return number


def _pareto(b: Builder, generator: BufferId, params: Sequence[Value]) -> Value:
    shape, scale = _floats(b, params)
    below = b.op("sub", b.constant("f64", 1), b.draw("standard_uniform", generator, []))
    power = b.op("pow", below, b.op("div", b.constant("f64", -1), shape))
    return b.op("mul", power, scale)


def _inverse_gamma(b: Builder, generator: BufferId, params: Sequence[Value]) -> Value:
    (shape, scale), one = _floats(b, params), b.constant("f64", 1)
    return b.op("div", one, b.draw("gamma", generator, [shape, b.op("div", one, scale)]))


def _wald(b: Builder, generator: BufferId, params: Sequence[Value]) -> Value:
    # Newer versions of NumPy have another formula than Numba.
    mean, scale = _floats(b, params)
    ratio = b.op("div", mean, b.op("mul", b.constant("f64", 2), scale))
    normal = b.draw("standard_normal", generator, [])
    y = b.op("mul", b.op("mul", mean, normal), normal)
    four_y = b.op("mul", b.op("mul", b.constant("f64", 4), scale), y)
    root = b.op("sqrt", b.op("add", four_y, b.op("mul", y, y)))
    x = b.op("add", mean, b.op("mul", ratio, b.op("sub", y, root)))
    below = b.draw("standard_uniform", generator, [])
    is_small = b.op("le", below, b.op("div", mean, b.op("add", mean, x)))
    return b.op("select", is_small, x, b.op("div", b.op("mul", mean, mean), x))


def _bernoulli(b: Builder, generator: BufferId, params: Sequence[Value]) -> Value:
    [p] = _floats(b, params)
    is_beyond = b.op("lt", p, b.draw("standard_uniform", generator, []))
    return b.op("select", is_beyond, b.index(0), b.index(1))


def _binomial(b: Builder, generator: BufferId, params: Sequence[Value]) -> Value:
    n, p = params
    return b.draw("binomial", generator, [b.cast(p, "f64"), b.cast(n, "i64")])


def _integers(b: Builder, generator: BufferId, params: Sequence[Value]) -> Value:
    low, high = [b.cast(one, "i64") for one in params]
    is_some = b.op("lt", low, high)
    b.check(is_some, ValueError, "low is greater than high in given interval")
    return integer_below(b, generator, low, high)


def integer_below(b: Builder, generator: BufferId, low: Value, high: Value) -> Value:
    """Return an integer from the interval from low to high, high excluded."""
    last = b.op("sub", high, b.index(1))
    spread = b.cast(b.op("sub", last, low), "u64")
    return b.cast(b.draw("bounded_integer", generator, [b.cast(low, "u64"), spread]), "i64")


def _hypergeometric(b: Builder, generator: BufferId, params: Sequence[Value]) -> Value:
    good, bad, n = [b.cast(one, "i64") for one in params]
    for name, one in (("ngood", good), ("nbad", bad), ("nsample", n)):
        b.check(b.op("ge", one, b.index(0)), ValueError, f"{name} < 0")
    limit = b.index(10**9)
    are_few = b.op("and", b.op("lt", good, limit), b.op("lt", bad, limit))
    b.check(are_few, ValueError, "both ngood and nbad must be less than 1000000000")
    b.check(b.op("ge", b.op("add", good, bad), n), ValueError, "ngood + nbad < nsample")
    return b.draw("hypergeometric", generator, [good, bad, n])


NUMBERS: Final[dict[type, Number]] = {
    basic.UniformRV: _uniform,
    basic.NormalRV: _location_scale("standard_normal"),
    basic.HalfNormalRV: _location_scale("standard_normal", folds=True),
    basic.LogNormalRV: _draws("lognormal"),
    basic.StudentTRV: _location_scale("standard_t"),
    basic.CauchyRV: _location_scale("standard_cauchy"),
    basic.ExponentialRV: _draws("exponential"),
    basic.GammaRV: _draws("gamma"),
    basic.InvGammaRV: _inverse_gamma,
    basic.BetaRV: _draws("beta"),
    basic.LaplaceRV: _draws("laplace"),
    basic.LogisticRV: _draws("logistic"),
    basic.GumbelRV: _draws("gumbel"),
    basic.WeibullRV: _draws("weibull"),
    basic.ParetoRV: _pareto,
    basic.TriangularRV: _draws("triangular"),
    basic.VonMisesRV: _draws("vonmises"),
    basic.WaldRV: _wald,
    basic.PoissonRV: _draws("poisson"),
    basic.BernoulliRV: _bernoulli,
    basic.BinomialRV: _binomial,
    basic.NegBinomialRV: _draws("negative_binomial"),
    basic.GeometricRV: _draws("geometric"),
    basic.HyperGeometricRV: _hypergeometric,
    basic.IntegersRV: _integers,
}


DOMAIN: Final = (
    "Domain error in arguments. The `scale` parameter must be positive for all distributions, and"
    " many distributions have restrictions on shape parameters. Please see the `scipy.stats.{name}`"
    " documentation for details."
)


def _discrete_uniform(b: Builder, generator: BufferId, params: Sequence[Value]) -> Value:
    low, last = [b.cast(one, "i64") for one in params]
    b.check(b.op("le", low, last), ValueError, DOMAIN.format(name="randint"))
    return integer_below(b, generator, low, b.op("add", last, b.index(1)))


def _shifted_wald(b: Builder, generator: BufferId, params: Sequence[Value]) -> Value:
    mean, scale, shift = [b.cast(one, "f64") for one in params]
    for name, one in (("mean", mean), ("scale", scale)):
        b.check(b.op("gt", one, b.constant("f64", 0)), ValueError, f"{name} <= 0")
    return b.op("add", b.draw("wald", generator, [mean, scale]), shift)


# The method that draws, and an equivalent emitter.
_OF_PYMC: Final[dict[str, tuple[str, Number]]] = {
    "pymc.distributions.discrete.DiscreteUniformRV": ("rng_fn_scipy", _discrete_uniform),
    "pymc.distributions.continuous.WaldRV": ("rng_fn", _shifted_wald),
}


def number_of_pymc(op: Any) -> Number | None:
    """Return the emitter of one draw of a PyMC op; None if the op is unknown."""
    kind = type(op)
    found = _OF_PYMC.get(f"{kind.__module__}.{kind.__qualname__}")
    if found is None:
        return None
    method, number = found
    function = getattr(kind, method, None)
    is_as_read = is_known(function, kind.__module__, f"{kind.__qualname__}.{method}")
    return number if is_as_read else None
