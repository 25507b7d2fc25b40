"""Functions composed of one exponential.

The argument is `k * log(2) + r` with an integer `k` and `abs(r) <= log(2) / 2`, and `exp(r)` is
`1 + r + r**2 / 2 + r**3 * EXP(r)` (W. J. Cody and W. Waite, "Software Manual for the Elementary
Functions", 1980, chapter 6).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pytensor_fuse._native.mathematics import coefficients
from pytensor_fuse._native.mathematics.arithmetic import (
    fast_two_sum,
    horner,
    long_polynomial,
    negative_fma,
    polynomial,
    product_minus,
    two_sum,
)
from pytensor_fuse._native.mathematics.rare import with_general_form
from pytensor_fuse._native.mathematics.text import (
    ROUNDER,
    Value,
    at_least,
    at_most,
    bits_of,
    copy_sign,
    fma,
    round_to_integer,
    select,
)

# The logarithm of 2 in two parts: 42 bits, whose product with an integer of 11 bits is exact, and
# the rest.
LOG2_HIGH = float.fromhex("0x1.62e42fefa3800p-1")
LOG2_LOW = float.fromhex("0x1.ef35793c76730p-45")

# Beyond these arguments, the exponential is infinite or rounds to zero.
LARGEST, SMALLEST = 710.0, -746.0


@dataclass(frozen=True)
class Reduced:
    """An argument of the exponential: `k * log(2) + r`.

    Attributes
    ----------
    k
        The integer, plus a constant whose lowest 51 bits are zeros.
    r
        The remainder.
    tail
        `exp(r + error) - (1 + r)`, with the rounding error of `r`.
    """

    k: Value
    r: Value
    tail: Value


def reduce(x: Value, *, low: bool, extra: Value | None = None) -> Reduced:
    """Reduce an argument between `SMALLEST` and `LARGEST`.

    Parameters
    ----------
    x
        The argument.
    low
        Whether to include the rounding error of `r`.
    extra
        A term to add to the argument: its rounding error, or a number below 0.01.
    """
    shifted = fma(x, 1 / math.log(2), ROUNDER)
    count = shifted - ROUNDER
    high = negative_fma(count, LOG2_HIGH, x)
    if not low:
        r = negative_fma(count, LOG2_LOW, high)
        square = r * r
        tail = square * polynomial(r, square, (0.5, *coefficients.EXP))
        return Reduced(shifted.bits(), r, tail)
    # Exact even if the second number is larger, because the first is a multiple of its last place.
    r, error = fast_two_sum(high, negative_fma(count, LOG2_LOW, 0.0 if extra is None else extra))
    square = r * r
    second = fma(square, 0.5, fma(error, r, error))
    tail = fma(r * square, long_polynomial(r, coefficients.EXP_LONG, square), second)
    return Reduced(shifted.bits(), r, tail)


def power_of_two(k: Value) -> Value:
    """Return `2**k` for an integer in the low bits, if it is a normal number."""
    return ((k << 52) + bits_of(1.0)).number()


def inverse_power_of_two(k: Value) -> Value:
    """Return `2**-k` for an integer in the low bits, if it is a normal number."""
    return (k.body.constant(bits_of(1.0), "i64") - (k << 52)).number()


def scale(x: Value, k: Value) -> Value:
    """Return `x * 2**k`, rounded once, for `x` of moderate size and `k` in the low bits."""
    half = k >> 1
    # Multiplications keep a NaN, whose bits are in `k`, too; integer arithmetic might not.
    return (x * power_of_two(half)) * power_of_two(k - half)


def clamp(x: Value) -> Value:
    """Return the argument, limited to the range beyond which the exponential is infinite or 0."""
    return at_most(at_least(x, SMALLEST), LARGEST)


def exp(x: Value) -> Value:
    """Return the exponential."""
    return rounded(reduce(clamp(x), low=False))


def parts(reduced: Reduced) -> tuple[Value, Value]:
    """Return the exponential of `r + low` in two parts."""
    high, low = fast_two_sum(reduced.r.body.constant(1.0), reduced.r)
    return high, low + reduced.tail


def rounded(reduced: Reduced) -> Value:
    """Return the exponential of a reduced argument."""
    high, low = parts(reduced)
    return scale(high + low, reduced.k)


def rounded_normal(reduced: Reduced) -> Value:
    """Return the exponential of a reduced argument whose exponential has full precision."""
    high, low = parts(reduced)
    return ((high + low).bits() + (reduced.k << 52)).number()


def negative_exp(x: Value) -> Value:
    """Return the exponential of a number that is at most 0."""
    return rounded(reduce(at_least(x, SMALLEST), low=False))


def _scaled_minus_one(reduced: Reduced, factor: Value, one: float) -> tuple[Value, Value]:
    """Return `factor * exp(...) - one` in two parts, the first of which is only approximate."""
    high, low = fast_two_sum(factor - one, factor * reduced.r)
    return high, fma(factor, reduced.tail, low)


def expm1(x: Value) -> Value:
    """Return `exp(x) - 1`."""
    reduced = reduce(at_most(at_least(x, -40.0), LARGEST), low=True)
    # Half of the power, as 2**1024 overflows.
    factor = ((reduced.k << 52) + bits_of(0.5)).number()
    high, low = _scaled_minus_one(reduced, factor, 0.5)
    # Add the rounding error of `factor - 0.5`.
    low = low + ((factor - (factor - 0.5)) - 0.5)
    half = high + low
    return select(abs(x) < 2.0**-54, x, half + half)


def tanh(x: Value) -> Value:
    """Return the hyperbolic tangent: `m / (m + 2)` with `m = expm1(2 * abs(x))`."""
    size = at_most(abs(x), 20.0)
    reduced = reduce(size + size, low=True)
    m, m_low = fast_two_sum(*_scaled_minus_one(reduced, power_of_two(reduced.k), 1.0))
    below, below_low = two_sum(m, x.body.constant(2.0))
    reciprocal = 1.0 / below
    ratio = m * reciprocal
    rest = product_minus(ratio, below, m) + negative_fma(ratio, below_low + m_low, m_low)
    return copy_sign(fma(rest, reciprocal, ratio), x)


def sigmoid(x: Value) -> Value:
    """Return the logistic function: `p / (p + exp(r))`, where `exp(-x) = exp(r) / p`.

    `p` is a power of 2.
    """
    reduced = reduce(at_least(at_most(-x, -SMALLEST), -37.0), low=False)
    half = reduced.k >> 1
    first, second = inverse_power_of_two(half), inverse_power_of_two(reduced.k - half)
    p = first * second
    # At least 1, and thus the larger summand.
    above = p + 1.0
    below, error = fast_two_sum(above, reduced.r)
    rest = (p - (above - 1.0)) + error + reduced.tail
    return (first / (below + rest)) * second


def exp2(x: Value) -> Value:
    """Return `2**x`: with the fraction `p`, `2**p` is `1 + p * log(2) + p * EXP2(p)`."""
    power, k = _power_of_fraction(x)
    result = (power.bits() + (k << 52)).number()
    return with_general_form("exp2", abs(x) < 1000.0, result, (x,), _general_exp2)


def _general_exp2(x: Value) -> Value:
    return scale(*_power_of_fraction(at_most(at_least(x, -1080.0), 1030.0)))


def _power_of_fraction(x: Value) -> tuple[Value, Value]:
    """Return `2**(x - k)`, and the nearest integer `k`."""
    count, k = round_to_integer(x)
    p = x - count
    high, low = fast_two_sum(x.body.constant(1.0), p * math.log(2))
    return high + fma(p, long_polynomial(p, coefficients.EXP2), low), k


def _half_exp(size: Value) -> Value:
    """Return half of the exponential of a nonnegative number."""
    reduced = reduce(at_most(size, 711.0), low=False)
    high, low = parts(reduced)
    return scale((high + low) * 0.5, reduced.k)


def cosh(x: Value) -> Value:
    """Return the hyperbolic cosine: `h + 1 / (4 * h)` with `h = exp(abs(x)) / 2`."""
    half = _half_exp(abs(x))
    return half + 0.25 / half


def sinh(x: Value) -> Value:
    """Return the hyperbolic sine: a polynomial below 1, `h - 1 / (4 * h)` from there on."""
    size = abs(x)
    half = _half_exp(size)
    square = size * size
    small = fma(size * square, horner(square, coefficients.SINH), size)
    return copy_sign(select(size < 1.0, small, half - 0.25 / half), x)
