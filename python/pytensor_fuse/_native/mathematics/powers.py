"""Powers: the exponential of a product with a logarithm, both in two parts.

Source: W. J. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980, chapter 7;
fdlibm. The logarithm has 66 bits, so that the result is rounded almost rightly, and rightly where
it is exact.
"""

from __future__ import annotations

import math

from pytensor_fuse._native.mathematics import coefficients, exponentials
from pytensor_fuse._native.mathematics.arithmetic import (
    fast_two_sum,
    horner,
    product_minus,
    two_product,
)
from pytensor_fuse._native.mathematics.exponentials import LOG2_HIGH, LOG2_LOW
from pytensor_fuse._native.mathematics.logarithms import Split, split_any
from pytensor_fuse._native.mathematics.text import SIGN, Value, at_least, at_most, fma, select

_TWO_THIRDS = 2.0 / 3.0
_TWO_THIRDS_LOW = math.ldexp(2.0 / 3.0, -54)
_INTEGERS = 2.0**52


def accurate_log_of_mantissa(parts: Split) -> tuple[Value, Value]:
    """Return the logarithm of `m` in two parts, with an error of 2**-66 of it."""
    f = parts.m - 1.0
    below = 2.0 + f
    below_low = f - (below - 2.0)
    inverse = 1.0 / below
    s = f * inverse
    s_low = (product_minus(s, below, f) - s * below_low) * inverse
    z, z_low = two_product(s, s)
    z_low = fma(s + s, s_low, z_low)
    # The logarithm is 2 * s + s * z * (2 / 3 + z * POWER(z)).
    rest = z * horner(z, coefficients.POWER)
    u, u_low = fast_two_sum(f.body.constant(_TWO_THIRDS), rest)
    u_low = u_low + _TWO_THIRDS_LOW
    w, w_low = two_product(z, u)
    w_low = w_low + fma(z, u_low, z_low * u)
    cube, cube_low = two_product(s, w)
    cube_low = cube_low + fma(s, w_low, s_low * w)
    high, low = fast_two_sum(s + s, cube)
    return fast_two_sum(high, low + (cube_low + (s_low + s_low)))


def accurate_log(parts: Split) -> tuple[Value, Value]:
    """Return the logarithm in two parts, with an error of 2**-66 of it."""
    high, low = accurate_log_of_mantissa(parts)
    total, rest = fast_two_sum(parts.k * LOG2_HIGH, high)
    return fast_two_sum(total, rest + fma(parts.k, LOG2_LOW, low))


def _is_integer(size: Value) -> Value:
    rounded = (size + _INTEGERS) - _INTEGERS
    return rounded.equals(size) | (size >= _INTEGERS)


def power(x: Value, y: Value) -> Value:
    """Return `x` to the power of `y`, as C's `pow`."""
    size, exponent = abs(x), abs(y)
    high, low = accurate_log(split_any(size))
    high = select(size < math.inf, high, size)
    high = select(size.equals(0.0), -math.inf, high)
    product, product_low = two_product(y, high)
    product_low = fma(y, low, product_low)
    # One to any power is one, even to that of infinity.
    is_one = size.equals(1.0)
    product_low = select((abs(product) > 1000.0) | is_one, 0.0, product_low)
    product = select(is_one, 0.0, product)
    argument = at_least(at_most(product, exponentials.LARGEST), exponentials.SMALLEST)
    result = exponentials.rounded(exponentials.reduce(argument, low=True, extra=product_low))
    is_integer = _is_integer(exponent)
    is_odd = is_integer & (_is_integer(exponent * 0.5) ^ -1)
    sign = select(is_odd, x.bits() & SIGN, 0)
    result = (result.bits() | sign).number()
    no_number = (x < 0.0) & (size < math.inf) & (is_integer ^ -1)
    result = select(no_number, math.nan, result)
    return select(x.equals(1.0) | y.equals(0.0), 1.0, result)
