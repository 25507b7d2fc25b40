"""Sine, cosine and tangent.

The argument is `k * pi / 2 + r` with an integer `k` and `abs(r) <= pi / 4`, where `r` has two parts
(W. J. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980, chapter 8; fdlibm).
Arguments beyond `NEAR` are reduced one by one, with as many bits of `2 / pi` as necessary
(M. H. Payne and R. N. Hanek, "Radian reduction for trigonometric functions", 1983).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from pytensor_fuse._native.mathematics import coefficients
from pytensor_fuse._native.mathematics.arithmetic import (
    fast_two_sum,
    horner,
    negative_fma,
    product_minus,
    two_product,
    two_sum,
)
from pytensor_fuse._native.mathematics.far_angles import reduce_far
from pytensor_fuse._native.mathematics.rare import with_rare_lanes
from pytensor_fuse._native.mathematics.text import SIGN, Value, fma, round_to_integer, select

# Up to this argument, the integer has 20 bits.
NEAR = 2.0**20

# pi / 2 in parts of 53 bits, and in parts of 33 bits followed by one of 53.
_PARTS = tuple(
    map(float.fromhex, ("0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54", "-0x1.f1976b7ed8fbcp-110"))
)
_SHORT_PARTS = tuple(
    map(
        float.fromhex,
        (
            "0x1.921fb54400000p+0",
            "0x1.0b4611a600000p-34",
            "0x1.3198a2e000000p-69",
            "0x1.b839a252049c1p-104",
        ),
    )
)


def reduce(x: Value) -> tuple[Value, Value, Value]:
    """Return `r` in two parts, and bits with `k` at their low end, for arguments up to `NEAR`."""
    count, bits = round_to_integer(x * (2 / math.pi))
    body = x.body
    if body.target.fma:
        # The first difference is exact, as it has no bits below those of its terms.
        rest = negative_fma(count, _PARTS[0], x)
        product, product_low = two_product(count, body.constant(_PARTS[1]))
        r, low = two_sum(rest, -product)
        low = negative_fma(count, _PARTS[2], low - product_low)
    else:
        rest = x - count * _SHORT_PARTS[0]
        r, low = two_sum(rest, -(count * _SHORT_PARTS[1]))
        r, more = two_sum(r, -(count * _SHORT_PARTS[2]))
        low = low + more - count * _SHORT_PARTS[3]
    r, low = fast_two_sum(r, low)
    return r, low, bits


def sine_parts(r: Value, low: Value, z: Value) -> tuple[Value, Value]:
    """Return the sine of a reduced argument with the square `z`, in two parts."""
    cube = r * z
    tail = fma(z, -0.5, 1.0) * low
    return r, fma(cube, horner(z, coefficients.SINE), tail)


def sine_kernel(r: Value, low: Value, z: Value) -> Value:
    """Return the sine of a reduced argument with the square `z`."""
    high, tail = sine_parts(r, low, z)
    return high + tail


def cosine_parts(r: Value, low: Value, z: Value) -> tuple[Value, Value]:
    """Return the cosine of a reduced argument with the square `z`, in two parts."""
    half = z * 0.5
    high = 1.0 - half
    rest = (1.0 - high) - half
    return high, fma(z * z, horner(z, coefficients.COSINE), negative_fma(r, low, rest))


def cosine_kernel(r: Value, low: Value, z: Value) -> Value:
    """Return the cosine of a reduced argument with the square `z`."""
    high, tail = cosine_parts(r, low, z)
    return high + tail


def _flip(x: Value, bits: Value) -> Value:
    """Return `x` with its sign changed where the second lowest bit is set."""
    return (x.bits() ^ ((bits << 62) & SIGN)).number()


def _is_odd(bits: Value) -> Value:
    return (bits & 1).differs(0)


def sine_of(r: Value, low: Value, bits: Value) -> Value:
    """Return the sine of a reduced argument, with its quadrant in the low bits."""
    z = r * r
    size = select(_is_odd(bits), cosine_kernel(r, low, z), sine_kernel(r, low, z))
    return _flip(size, bits)


def cosine_of(r: Value, low: Value, bits: Value) -> Value:
    """Return the cosine of a reduced argument, with its quadrant in the low bits."""
    return sine_of(r, low, bits + 1)


def tangent_of(r: Value, low: Value, bits: Value) -> Value:
    """Return the tangent of a reduced argument, with its quadrant in the low bits."""
    z = r * r
    sine, sine_low = fast_two_sum(*sine_parts(r, low, z))
    cosine, cosine_low = fast_two_sum(*cosine_parts(r, low, z))
    odd = _is_odd(bits)
    above, above_low = select(odd, -cosine, sine), select(odd, -cosine_low, sine_low)
    below, below_low = select(odd, sine, cosine), select(odd, sine_low, cosine_low)
    inverse = 1.0 / below
    ratio = above * inverse
    rest = product_minus(ratio, below, above) + negative_fma(ratio, below_low, above_low)
    return fma(rest, inverse, ratio)


def _circular(
    name: str, finish: Callable[[Value, Value, Value], Value]
) -> Callable[[Value], Value]:
    def write(x: Value) -> Value:
        near = finish(*reduce(x))
        # The sums would lose the sign of a zero argument.
        if name != "cos":
            near = select(abs(x) < 2.0**-27, x, near)

        def far(angle: Value) -> Value:
            # Infinities and NaN give NaN.
            return select(abs(angle) < math.inf, finish(*reduce_far(angle)), angle - angle)

        return with_rare_lanes(f"fuse.{name}.far", abs(x) <= NEAR, near, (x,), far)

    write.__doc__ = f"Return `{name}(x)`, for an angle in radians."
    return write


sin = _circular("sin", sine_of)
cos = _circular("cos", cosine_of)
tan = _circular("tan", tangent_of)
