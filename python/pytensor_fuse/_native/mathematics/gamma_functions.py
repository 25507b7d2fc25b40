"""The gamma function, its logarithm, and the first two derivatives of its logarithm.

Below 5, the functions are quotients of polynomials on an interval of length 2, to which the
recurrence reduces the argument; from 5 on, Stirling's series with fitted coefficients; and below
zero, the reflection formula (M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions",
6.1, 6.3 and 6.4; W. J. Cody, A. J. Strecok and H. C. Thacher, "Chebyshev approximations for the psi
function", 1973). The gamma function itself has its seam at 4, and is computed in two parts
throughout.
"""

from __future__ import annotations

import math

from pytensor_fuse._native.mathematics import coefficients
from pytensor_fuse._native.mathematics.arithmetic import (
    fast_two_sum,
    horner,
    negative_fma,
    polynomial,
    product_minus,
    two_product,
    two_sum,
)
from pytensor_fuse._native.mathematics.cases import choose, in_cases
from pytensor_fuse._native.mathematics.exponentials import parts, reduce, scale
from pytensor_fuse._native.mathematics.logarithms import (
    SMALLEST_NORMAL,
    log_of_split,
    log_parts,
    split,
    split_any,
)
from pytensor_fuse._native.mathematics.powers import accurate_log, split_for_power
from pytensor_fuse._native.mathematics.rare import with_rare_lanes
from pytensor_fuse._native.mathematics.text import ROUNDER, SIGN, Value, at_most, fma, select
from pytensor_fuse._native.mathematics.trigonometry import cosine_parts, sine_parts

# Stirling's series from here on.
_LARGE = 5.0
# Its constant term: log(2 * pi) / 2 - 1 / 2.
_STIRLING = 0.5 * math.log(2 * math.pi) - 0.5
# Beyond this argument, the logarithm of the gamma function overflows.
_GAMMALN_LARGEST = float.fromhex("0x1.754d9278b51a7p+1014")
# From here on, all doubles are integers.
_INTEGERS = 2.0**52
# Below this number, all but one term are negligible.
_TINY = 2.0**-60
# Stirling's series from here on, in the gamma function itself.
_GAMMA_LARGE = 4.0
# From here on, the gamma function is infinite; below minus this number, it rounds to zero.
_GAMMA_LARGEST = 200.0
# The low parts of `_STIRLING` and math.pi.
_STIRLING_LOW = float.fromhex("0x1.4d252f2400510p-54")
_PI_LOW = float.fromhex("0x1.1a62633145c07p-53")


def _gammaln_parts(x: Value, *, is_normal: bool = True) -> tuple[Value, Value]:
    """Return the logarithm of the gamma function of a positive number, in two parts."""

    def parts_of(large: Value) -> tuple[Value, Value]:
        return _gammaln_in_case(x, large, is_normal)

    high, low = in_cases(x >= _LARGE, parts_of)
    return high, low


def _gammaln_in_case(x: Value, large: Value, is_normal: bool) -> tuple[Value, Value]:
    below_one, two_steps, one_step = x < 1.0, x >= 4.0, x >= 3.0
    previous = x - 1.0
    before = x - 2.0
    product = select(two_steps, previous * before, previous)
    argument = select(large, x, select(below_one, x, select(one_step, product, 1.0)))

    def log() -> tuple[Value, Value]:
        return log_parts(split(argument) if is_normal else split_any(argument))

    if x.body.lanes > 1:
        log_high, log_low = log()
    else:
        # Scalars skip the logarithm of 1.
        zero = x.body.constant(0.0)
        log_high, log_low = choose(argument.equals(1.0), lambda: (zero, zero), log)
    factor = select(large, x - 0.5, select(below_one, -1.0, 1.0))
    # Exact: the difference has no bits below those of the logarithm.
    log_high = log_high - select(large, 1.0, 0.0)
    # Near the zeros: a * (a - 1) * (7 / 16 + above / below).
    a = select(two_steps, x - 3.0, select(one_step, before, select(below_one, x, previous)))
    square = a * a
    above = polynomial(a, square, coefficients.GAMMALN_ABOVE)
    below = polynomial(a, square, coefficients.GAMMALN_BELOW)
    ratio = select(large, 1.0, above) / select(large, x, below)
    zeros, zeros_low = two_product(a, a - 1.0)
    middle, middle_low = two_product(zeros, x.body.constant(7 / 16))
    near = fma(zeros, ratio, fma(zeros_low, 7 / 16, middle_low))
    series = ratio * horner(ratio * ratio, coefficients.GAMMALN_STIRLING)
    main, main_low = two_product(factor, log_high)
    main_low = fma(factor, log_low, main_low)
    high, low = two_sum(main, select(large, _STIRLING, middle))
    low = low + (main_low + select(large, series, near))
    # For the largest numbers, all terms but the product are negligible. The product with only the
    # first part of the logarithm might overflow.
    huge = large & (x > 2.0**100)
    whole = factor * (log_high + log_low)
    return select(huge, whole, high), select(huge, 0.0, low)


def gammaln(x: Value) -> Value:
    """Return the logarithm of the magnitude of the gamma function."""
    positive = abs(x)
    high, low = _gammaln_parts(positive)
    result = select(positive > _GAMMALN_LARGEST, math.inf, high + low)
    return with_rare_lanes(
        "fuse.gammaln.negative",
        x.not_below(SMALLEST_NORMAL),
        result,
        (positive, high, low),
        _reflected_gammaln,
    )


def gammaln_of_positive(x: Value) -> Value:
    """Return `gammaln(x)` for a nonnegative number."""
    high, low = _gammaln_parts(x, is_normal=False)
    result = select(x > _GAMMALN_LARGEST, math.inf, high + low)
    return select(x.equals(0.0), math.inf, result)


def _with_poles(positive: Value, offset: Value, result: Value, pole: float) -> Value:
    """Return the result, or the value of a pole where the argument is an integer."""
    result = select(offset.equals(0.0), pole, result)
    return select(positive >= _INTEGERS, pole, result)


def _offset(positive: Value) -> Value:
    """Return the signed distance from the nearest integer, for numbers below `_INTEGERS`."""
    return positive - ((positive + _INTEGERS) - _INTEGERS)


def _reflected_gammaln(positive: Value, high: Value, low: Value) -> Value:
    """Return `gammaln(-x)` for a positive number, given the two parts of `gammaln(x)`.

    It is `-(log(x * r) + log(sin(pi * r) / (pi * r)) + gammaln(x))`, where `r` is the distance of
    `x` from the nearest integer. Next to zero, it is also `gammaln(x)`.
    """
    offset = abs(_offset(positive))
    product, product_low = two_product(positive, offset)
    # Next to zero, the result is `-log(x)` for both signs of the argument.
    tiny = positive < _TINY
    product = select(tiny, positive, product)
    log_high, log_low = log_parts(split_any(product), select(tiny, 0.0, product_low / product))
    square = offset * offset
    sine = square * horner(square, coefficients.LOG_SINE)
    total, rest = two_sum(log_high, high)
    result = -(total + ((rest + sine) + (log_low + low)))
    result = select(tiny, -(log_high + log_low), result)
    return _with_poles(positive, offset, result, math.inf)


def digamma(x: Value) -> Value:
    """Return the derivative of the logarithm of the gamma function."""
    positive = abs(x)
    result = digamma_of_positive(positive)
    return with_rare_lanes(
        "fuse.digamma.negative", x.bits() >= 0, result, (positive, result), _reflected_digamma
    )


def digamma_of_positive(x: Value) -> Value:
    """Return `digamma(x)` for a nonnegative number."""
    result = _finite_digamma(x)
    result = select(x.equals(math.inf), math.inf, result)
    return select(x.equals(0.0), -math.inf, result)


def _finite_digamma(x: Value) -> Value:
    large, below_one = x >= _LARGE, x < 1.0
    two_steps, one_step = x >= 4.0, x >= 3.0
    previous, before = x - 1.0, x - 2.0
    v = select(two_steps, x - 3.0, select(one_step, before, select(below_one, x, previous)))
    # The terms of the recurrence add up to step_above / step_below.
    step_below = select(below_one, x, select(two_steps, previous * before, previous))
    step_below = select(below_one | one_step, step_below, 1.0)
    step_above = select(
        two_steps, previous + before, select(one_step, 1.0, select(below_one, -1.0, 0.0))
    )
    # (y - root) * (1 + above / below), with y = v + 1
    root, root_low = coefficients.DIGAMMA_ROOT
    distance = v - root

    def near_root() -> tuple[Value, Value]:
        square = v * v
        above = polynomial(v, square, coefficients.DIGAMMA_ABOVE)
        below = polynomial(v, square, coefficients.DIGAMMA_BELOW)
        return fma(step_above, below, step_below * (distance * above)), step_below * below

    numerator, denominator = choose(large, lambda: (x.body.constant(1.0), x), near_root)
    ratio = numerator / denominator

    def far() -> tuple[Value]:
        w = ratio * ratio
        # Beyond log(x), the result is -1 / (2 * x) - w * series.
        rest = negative_fma(w, horner(w, coefficients.DIGAMMA_STIRLING), ratio * -0.5)
        parts = split(x)
        return (log_of_split(parts.k, parts.m - 1.0) + rest,)

    (found,) = choose(large, far, lambda: (distance + (ratio - root_low),))
    return found


def _reflected_digamma(positive: Value, value: Value) -> Value:
    """Return `digamma(-x)` for a positive number, given `digamma(x)`.

    It is `digamma(x) + 1 / x + 1 / r + (pi * cot(pi * r) - 1 / r)`, where `r` is the signed
    distance of `x` from the nearest integer.
    """
    offset = _offset(positive)
    rest = offset * horner(offset * offset, coefficients.COTANGENT)
    # Between two poles the large terms cancel, so their rounding errors matter.
    inverse, step = 1.0 / offset, 1.0 / positive
    inverse_low = product_minus(inverse, offset, positive.body.constant(1.0)) * inverse
    log_high, log_low = log_parts(split(positive))
    w = step * step
    series = negative_fma(w, horner(w, coefficients.DIGAMMA_STIRLING), step * -0.5)
    large = positive >= _LARGE
    high, low = two_sum(inverse, select(large, log_high, value))
    low = low + select(large, log_low + series, 0.0)
    result = high + (low + (inverse_low + (step + rest)))
    result = _with_poles(positive, offset, result, math.nan)
    # Next to zero, the function is odd.
    return select(positive < _TINY, -value, result)


def trigamma(x: Value) -> Value:
    """Return the second derivative of the logarithm of the gamma function."""
    positive = abs(x)
    result = trigamma_of_positive(positive)
    return with_rare_lanes(
        "fuse.trigamma.negative", x.not_below(0.0), result, (positive, result), _reflected_trigamma
    )


def trigamma_of_positive(x: Value) -> Value:
    """Return `trigamma(x)` for a nonnegative number."""
    large, below_one = x >= _LARGE, x < 1.0
    a = select(below_one, x, x - 1.0)
    square = a * a
    above = polynomial(a, square, coefficients.TRIGAMMA_ABOVE)
    below = polynomial(a, square, coefficients.TRIGAMMA_BELOW)
    ratio = select(large, 1.0, above) / select(large, x, below)
    w = ratio * ratio
    series = fma(w, horner(w, coefficients.TRIGAMMA_STIRLING), 0.5 * ratio)
    step = 1.0 / x
    # The quotient approximates the function less 1/4.
    rest = select(below_one, fma(step, step, 0.25), 0.25)
    return ratio + select(large, ratio * series, rest)


def _sine_of_pi(offset: Value) -> tuple[Value, Value]:
    """Return the sine of `pi * offset` in two parts, for a distance from an integer."""
    outer = offset > 0.25
    part = select(outer, 0.5 - offset, offset)
    angle, angle_low = two_product(part, offset.body.constant(math.pi))
    angle_low = fma(part, _PI_LOW, angle_low)
    square, square_low = two_product(angle, angle)
    sine, sine_low = sine_parts(angle, angle_low, square)
    cosine, cosine_low = cosine_parts(angle, angle_low, square)
    return fast_two_sum(
        select(outer, cosine, sine), select(outer, fma(square_low, -0.5, cosine_low), sine_low)
    )


def _reflected_trigamma(positive: Value, value: Value) -> Value:
    """Return `trigamma(-x)` for a positive number, given `trigamma(x)`.

    It is `(pi / sin(pi * r))**2 + 1 / x**2 - trigamma(x)`, where `r` is the distance of `x` from
    the nearest integer.
    """
    offset = abs(_offset(positive))
    pi = positive.body.constant(math.pi)
    sine, sine_low = _sine_of_pi(offset)
    # Squaring a rounded quotient would double its relative error.
    root = math.pi / sine
    rest = negative_fma(root, sine_low, product_minus(root, sine, pi) + _PI_LOW) / sine
    high, low = two_product(root, root)
    step = 1.0 / positive
    result = high + (fma(root + root, rest, low) + (step * step - value))
    result = _with_poles(positive, offset, result, math.inf)
    return select(positive < _TINY, value, result)


def gamma(x: Value) -> Value:
    """Return the gamma function."""
    positive = abs(x)
    high, low, k = _gamma_parts(at_most(positive, _GAMMA_LARGEST))
    result = scale(high + low, k.bits())
    return with_rare_lanes(
        "fuse.gamma.negative", x.bits() >= 0, result, (positive, high, low, k), _reflected_gamma
    )


def gamma_of_positive(x: Value) -> Value:
    """Return `gamma(x)` for a nonnegative number."""
    high, low, k = _gamma_parts(at_most(x, _GAMMA_LARGEST))
    return scale(high + low, k.bits())


def _gamma_parts(x: Value) -> tuple[Value, Value, Value]:
    """Return the gamma function of a positive number: two parts, and an exponent of two.

    The exponent is in the low bits of the last number.
    """
    large, below_one, step = x >= _GAMMA_LARGE, x < 1.0, x >= 3.0
    body = x.body
    one = body.constant(1.0)
    previous = x - 1.0
    a = select(step, x - 2.0, select(below_one, x, previous))

    def quotient() -> tuple[Value, Value]:
        square = a * a
        above = polynomial(a, square, coefficients.GAMMA_ABOVE)
        return above, polynomial(a, square, coefficients.GAMMA_BELOW)

    above, below = choose(large, lambda: (one, one), quotient)
    # A single division: 1 / x is `below * inverse`, or the inverse itself.
    inverse = 1.0 / (x * below)

    def of_small() -> tuple[Value, Value, Value]:
        # gamma(a + 1) is 1 + a * (a - 1) / 2, which is exact at 0, 1 and 2, plus a remainder of
        # some hundredths: a * (a - 1) * (a - 2) * above / below.
        before = a - 1.0
        zeros, zeros_low = two_product(a, before)
        zeros_low = fma(a, a - (before + 1.0), zeros_low)
        rest = zeros * ((a - 2.0) * ((above * x) * inverse))
        value, value_low = fast_two_sum(one, 0.5 * zeros)
        value_low = fma(zeros_low, 0.5, value_low) + rest
        factor = select(step, previous, 1.0)
        product, product_low = two_product(value, factor)
        product_low = fma(value_low, factor, product_low)
        reciprocal = below * inverse
        ratio = value * reciprocal
        ratio_low = (product_minus(ratio, x, value) + value_low) * reciprocal
        # Next to zero, the result is the reciprocal, which may be infinite.
        tiny = x < _TINY
        high = select(below_one, select(tiny, reciprocal, ratio), product)
        low = select(below_one, select(tiny, 0.0, ratio_low), product_low)
        return high, low, body.constant(ROUNDER)

    def of_large() -> tuple[Value, Value, Value]:
        # The logarithm is (x - 1 / 2) * (log(x) - 1) + `_STIRLING` + series; log(x) - 1 is exact.
        # 66 bits of log(x) are necessary, because it is multiplied by up to 171.
        log_high, log_low = accurate_log(split_for_power(x))
        factor = x - 0.5
        main, main_low = two_product(factor, log_high - 1.0)
        series = inverse * horner(inverse * inverse, coefficients.GAMMA_STIRLING)
        high, low = fast_two_sum(main, body.constant(_STIRLING))
        low = low + (fma(factor, log_low, main_low + _STIRLING_LOW) + series)
        high, low = fast_two_sum(high, low)
        reduced = reduce(high, low=True, extra=low)
        return *parts(reduced), reduced.k.number()

    high, low, exponent = choose(large, of_large, of_small)
    return high, low, exponent


def _reflected_gamma(positive: Value, high: Value, low: Value, k: Value) -> Value:
    """Return `gamma(-x)` for a positive number, given the parts of `gamma(x)`.

    It is `-pi / (x * sin(pi * x) * gamma(x))`.
    """
    body = positive.body
    shifted = positive + _INTEGERS
    signed = positive - (shifted - _INTEGERS)
    offset = abs(signed)
    sine, sine_low = _sine_of_pi(offset)
    product, product_low = two_product(positive, sine)
    product_low = fma(positive, sine_low, product_low)
    high, low = fast_two_sum(high, low)
    below, below_low = two_product(product, high)
    below_low = fma(product, low, fma(product_low, high, below_low))
    ratio = math.pi / below
    rest = product_minus(ratio, below, body.constant(math.pi))
    rest = negative_fma(ratio, below_low, rest + _PI_LOW)
    size = scale(ratio + rest / below, 0 - k.bits())
    # The sine has the sign of the offset, or the opposite sign next to odd integers.
    sign = (signed.bits() ^ (shifted.bits() << 63) ^ -1) & SIGN
    result = (size.bits() | sign).number()
    result = _with_poles(positive, offset, result, math.nan)
    # Next to zero, the result is the reciprocal; at -0.0, it is minus infinity.
    return select(positive < _TINY, -1.0 / positive, result)
