"""Sums and products with their rounding errors, and polynomials.

Sources: T. J. Dekker, "A floating-point technique for extending the available precision", 1971;
D. E. Knuth, "The Art of Computer Programming", volume 2, 4.2.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytensor_fuse._native.mathematics.text import Operand, Value, fma

# The factor that splits a double into halves of 26 bits.
_SPLITTER = 2.0**27 + 1


def fast_two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """Return the rounded sum and its error, for `a` zero or not smaller than `b` in magnitude."""
    total = a + b
    return total, b - (total - a)


def two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """Return the rounded sum and its error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _split(a: Value) -> tuple[Value, Value]:
    scaled = a * _SPLITTER
    high = scaled - (scaled - a)
    return high, a - high


def two_product(a: Value, b: Value) -> tuple[Value, Value]:
    """Return the rounded product and its error, unless something overflows or underflows."""
    product = a * b
    if a.body.target.fma:
        return product, fma(a, b, -product)
    a_high, a_low = _split(a)
    b_high, b_low = (a_high, a_low) if a is b else _split(b)
    error = a_high * b_high - product
    error = error + a_high * b_low + a_low * b_high
    return product, error + a_low * b_low


def product_minus(a: Value, b: Value, c: Value) -> Value:
    """Return `c - a * b` with an exact product, for a `c` close to the product."""
    if a.body.target.fma:
        return fma(-a, b, c)
    product, error = two_product(a, b)
    return (c - product) - error


def negative_fma(a: Value, b: Operand, c: Operand) -> Value:
    """Return `c - a * b`, rounded once if the processor has FMA, twice otherwise."""
    if a.body.target.fma:
        return fma(-a, b, c)
    return c - a * b


def horner(x: Value, coefficients: Sequence[float]) -> Value:
    """Return the polynomial with these coefficients, in ascending order, in one chain."""
    total = x.body.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = fma(x, total, coefficient)
    return total


def polynomial(x: Value, square: Value, coefficients: Sequence[float]) -> Value:
    """Return the polynomial with these coefficients in two chains: even and odd powers."""
    return fma(x, horner(square, coefficients[1::2]), horner(square, coefficients[::2]))


def long_polynomial(x: Value, coefficients: Sequence[float], square: Value | None = None) -> Value:
    """Return the polynomial with these coefficients in four chains, which run in parallel."""
    if square is None:
        square = x * x
    fourth = square * square
    low = fma(x, horner(fourth, coefficients[1::4]), horner(fourth, coefficients[::4]))
    high = fma(x, horner(fourth, coefficients[3::4]), horner(fourth, coefficients[2::4]))
    return fma(square, high, low)
