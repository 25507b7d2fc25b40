"""Exact values of the functions, with mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
from mpmath import mpf

DIGITS = 60


def _softplus(x: mpf) -> mpf:
    return mpmath.log1p(mpmath.exp(x))


def _log1mexp(x: mpf) -> mpf:
    if x > -1:
        return mpmath.log(-mpmath.expm1(x))
    return mpmath.log1p(-mpmath.exp(x))


def _tanh(x: mpf) -> mpf:
    return mpmath.tanh(x) if abs(x) < 100 else mpmath.sign(x)


def _erfcx(x: mpf) -> mpf:
    if x < 30:
        return mpmath.exp(x * x) * mpmath.erfc(x)
    fraction = mpf(0)
    for k in range(60, 0, -1):
        fraction = (mpf(k) / 2) / (x + fraction)
    return 1 / ((x + fraction) * mpmath.sqrt(mpmath.pi))


def _inverse(complement: mpf, value: mpf) -> mpf:
    """Return the number whose error function is `value`, and whose `erfc` is `complement`."""
    if value < mpf("1e-30"):
        return value * mpmath.sqrt(mpmath.pi) / 2
    if complement > mpf("0.5"):
        y = value * mpmath.sqrt(mpmath.pi) / 2
    else:
        s = mpmath.sqrt(-mpmath.log(complement))
        y = s - mpmath.log(s * mpmath.sqrt(mpmath.pi)) / (2 * s)
    for _ in range(60):
        slope = 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-y * y)
        if complement > mpf("0.5"):
            step = (mpmath.erf(y) - value) / slope
        else:
            reached = mpmath.erfc(y)
            step = mpmath.log(complement / reached) * reached / slope
        y -= step
        if abs(step) < mpf("1e-25") * y:
            break
    return y


def _erfinv(x: mpf) -> mpf:
    return mpmath.sign(x) * _inverse(1 - abs(x), abs(x))


def _erfcinv(x: mpf) -> mpf:
    if x > 1:
        return -_inverse(2 - x, x - 1)
    return _inverse(x, 1 - x)


def _gammaln(x: mpf) -> mpf:
    if x > 0:
        return mpmath.loggamma(x)
    sine = abs(mpmath.sin(mpmath.pi * (x - mpmath.nint(x))))
    return mpmath.log(mpmath.pi / (abs(x) * sine)) - mpmath.loggamma(-x)


def _digamma(x: mpf) -> mpf:
    if x > 0:
        return mpmath.digamma(x)
    # By reflection, because mpmath would step up to positive numbers one by one.
    angle = mpmath.pi * (x - mpmath.nint(x))
    return mpmath.digamma(1 - x) - mpmath.pi * mpmath.cot(angle)


def _trigamma(x: mpf) -> mpf:
    if x > 0:
        return mpmath.polygamma(1, x)
    angle = mpmath.pi * (x - mpmath.nint(x))
    return (mpmath.pi / mpmath.sin(angle)) ** 2 - mpmath.polygamma(1, 1 - x)


def _gamma(x: mpf) -> mpf:
    if x > 0:
        return mpmath.gamma(x)
    nearest = mpmath.nint(x)
    sine = (-1) ** (int(nearest) % 2) * mpmath.sin(mpmath.pi * (x - nearest))
    return mpmath.pi / (sine * mpmath.gamma(1 - x))


EXACT: dict[str, Callable[..., mpf]] = {
    "exp": mpmath.exp,
    "expm1": mpmath.expm1,
    "exp2": lambda x: mpmath.power(2, x),
    "log": mpmath.log,
    "log1p": mpmath.log1p,
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "log10": lambda x: mpmath.log(x) / mpmath.log(10),
    "tanh": _tanh,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": _softplus,
    "log1mexp": _log1mexp,
    "sqrt": mpmath.sqrt,
    "pow": mpmath.power,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "arctan": mpmath.atan,
    "arcsin": mpmath.asin,
    "arccos": mpmath.acos,
    "arctanh": mpmath.atanh,
    "arcsinh": mpmath.asinh,
    "arccosh": mpmath.acosh,
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "erfcx": _erfcx,
    "erfinv": _erfinv,
    "erfcinv": _erfcinv,
    "gammaln": _gammaln,
    "digamma": _digamma,
    "trigamma": _trigamma,
    "gamma": _gamma,
}

# Numbers from here on round to infinity.
OVERFLOW = mpf(2) ** 1024 - mpf(2) ** 970


def exact(name: str, *arguments: float) -> mpf:
    """Return the exact value for finite arguments of the domain."""
    with mpmath.workdps(DIGITS):
        return EXACT[name](*(mpf(float(argument)) for argument in arguments))


def unit(value: mpf, digits: int = 53, smallest: int = -1074) -> mpf:
    """Return the unit in the last place of a floating-point number near the value."""
    if value == 0:
        return mpf(2) ** smallest
    exponent = mpmath.frexp(abs(value))[1]
    return mpf(2) ** max(exponent - digits, smallest)


def error(result: float, value: mpf) -> float:
    """Return the error of a double in units of the last place of the exact value."""
    if math.isnan(result):
        return math.inf
    with mpmath.workdps(DIGITS):
        if math.isinf(result):
            right = abs(value) >= OVERFLOW and (value > 0) == (result > 0)
            return 0.0 if right else math.inf
        return float(abs(mpf(float(result)) - value) / unit(value))


def absolute_error(result: float, value: mpf) -> float:
    with mpmath.workdps(DIGITS):
        return float(abs(mpf(float(result)) - value))


def errors(name: str, results: np.ndarray, *arguments: np.ndarray) -> np.ndarray:
    """Return the errors of many results, in units of the last place."""
    values = (exact(name, *row) for row in zip(*arguments, strict=True))
    return np.array([error(r, v) for r, v in zip(results, values, strict=True)])
