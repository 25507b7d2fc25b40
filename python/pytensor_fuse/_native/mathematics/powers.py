"""Powers: the exponential of a product with a logarithm, both in two parts.

Source: W. J. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980, chapter 7.
The logarithm has 66 bits, so the result is almost always correctly rounded, and exact results are
exact. A table has the logarithms of numbers near the middles of 128 intervals, and a short series
adds the remainder (P. T. P. Tang, "Table-driven implementation of the logarithm function", 1990).
With one division and a longer series in the place of the table, a power takes twice as long in
vectors, and three times as long in scalars.
"""

from __future__ import annotations

import math

from pytensor_fuse._native.mathematics import coefficients, exponentials
from pytensor_fuse._native.mathematics.arithmetic import (
    fast_two_sum,
    polynomial,
    product_minus,
    two_product,
)
from pytensor_fuse._native.mathematics.exponentials import LOG2_HIGH, LOG2_LOW, Reduced
from pytensor_fuse._native.mathematics.logarithms import Split, is_normal_positive, split, split_any
from pytensor_fuse._native.mathematics.rare import with_rare_lanes
from pytensor_fuse._native.mathematics.text import (
    SIGN,
    Value,
    at_least,
    at_most,
    bits_of,
    fma,
    look_up,
    select,
)

_INTEGERS = 2.0**52
# The size of the intervals in bits; 1 is in the middle of one of them.
_INTERVAL = 45
_START = bits_of(1.0) - (149 << (_INTERVAL - 1))
# Powers whose logarithms have a smaller magnitude are normal numbers.
_USUAL = 700.0


def split_for_power(x: Value, *, is_normal: bool = True) -> Split:
    """Split a positive number for `accurate_log`."""
    return split(x, start=_START) if is_normal else split_any(x, _START)


def accurate_log(parts: Split) -> tuple[Value, Value]:
    """Return the logarithm of a number split by `split_for_power`, in two parts.

    The relative error is 2**-66. The second part is at most 2**-16 times the first.
    """
    interval = (parts.m.bits() - _START) >> _INTERVAL
    inverse = look_up(interval, "power_inverses", coefficients.POWER_INVERSES)
    # Exact: the inverse has few bits.
    r = -product_minus(parts.m, inverse, inverse.body.constant(1.0))
    middle = look_up(interval, "power_logs", coefficients.POWER_LOGS)
    middle_low = look_up(interval, "power_logs_low", coefficients.POWER_LOGS_LOW)
    square = r * r
    half_square, half_square_low = two_product(r, 0.5 * r)
    series = (r * square) * polynomial(r, square, coefficients.POWER)
    # The first operand of the sum is exact.
    total, first = fast_two_sum(fma(parts.k, LOG2_HIGH, middle), r)
    total, second = fast_two_sum(total, -half_square)
    rest = fma(parts.k, LOG2_LOW, middle_low) + first
    return total, ((rest - half_square_low) + second) + series


def _scaled(log: tuple[Value, Value], y: Value) -> tuple[Value, Value]:
    """Return the logarithm of a power in two parts."""
    product, low = two_product(y, log[0])
    return product, fma(y, log[1], low)


def _reduced(product: Value, low: Value) -> Reduced:
    return exponentials.reduce(product, low=True, extra=low)


def _is_integer(size: Value) -> Value:
    rounded = (size + _INTEGERS) - _INTEGERS
    return rounded.equals(size) | (size >= _INTEGERS)


def log_for_power(x: Value) -> tuple[Value, Value]:
    """Return the logarithm of a base, in two parts, for `power_by_log`."""
    return accurate_log(split_for_power(x))


def power(x: Value, y: Value) -> Value:
    """Return `x` to the power of `y`, as C's `pow`."""
    return power_by_log(x, y, *log_for_power(x))


def power_by_log(x: Value, y: Value, high: Value, low: Value) -> Value:
    """Return `x` to the power of `y`, given the logarithm of `x`, which powers can share."""
    product, low = _scaled((high, low), y)
    result = exponentials.rounded_normal(_reduced(product, low))
    usual = is_normal_positive(x) & (abs(product) < _USUAL)
    if not x.body.target.fma:
        # Products with larger exponents are not exact without FMA.
        usual = usual & (abs(y) < 2.0**990)
    return with_rare_lanes("fuse.pow.general", usual, result, (x, y), _general_power)


def _general_power(x: Value, y: Value) -> Value:
    size, exponent = abs(x), abs(y)
    high, low = accurate_log(split_for_power(size, is_normal=False))
    high = select(size < math.inf, high, size)
    high = select(size.equals(0.0), -math.inf, high)
    product, product_low = _scaled((high, low), y)
    # 1 to any power is 1, even for an infinite exponent.
    is_one = size.equals(1.0)
    product_low = select((abs(product) > 1000.0) | is_one, 0.0, product_low)
    product = select(is_one, 0.0, product)
    argument = at_least(at_most(product, exponentials.LARGEST), exponentials.SMALLEST)
    result = exponentials.rounded(_reduced(argument, product_low))
    is_integer = _is_integer(exponent)
    is_odd = is_integer & (_is_integer(exponent * 0.5) ^ -1)
    sign = select(is_odd, x.bits() & SIGN, 0)
    result = (result.bits() | sign).number()
    no_number = (x < 0.0) & (size < math.inf) & (is_integer ^ -1)
    result = select(no_number, math.nan, result)
    return select(x.equals(1.0) | y.equals(0.0), 1.0, result)
