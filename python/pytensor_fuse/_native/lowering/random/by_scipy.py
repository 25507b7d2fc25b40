"""Random variables that Numba mode draws in Python, by short formulas of SciPy or NumPy.

PyMC's ops are recognized by name, without an import of PyMC, and by the source of the method that
draws: other versions may have other formulas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytensor_fuse._native.lowering.random.numbers import integer_below
from pytensor_fuse._pytensor.compat.checks import is_known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.annotations import BufferId, Builder, Value
    from pytensor_fuse._native.lowering.random.numbers import Number

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
