"""Inverse circular and hyperbolic functions.

Source: fdlibm; the inverse tangent by the subtraction of angles (W. J. Cody and W. Waite, "Software
Manual for the Elementary Functions", 1980, chapter 11).
"""

from __future__ import annotations

import math

from pytensor_fuse._native.mathematics import coefficients
from pytensor_fuse._native.mathematics.arithmetic import fast_two_sum, polynomial, product_minus
from pytensor_fuse._native.mathematics.logarithms import general_log, log_of_sum, usual_log1p
from pytensor_fuse._native.mathematics.rare import with_general_form
from pytensor_fuse._native.mathematics.text import (
    Value,
    bits_of,
    copy_sign,
    fma,
    select,
    square_root,
)

_HALF_PI = math.pi / 2
_HALF_PI_LOW = float.fromhex("0x1.1a62633145c07p-54")
# The tangents of pi / 8 and 3 * pi / 8.
_TAN_LOW, _TAN_HIGH = math.sqrt(2) - 1, math.sqrt(2) + 1
# Added to its square, 1 is negligible.
_HUGE = 2.0**60


def arctan(x: Value) -> Value:
    """Return the inverse tangent: an angle plus that of `a`, `(a - 1) / (a + 1)` or `-1 / a`."""
    size = abs(x)
    middle, high = size > _TAN_LOW, size > _TAN_HIGH
    above = select(high, -1.0, select(middle, size - 1.0, size))
    below = select(high, size, select(middle, size + 1.0, 1.0))
    ratio = above / below
    square = ratio * ratio
    tail = (ratio * square) * polynomial(square, square * square, coefficients.ARCTAN)
    low = select(high, _HALF_PI_LOW, select(middle, _HALF_PI_LOW / 2, 0.0))
    angle = select(high, _HALF_PI, select(middle, _HALF_PI / 2, 0.0))
    return copy_sign(angle + (ratio + (tail + low)), x)


def _reduced_arcsin(x: Value) -> tuple[Value, Value, Value, Value, Value]:
    """Reduce an argument of the inverse sine to a base up to 1/2.

    Returns
    -------
    large : Value
        Where the magnitude is above 1/2; the base is then `sqrt((1 - abs(x)) / 2)`.
    root, root_low : Value
        That square root in two parts.
    base, tail : Value
        The base, and `arcsin(base) - base`.
    """
    size = abs(x)
    large = size > 0.5
    half = 0.5 * (1.0 - size)
    square = select(large, half, size * size)
    root = square_root(half)
    rest = product_minus(root, root, half) * (0.5 / root)
    root_low = select(half > 0.0, rest, 0.0)
    base = select(large, root, x)
    tail = (base * square) * polynomial(square, square * square, coefficients.ARCSIN)
    return large, root, root_low, base, tail


def arcsin(x: Value) -> Value:
    """Return the inverse sine; above 1/2, `pi / 2 - 2 * arcsin(sqrt((1 - x) / 2))`."""
    size = abs(x)
    large, root, root_low, base, tail = _reduced_arcsin(size)
    far = (_HALF_PI - (root + root)) + (_HALF_PI_LOW - 2.0 * (tail + root_low))
    return copy_sign(select(large, far, base + tail), x)


def arccos(x: Value) -> Value:
    """Return the inverse cosine.

    For magnitudes above 1/2, it is `2 * arcsin(sqrt((1 - abs(x)) / 2))`, or pi less that.
    """
    large, root, root_low, _, tail = _reduced_arcsin(x)
    near = (_HALF_PI - x) + (_HALF_PI_LOW - tail + _lost(x))
    twice = 2.0 * (tail + root_low)
    positive = (root + root) + twice
    negative = (math.pi - (root + root)) + (2.0 * _HALF_PI_LOW - twice)
    return select(large, select(x < 0.0, negative, positive), near)


def _lost(x: Value) -> Value:
    """Return the rounding error of `pi / 2 - x`, for a number up to 1/2."""
    difference = _HALF_PI - x
    return (_HALF_PI - difference) - x


def arcsinh(x: Value) -> Value:
    """Return the inverse hyperbolic sine: `log1p(a + a**2 / (1 + sqrt(1 + a**2)))`."""
    size = abs(x)
    result = copy_sign(_usual_arcsinh(size), x)
    return with_general_form("arcsinh", size < _HUGE, result, (x,), _general_arcsinh)


def _usual_arcsinh(size: Value) -> Value:
    square = size * size
    return usual_log1p(size + square / (1.0 + square_root(1.0 + square)))


def _general_arcsinh(x: Value) -> Value:
    size = abs(x)
    far = general_log(size) + math.log(2)
    return copy_sign(select(size < _HUGE, _usual_arcsinh(size), far), x)


def arccosh(x: Value) -> Value:
    """Return the inverse hyperbolic cosine: `log(x + sqrt(x**2 - 1))`."""
    usual = (x - 1.0).bits().unsigned_below(bits_of(_HUGE))
    return with_general_form("arccosh", usual, _usual_arccosh(x), (x,), _general_arccosh)


def _usual_arccosh(x: Value) -> Value:
    t = x - 1.0
    # The root is smaller than x, or its last place has the same weight.
    return log_of_sum(*fast_two_sum(x, square_root(fma(t, t, t + t))))


def _general_arccosh(x: Value) -> Value:
    result = select(x <= _HUGE, _usual_arccosh(x), general_log(x) + math.log(2))
    return select(x < 1.0, math.nan, result)
