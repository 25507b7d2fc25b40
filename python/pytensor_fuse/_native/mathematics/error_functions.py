"""The error function and its relatives.

Below 0.58, the error function is a polynomial. From there on, `erfcx(x) = exp(x**2) * erfc(x)` is
`u * ERFCX(u)`, a polynomial in `u = 1 / (x + 3)` (after M. M. Shepherd and J. G. Laframboise,
"Chebyshev approximation of (1 + 2x) exp(x**2) erfc x in 0 <= x < infinity", 1981).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pytensor_fuse._native.mathematics import coefficients, exponentials
from pytensor_fuse._native.mathematics.arithmetic import (
    fast_two_sum,
    long_polynomial,
    negative_fma,
    polynomial,
    product_minus,
    two_product,
    two_sum,
)
from pytensor_fuse._native.mathematics.cases import choose
from pytensor_fuse._native.mathematics.logarithms import (
    log_and_error,
    log_of_split,
    split,
    split_any,
)
from pytensor_fuse._native.mathematics.rare import with_rare_lanes
from pytensor_fuse._native.mathematics.text import (
    Value,
    at_least,
    at_most,
    copy_sign,
    fma,
    select,
    square_root,
)

_SHIFT = 3.0
_SMALL = 0.58
# A polynomial approximates the inverse where `1 - x**2` is at least this number, so that its
# logarithm is at least -5.
_CENTRAL = math.exp(-5.0)
# The constant added to that polynomial, and about minus its derivative by the logarithm.
_ERFINV_MIDDLE = 1.125
_ERFINV_SLOPE = 0.22
# Scaled by 2**200, all values of the complementary error function are normal numbers.
_LIFT = 200


def _erf_of_small(x: Value, square: Value) -> Value:
    return fma(x, polynomial(square, square * square, coefficients.ERF), x)


def _erfc_of_small(x: Value, square: Value) -> Value:
    high, low = fast_two_sum(x.body.constant(1.0), -x)
    return high + negative_fma(x, polynomial(square, square * square, coefficients.ERF), low)


@dataclass(frozen=True)
class _Scaled:
    """The scaled complementary error function: `(value + low) * u * (1 + error)`."""

    value: Value
    low: Value
    u: Value
    error: Value


def _erfcx_of_large(size: Value) -> _Scaled:
    """Return the scaled complementary error function of a number from 0.58 on."""
    body = size.body
    below, below_low = two_sum(size, body.constant(_SHIFT))
    u = 1.0 / below
    first, second, third, *rest = coefficients.ERFCX
    product, low = two_product(u, body.constant(second))
    higher, higher_low = two_product(u, u * fma(u, long_polynomial(u, rest), third))
    # The first number of each sum is at least as large as the second or, next to the seam, its last
    # place has the same weight.
    value, more = fast_two_sum(body.constant(first), product)
    value, most = fast_two_sum(value, higher)
    # The relative rounding error of u. The logarithmic derivative of the polynomial is about
    # 6.5 * u.
    error = product_minus(below, u, body.constant(1.0)) - below_low * u
    low = ((low + more) + higher_low) + most
    return _Scaled(value, low, u, fma(error * u, 6.5, error))


def _erfc_of_large(size: Value, square: Value, low: Value, lift: int = 0) -> Value:
    """Return `2**lift * erfc(size)` for a number from 0.58 on."""
    found = _erfcx_of_large(size)
    argument = at_least(-square, exponentials.SMALLEST)
    reduced = exponentials.reduce(argument, low=True, extra=-low)
    e, e_low = fast_two_sum(*exponentials.parts(reduced))
    scaled, scaled_low = two_product(found.value, found.u)
    scaled_low = fma(found.low, found.u, scaled_low)
    product, product_low = two_product(e, scaled)
    # The operand with the longest latency comes last.
    product_low = fma(e, fma(scaled, found.error, scaled_low), fma(e_low, scaled, product_low))
    k = reduced.k + lift if lift else reduced.k
    return exponentials.scale(product + product_low, k)


def erf(x: Value) -> Value:
    """Return the error function."""
    size = at_most(abs(x), 7.0)
    square, low = two_product(size, size)
    (found,) = choose(
        size < _SMALL,
        lambda: (_erf_of_small(size, square),),
        lambda: (1.0 - _erfc_of_large(size, square, low),),
    )
    return copy_sign(found, x)


def erfc(x: Value) -> Value:
    """Return the complementary error function `1 - erf(x)`."""
    size = at_most(abs(x), 28.0)
    square, low = two_product(size, size)

    def of_large() -> tuple[Value]:
        far = _erfc_of_large(size, square, low)
        return (select(x < 0.0, 2.0 - far, far),)

    (found,) = choose(
        size < _SMALL, lambda: (_erfc_of_small(copy_sign(size, x), square),), of_large
    )
    return found


def erfcx(x: Value) -> Value:
    """Return `exp(x**2) * erfc(x)`."""
    size = abs(x)
    # Only negative and small numbers need the exponential; large positive numbers would overflow.
    bounded = at_most(size, 27.0)
    square, low = two_product(bounded, bounded)
    argument = at_most(square, exponentials.LARGEST)
    e = exponentials.rounded(exponentials.reduce(argument, low=True, extra=low))
    near = e * _erfc_of_small(copy_sign(bounded, x), square)
    found = _erfcx_of_large(size)
    far = found.value * found.u
    far = far + fma(far, select(size < 2.0**100, found.error, 0.0), found.low * found.u)
    far = select(x < 0.0, (e + e) - far, far)
    return select(size < _SMALL, near, far)


def _horner_of_either(
    condition: Value, x: Value, yes: Sequence[float], no: Sequence[float]
) -> Value:
    """Return one of two polynomials of equal degree, depending on a condition."""
    total = select(condition, yes[-1], no[-1])
    for first, second in zip(reversed(yes[:-1]), reversed(no[:-1]), strict=True):
        total = fma(x, total, select(condition, first, second))
    return total


def _central_inverse(x: Value, low: Value | None, product: Value) -> Value:
    """Return `erfinv(x + low)` if `product = 1 - x**2` is at least `_CENTRAL`.

    It is a polynomial in the logarithm of `product` (M. B. Giles, "Approximating the erfinv
    function", 2010).
    """
    log, log_low = log_and_error(split(product))
    ratio = long_polynomial(-2.5 - log, coefficients.ERFINV)
    rest = x * negative_fma(log_low, _ERFINV_SLOPE, ratio)
    if low is not None:
        rest = fma(low, _ERFINV_MIDDLE, rest)
    # The constant's part beyond 1 has few bits: its product with x is exact, and small.
    return x + fma(x, _ERFINV_MIDDLE - 1.0, rest)


def _far_inverse(rest: Value) -> Value:
    """Return `erfcinv(rest)` for a number near zero.

    A first approximation in `w = -log(rest * (2 - rest))` is refined by one step of Halley's
    method, for the function times a power of two that keeps it normal.
    """
    parts = split_any(rest * (2.0 - rest))
    s = square_root(-log_of_split(parts.k, parts.m - 1.0))
    far = s > 6.0
    above = _horner_of_either(far, s, coefficients.ERFINV_FAR_ABOVE, coefficients.ERFINV_ABOVE)
    below = _horner_of_either(far, s, coefficients.ERFINV_FAR_BELOW, coefficients.ERFINV_BELOW)
    y = above / below
    square, low = two_product(y, y)
    error = rest * 2.0**_LIFT - _erfc_of_large(y, square, low, _LIFT)
    reduced = exponentials.reduce(-square, low=False)
    high, more = exponentials.parts(reduced)
    slope = exponentials.scale(high + more, reduced.k + _LIFT) * (2 / math.sqrt(math.pi))
    step = error / slope
    return y - step / fma(y, step, 1.0)


def erfinv(x: Value) -> Value:
    """Return the inverse of the error function."""
    product = product_minus(x, x, x.body.constant(1.0))
    # Ones are not rare, because inactive lanes hold them.
    is_one = product.equals(0.0)
    result = copy_sign(select(is_one, math.inf, _central_inverse(x, None, product)), x)
    return with_rare_lanes(
        "fuse.erfinv.far", (product >= _CENTRAL) | is_one, result, (x,), _far_erfinv
    )


def _far_erfinv(x: Value) -> Value:
    size = abs(x)
    return copy_sign(select(size < 1.0, _far_inverse(1.0 - size), math.nan), x)


def erfcinv(x: Value) -> Value:
    """Return the inverse of the complementary error function."""
    # Also exact for an argument above 1, because the difference itself is exact there.
    size, low = fast_two_sum(x.body.constant(1.0), -x)
    product = x * (2.0 - x)
    result = _central_inverse(size, low, product)
    return with_rare_lanes("fuse.erfcinv.far", product >= _CENTRAL, result, (x,), _far_erfcinv)


def _far_erfcinv(x: Value) -> Value:
    upper = x > 1.0
    rest = select(upper, 2.0 - x, x)
    result = _far_inverse(rest)
    result = select(rest > 0.0, result, math.nan)
    result = select(rest.equals(0.0), math.inf, result)
    return select(upper, -result, result)
