"""Vector functions by name, with their error bounds.

`docs/reference/vector_mathematics.md` has the methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pytensor_fuse._native.mathematics import (
    arcs,
    error_functions,
    exponentials,
    gamma_functions,
    logarithms,
    other_logarithms,
    powers,
    text,
    trigonometry,
)
from pytensor_fuse._native.mathematics.text import Value


@dataclass(frozen=True)
class Function:
    """A mathematical function of vectors, or a part of one.

    Attributes
    ----------
    write
        The algorithm: takes the arguments, writes the instructions and returns the results.
    ulp
        The largest error of a double, in units of the last place of the exact result; 0 for one of
        `FORMS`, whose error is that of its function.
    arguments
        The number of arguments.
    absolute
        An additional absolute error, next to the function's zeros below 0.
    """

    write: Callable[..., Value | tuple[Value, ...]]
    ulp: float = 0.0
    arguments: int = 1
    absolute: float = 0.0


FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "exp": Function(exponentials.exp, 1),
        "expm1": Function(exponentials.expm1, 1),
        "log": Function(logarithms.log, 1),
        "log1p": Function(logarithms.log1p, 1),
        "tanh": Function(exponentials.tanh, 1),
        "sigmoid": Function(exponentials.sigmoid, 2),
        "softplus": Function(logarithms.softplus, 2),
        "log1mexp": Function(logarithms.log1mexp, 2),
        "sqrt": Function(text.square_root, 0.5),
        "pow": Function(powers.power, 2, arguments=2),
        "sin": Function(trigonometry.sin, 1),
        "cos": Function(trigonometry.cos, 1),
        "tan": Function(trigonometry.tan, 2),
        "erf": Function(error_functions.erf, 2),
        "erfc": Function(error_functions.erfc, 2),
        "erfcx": Function(error_functions.erfcx, 4),
        "gammaln": Function(gamma_functions.gammaln, 2, absolute=2.0**-52),
        "digamma": Function(gamma_functions.digamma, 4, absolute=2.0**-49),
        "exp2": Function(exponentials.exp2, 1),
        "log2": Function(other_logarithms.log2, 1),
        "log10": Function(other_logarithms.log10, 1),
        "sinh": Function(exponentials.sinh, 2),
        "cosh": Function(exponentials.cosh, 2),
        "arctan": Function(arcs.arctan, 2),
        "arcsin": Function(arcs.arcsin, 2),
        "arccos": Function(arcs.arccos, 2),
        "arctanh": Function(logarithms.arctanh, 2),
        "arcsinh": Function(arcs.arcsinh, 2),
        "arccosh": Function(arcs.arccosh, 2),
        "erfinv": Function(error_functions.erfinv, 4),
        "erfcinv": Function(error_functions.erfcinv, 4),
        "trigamma": Function(gamma_functions.trigamma, 4),
        "gamma": Function(gamma_functions.gamma, 2),
    }
)
# Functions that compute one of `FUNCTIONS`, or a part of it, to the same bits.
FORMS: Mapping[str, Function] = MappingProxyType(
    {
        # For nonnegative arguments.
        "gammaln_of_positive": Function(gamma_functions.gammaln_of_positive),
        "gamma_of_positive": Function(gamma_functions.gamma_of_positive),
        "digamma_of_positive": Function(gamma_functions.digamma_of_positive),
        "trigamma_of_positive": Function(gamma_functions.trigamma_of_positive),
        # For several powers of one base: the base's logarithm in two parts, and the power.
        "pow_log": Function(powers.log_for_power),
        "pow_by_log": Function(powers.power_by_log, arguments=4),
    }
)
