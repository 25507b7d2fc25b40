"""Table of all vector functions, with their error bounds and methods."""

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
    """A mathematical function of vectors.

    Attributes
    ----------
    arguments
        The number of arguments.
    write
        The algorithm: takes the arguments, writes the instructions and returns the result.
    ulp
        The largest error of a double, in units of the last place of the exact result.
    domain
        The arguments for which it is not NaN.
    method
        The method of computation.
    source
        The source of the method.
    absolute
        An additional absolute error, next to the function's zeros below 0.
    """

    arguments: int
    write: Callable[..., Value]
    ulp: float
    domain: str
    method: str
    source: str
    absolute: float = 0.0


_CODY = "Cody and Waite 1980"
_FDLIBM = "fdlibm; Tang 1990"
_TANG = "Tang 1990"
_PAYNE = "Cody and Waite 1980; Payne and Hanek 1983"
_SHEPHERD = "Shepherd and Laframboise 1981"
_ABRAMOWITZ = "Abramowitz and Stegun 6.1, 6.3"
_CIRCULAR = "reduction by pi / 2 in parts, two polynomials"
_ERROR = "polynomial below 0.58, exp(-x**2) u G(u) with u = 1 / (x + 3) beyond"
_ARCTAN = "subtraction of 0, pi / 4 or pi / 2, polynomial of degree 23"
_ARCSIN = "polynomial of degree 25; above 1/2, of sqrt((1 - x) / 2)"
_INVERSE = "polynomial of degree 21 in log(1 - x**2); below -5, one step of Halley's method"
_GAMMA = "recurrence to a quotient of polynomials, Stirling's series from 5 on, reflection"

FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "exp": Function(
            1, exponentials.exp, 1, "all", "reduction by log(2), polynomial of degree 11", _CODY
        ),
        "expm1": Function(
            1, exponentials.expm1, 1, "all", "the same, the leading terms in two parts", _CODY
        ),
        "log": Function(
            1, logarithms.log, 1, "x >= 0", "2 atanh(f / (2 + f)), polynomial of degree 7", _FDLIBM
        ),
        "log1p": Function(
            1,
            logarithms.log1p,
            1,
            "x >= -1",
            "log(1 + x) with the rounding error of 1 + x",
            _FDLIBM,
        ),
        "tanh": Function(1, exponentials.tanh, 1, "all", "expm1(2x) / (expm1(2x) + 2)", _CODY),
        "sigmoid": Function(
            1, exponentials.sigmoid, 2, "all", "p / (p + exp(r)), exp(-x) = exp(r) / p", _CODY
        ),
        "softplus": Function(
            1, logarithms.softplus, 2, "all", "max(x, 0) + log1p(exp(-abs(x)))", "Mächler 2012"
        ),
        "log1mexp": Function(
            1, logarithms.log1mexp, 2, "x <= 0", "log(-expm1(x)), log1p(-exp(x))", "Mächler 2012"
        ),
        "sqrt": Function(1, text.square_root, 0.5, "x >= 0", "the processor's", "IEEE 754"),
        "pow": Function(
            2,
            powers.power,
            2,
            "x >= 0, or an integer y",
            "exp(y log(x)) in two parts, the logarithm by a table",
            "Cody and Waite 1980; Tang 1990",
        ),
        "sin": Function(1, trigonometry.sin, 1, "finite", _CIRCULAR, _PAYNE),
        "cos": Function(1, trigonometry.cos, 1, "finite", _CIRCULAR, _PAYNE),
        "tan": Function(1, trigonometry.tan, 2, "finite", "sine over cosine, in two parts", _PAYNE),
        "erf": Function(1, error_functions.erf, 2, "all", _ERROR, _SHEPHERD),
        "erfc": Function(1, error_functions.erfc, 2, "all", _ERROR, _SHEPHERD),
        "erfcx": Function(1, error_functions.erfcx, 4, "all", _ERROR, _SHEPHERD),
        "gammaln": Function(
            1,
            gamma_functions.gammaln,
            2,
            "all",
            _GAMMA,
            _ABRAMOWITZ,
            absolute=2.0**-52,
        ),
        "digamma": Function(
            1,
            gamma_functions.digamma,
            4,
            "all but 0, -1, -2, ...",
            _GAMMA,
            _ABRAMOWITZ,
            absolute=2.0**-49,
        ),
        "exp2": Function(
            1, exponentials.exp2, 1, "all", "reduction by 1, polynomial of degree 11", _CODY
        ),
        "log2": Function(
            1, other_logarithms.log2, 1, "x >= 0", "by a table of 128 intervals", _TANG
        ),
        "log10": Function(
            1, other_logarithms.log10, 1, "x >= 0", "by a table of 128 intervals", _TANG
        ),
        "sinh": Function(
            1, exponentials.sinh, 2, "all", "polynomial below 1, exponentials beyond", _CODY
        ),
        "cosh": Function(1, exponentials.cosh, 2, "all", "half of exp(x) + exp(-x)", _CODY),
        "arctan": Function(1, arcs.arctan, 2, "all", _ARCTAN, _CODY),
        "arcsin": Function(1, arcs.arcsin, 2, "abs(x) <= 1", _ARCSIN, "fdlibm"),
        "arccos": Function(1, arcs.arccos, 2, "abs(x) <= 1", _ARCSIN, "fdlibm"),
        "arctanh": Function(
            1, logarithms.arctanh, 2, "abs(x) <= 1", "log1p(2x / (1 - x)) / 2", "fdlibm"
        ),
        "arcsinh": Function(
            1, arcs.arcsinh, 2, "all", "log1p(x + x**2 / (1 + sqrt(1 + x**2)))", "fdlibm"
        ),
        "arccosh": Function(
            1,
            arcs.arccosh,
            2,
            "x >= 1",
            "log(x + sqrt(x**2 - 1)) with the rounding error of the sum",
            "fdlibm",
        ),
        "erfinv": Function(1, error_functions.erfinv, 4, "abs(x) <= 1", _INVERSE, "Giles 2010"),
        "erfcinv": Function(1, error_functions.erfcinv, 4, "0 to 2", _INVERSE, "Giles 2010"),
        "trigamma": Function(1, gamma_functions.trigamma, 4, "all", _GAMMA, _ABRAMOWITZ),
        "gamma": Function(
            1,
            gamma_functions.gamma,
            2,
            "all but -1, -2, ...",
            "quotient of polynomials, exp of Stirling's series in two parts from 4 on, reflection",
            _ABRAMOWITZ,
        ),
    }
)


@dataclass(frozen=True)
class Form:
    """A function that computes one of `FUNCTIONS`, or a part of it, to the same bits.

    Attributes
    ----------
    arguments
        The number of arguments.
    write
        The algorithm: takes the arguments, writes the instructions and returns the results.
    results
        The number of results.
    """

    arguments: int
    write: Callable[..., Value | tuple[Value, ...]]
    results: int = 1


FORMS: Mapping[str, Form] = MappingProxyType(
    {
        # For nonnegative arguments.
        "gammaln_of_positive": Form(1, gamma_functions.gammaln_of_positive),
        "gamma_of_positive": Form(1, gamma_functions.gamma_of_positive),
        "digamma_of_positive": Form(1, gamma_functions.digamma_of_positive),
        "trigamma_of_positive": Form(1, gamma_functions.trigamma_of_positive),
        # For several powers of one base: the base's logarithm in two parts, and the power.
        "pow_log": Form(1, powers.log_for_power, results=2),
        "pow_by_log": Form(4, powers.power_by_log),
    }
)
