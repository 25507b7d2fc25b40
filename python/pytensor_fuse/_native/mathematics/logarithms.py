"""Functions composed of one logarithm.

The argument is `2**k * (1 + f)` with `1 + f` between `sqrt(1 / 2)` and `sqrt(2)`, and `log(1 + f)`
is `2 * atanh(s)` with `s = f / (2 + f)`, evaluated as `f - (f**2 / 2 - s * (f**2 / 2 + s**2 *
LOG(s**2)))` (P. T. P. Tang, "Table-driven implementation of the logarithm function", 1990; fdlibm).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pytensor_fuse._native.mathematics import coefficients
from pytensor_fuse._native.mathematics.arithmetic import (
    fast_two_sum,
    negative_fma,
    polynomial,
    product_minus,
    two_product,
)
from pytensor_fuse._native.mathematics.cases import choose
from pytensor_fuse._native.mathematics.exponentials import (
    LOG2_HIGH,
    LOG2_LOW,
    SMALLEST,
    Reduced,
    negative_exp,
    power_of_two,
    reduce,
    rounded,
)
from pytensor_fuse._native.mathematics.rare import with_general_form
from pytensor_fuse._native.mathematics.text import Value, at_least, bits_of, copy_sign, fma, select

_MANTISSA = (1 << 52) - 1
_SQRT_HALF = bits_of(math.sqrt(0.5))
# A double with this exponent has an integer value in its low bits.
_SHOWS_INTEGERS = bits_of(2.0**52)
SMALLEST_NORMAL = 2.0**-1022
_INFINITY = bits_of(math.inf)


# The offset of an exponent read as such a double: 2**52, plus the biased exponent of 1.
_BIAS = 2.0**52 + 1023
# Subnormal numbers are scaled by 2**54, which makes them normal.
_LIFT = 54
_LEAST_OF_LOG1MEXP = 2.0**-1000


@dataclass(frozen=True)
class Split:
    """A positive number as `2**k * m`.

    Attributes
    ----------
    k
        The exponent, as a double.
    m
        The mantissa, between `sqrt(1 / 2)` and `sqrt(2)`.
    exponent
        The biased exponent, as an integer; if the number was scaled, that of the scaled number.
    """

    k: Value
    m: Value
    exponent: Value


def is_normal_positive(x: Value) -> Value:
    """Return where a number is positive, finite and normal."""
    smallest = bits_of(SMALLEST_NORMAL)
    return (x.bits() - smallest).unsigned_below(_INFINITY - smallest)


def split(x: Value, bias: Value | float = _BIAS, start: int = _SQRT_HALF) -> Split:
    """Split a normal positive number; its mantissa begins with the bits of `start`."""
    moved = x.bits() + (bits_of(1.0) - start)
    exponent = moved >> 52
    m = ((moved & _MANTISSA) + start).number()
    return Split((exponent | _SHOWS_INTEGERS).number() - bias, m, exponent)


def split_any(x: Value, start: int = _SQRT_HALF) -> Split:
    """Split a positive number."""
    tiny = x < SMALLEST_NORMAL
    return split(select(tiny, x * 2.0**_LIFT, x), select(tiny, _BIAS + _LIFT, _BIAS), start)


def log_of_split(k: Value, f: Value, f_low: Value | None = None) -> Value:
    """Return `k * log(2) + log(1 + f + f_low)`."""
    low = k * LOG2_LOW
    if f_low is not None:
        low = low + f_low
    return fma(k, LOG2_HIGH, _log_of_mantissa(f, low))


def log_and_error(parts: Split) -> tuple[Value, Value]:
    """Return the logarithm of a split number, and the rounding error of its last sum."""
    return fast_two_sum(parts.k * LOG2_HIGH, _log_of_mantissa(parts.m - 1.0, parts.k * LOG2_LOW))


def _log_of_mantissa(f: Value, low: Value) -> Value:
    """Return `log(1 + f) + low`."""
    half_square = f * (0.5 * f)
    s = f / (2.0 + f)
    z = s * s
    rest = fma(z, polynomial(z, z * z, coefficients.LOG), half_square)
    return f - (half_square - fma(s, rest, low))


def log_parts(parts: Split, low: Value | None = None) -> tuple[Value, Value]:
    """Return the logarithm of a split number, plus a small `low`, in two parts.

    The second part is less than a tenth of the first; the error is less than 2**-55 of the larger
    of `k * log(2)` and `m - 1`.
    """
    k, f = parts.k, parts.m - 1.0
    half = 0.5 * f
    half_square, half_square_low = two_product(f, half)
    s = f / (2.0 + f)
    z = s * s
    rest = s * fma(z, polynomial(z, z * z, coefficients.LOG), half_square)
    rest = fma(k, LOG2_LOW, rest - half_square_low)
    if low is not None:
        rest = rest + low
    high, first = fast_two_sum(k * LOG2_HIGH, f)
    high, second = fast_two_sum(high, -half_square)
    return high, (first + second) + rest


def finish(x: Value, result: Value) -> Value:
    """Return the result, corrected where `x` is zero, infinite, negative or NaN."""
    result = select(x < math.inf, result, x)
    result = select(x < 0.0, math.nan, result)
    return select(x.equals(0.0), -math.inf, result)


def log(x: Value) -> Value:
    """Return the natural logarithm."""
    parts = split(x)
    usual = is_normal_positive(x)
    result = log_of_split(parts.k, parts.m - 1.0)
    return with_general_form("log", usual, result, (x,), general_log)


def general_log(x: Value) -> Value:
    """Return the natural logarithm, without a rare path."""
    parts = split_any(x)
    return finish(x, log_of_split(parts.k, parts.m - 1.0))


def log1p(x: Value) -> Value:
    """Return `log(1 + x)`."""
    result = copy_sign(usual_log1p(x), x)
    usual = ((1.0 + x).bits() - 1).unsigned_below(bits_of(2.0**1000))
    return with_general_form("log1p", usual, result, (x,), general_log1p)


def usual_log1p(x: Value) -> Value:
    """Return `log(1 + x)` for numbers above -1 and up to `2**1000`; it ignores the sign of zero."""
    total = 1.0 + x
    # The rounding error is exact up to 2**53, and negligible from there on.
    return log_of_sum(total, x - (total - 1.0))


def log_of_sum(total: Value, rest: Value) -> Value:
    """Return the logarithm of `total + rest`, a rounded sum and its rounding error."""
    parts = split(total)
    f, f_low = fast_two_sum(parts.m - 1.0, rest * _inverse_power(parts))
    return log_of_split(parts.k, f, f_low)


def general_log1p(x: Value, x_low: Value | None = None) -> Value:
    """Return `log(1 + x)` without a rare path; the argument may have two parts."""
    total = 1.0 + x
    rest, parts = x - (total - 1.0), split(total)
    if x_low is not None:
        rest = rest + x_low
    # For the largest numbers, 2**-k is subnormal, but 16 / 2**k is normal.
    low = (rest * _inverse_power(parts, 4)) * 0.0625
    f, f_low = fast_two_sum(parts.m - 1.0, low)
    return copy_sign(finish(total, log_of_split(parts.k, f, f_low)), x)


def _inverse_power(parts: Split, more: int = 0) -> Value:
    """Return `2**(more - k)`."""
    return (((2046 + more) << 52) - (parts.exponent << 52)).number()


def softplus(x: Value) -> Value:
    """Return `log(1 + exp(x))`, as `max(x, 0) + log1p(exp(-abs(x)))`."""
    e = negative_exp(-abs(x))
    upper = e > math.sqrt(2) - 1
    f = select(upper, 0.5 * (e - 1.0), e)
    log = _log_of_mantissa(f, select(upper, LOG2_LOW, 0.0))
    return at_least(x, 0.0) + (select(upper, LOG2_HIGH, 0.0) + log)


def log1mexp(x: Value) -> Value:
    """Return `log(1 - exp(x))` for a negative number.

    From -1.5 on, it is the logarithm of `1 - exp(x)` in two parts; below that, where the
    exponential is small, it is `log(1 + f)` with `f = -exp(x)`.
    """
    # Ones, for which the result is NaN, are not rare, because inactive lanes hold them.
    usual = abs(x) > _LEAST_OF_LOG1MEXP
    return with_general_form("log1mexp", usual, _log1mexp(x), (x,), _general_log1mexp)


def _log1mexp(x: Value) -> Value:
    reduced = reduce(at_least(x, SMALLEST), low=True)

    def far() -> tuple[Value]:
        zero = x.body.constant(0.0)
        return (log_of_split(zero, -rounded(reduced), zero),)

    def near() -> tuple[Value]:
        high, low = _one_less_exp(reduced)
        parts = split(high)
        return (log_of_split(parts.k, parts.m - 1.0, low * _inverse_power(parts)),)

    (result,) = choose(x < -1.5, far, near)
    result = select(x > 0.0, math.nan, result)
    return copy_sign(result, x.body.constant(-1.0))


def _one_less_exp(reduced: Reduced) -> tuple[Value, Value]:
    """Return `1 - exp(x)` in two parts."""
    factor = power_of_two(reduced.k)
    high, low = fast_two_sum(1.0 - factor, -(factor * reduced.r))
    return fast_two_sum(high, negative_fma(factor, reduced.tail, low))


def _general_log1mexp(x: Value) -> Value:
    # For a tiny number, `1 - exp(x)` is `-x`. Lanes that are not rare keep the bits of the usual
    # path.
    result = select(abs(x) > _LEAST_OF_LOG1MEXP, _log1mexp(x), general_log(-x))
    return copy_sign(result, x.body.constant(-1.0))


def arctanh(x: Value) -> Value:
    """Return the inverse hyperbolic tangent: half of `log1p(2 * abs(x) / (1 - abs(x)))`."""
    size = abs(x)
    twice = size + size
    below, below_low = fast_two_sum(x.body.constant(1.0), -size)
    inverse = 1.0 / below
    ratio = twice * inverse
    low = negative_fma(ratio, below_low, product_minus(ratio, below, twice)) * inverse
    # An infinite ratio gives an infinity, and a ratio below -1 gives NaN.
    return copy_sign(0.5 * general_log1p(ratio, low), x)
