"""Sine, cosine and tangent of one large angle.

The argument is an integer of 53 bits times a power of two. Only 192 bits of `2 / pi` matter: the
bits before them contribute multiples of four quarter turns, and the bits after them less than
2**-137. The product has the quadrant in its top two bits, followed by the angle within it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from pytensor_fuse._native.mathematics.arithmetic import fast_two_sum, two_product
from pytensor_fuse._native.mathematics.rare import ScalarFunction, define_scalar
from pytensor_fuse._native.mathematics.target import Target
from pytensor_fuse._native.mathematics.text import Body, Value, fma, select

_TABLE = "fuse.two_over_pi"
_WORDS = 22
_HALF_PI = math.pi / 2
_HALF_PI_LOW = float.fromhex("0x1.1a62633145c07p-54")


def _two_over_pi(bits: int) -> int:
    """Return `floor(2**bits * 2 / pi)`, with pi by Machin's formula."""
    guard = bits + 64

    def inverse_arctan(n: int) -> int:
        power = (1 << guard) // n
        total, k, square = power, 1, n * n
        while power:
            power //= square
            k += 2
            total += -(power // k) if k % 4 == 3 else power // k
        return total

    pi = 4 * (4 * inverse_arctan(5) - inverse_arctan(239))
    return (1 << (guard + 1 + bits)) // pi


@functools.cache
def _table() -> str:
    # 64 zeros before the binary point, for arguments whose last bit is worth less than 1.
    number = _two_over_pi(64 * (_WORDS - 1))
    words = [(number >> (64 * (_WORDS - 1 - k))) & ((1 << 64) - 1) for k in range(_WORDS)]
    listed = ", ".join(f"i64 {word}" for word in words)
    return f"@{_TABLE} = internal unnamed_addr constant [{_WORDS} x i64] [{listed}]\n"


_REDUCE = f"""\
define internal double @fuse.far_angle(double %x, ptr %low, ptr %quadrant) cold noinline nounwind {{
  %bits = bitcast double %x to i64
  %shifted = lshr i64 %bits, 52
  %exponent = and i64 %shifted, 2047
  %fraction = and i64 %bits, 4503599627370495
  %m = or i64 %fraction, 4503599627370496
  %position = sub i64 %exponent, 1013
  %word = lshr i64 %position, 6
  %shift = and i64 %position, 63
  %p0 = getelementptr i64, ptr @{_TABLE}, i64 %word
  %p1 = getelementptr i64, ptr %p0, i64 1
  %p2 = getelementptr i64, ptr %p0, i64 2
  %p3 = getelementptr i64, ptr %p0, i64 3
  %t0 = load i64, ptr %p0, align 8
  %t1 = load i64, ptr %p1, align 8
  %t2 = load i64, ptr %p2, align 8
  %t3 = load i64, ptr %p3, align 8
  %w0 = call i64 @llvm.fshl.i64(i64 %t0, i64 %t1, i64 %shift)
  %w1 = call i64 @llvm.fshl.i64(i64 %t1, i64 %t2, i64 %shift)
  %w2 = call i64 @llvm.fshl.i64(i64 %t2, i64 %t3, i64 %shift)
  %wide_m = zext i64 %m to i128
  %wide_1 = zext i64 %w1 to i128
  %wide_2 = zext i64 %w2 to i128
  %last = mul i128 %wide_m, %wide_2
  %carried = lshr i128 %last, 64
  %middle = mul i128 %wide_m, %wide_1
  %top = mul i64 %m, %w0
  %wide_top = zext i64 %top to i128
  %top_moved = shl i128 %wide_top, 64
  %both = add i128 %middle, %carried
  %product = add i128 %both, %top_moved
  %rounded = add i128 %product, {1 << 125}
  %turn = lshr i128 %rounded, 126
  %turn_moved = shl i128 %turn, 126
  %angle = sub i128 %product, %turn_moved
  %count = trunc i128 %turn to i64
  %is_negative = icmp slt i128 %angle, 0
  %opposite = sub i128 0, %angle
  %size = select i1 %is_negative, i128 %opposite, i128 %angle
  %zeros = call i128 @llvm.ctlz.i128(i128 %size, i1 false)
  %normal = shl i128 %size, %zeros
  %high_wide = lshr i128 %normal, 75
  %high_bits = trunc i128 %high_wide to i64
  %low_wide = lshr i128 %normal, 22
  %low_long = trunc i128 %low_wide to i64
  %low_bits = and i64 %low_long, 9007199254740991
  %high = uitofp i64 %high_bits to double
  %low_double = uitofp i64 %low_bits to double
  %zeros_short = trunc i128 %zeros to i64
  %scale_exponent = sub i64 972, %zeros_short
  %scale_bits = shl i64 %scale_exponent, 52
  %sign_of_x = and i64 %bits, -9223372036854775808
  %sign_of_angle = select i1 %is_negative, i64 -9223372036854775808, i64 0
  %sign = xor i64 %sign_of_x, %sign_of_angle
  %signed_scale_bits = or i64 %scale_bits, %sign
  %scale = bitcast i64 %signed_scale_bits to double
  %turns_back = sub i64 0, %count
  %x_is_negative = icmp slt i64 %bits, 0
  %turns = select i1 %x_is_negative, i64 %turns_back, i64 %count
  %result = fmul double %high, %scale
  %low_scale = fmul double %scale, 0x3CA0000000000000
  %low_result = fmul double %low_double, %low_scale
  store double %low_result, ptr %low, align 8
  store i64 %turns, ptr %quadrant, align 8
  ret double %result
}}
"""


def scalar_function(
    name: str, target: Target, finish: Callable[[Value, Value, Value], Value]
) -> ScalarFunction:
    """Return the function that computes `finish(r, low, quadrant)` for a large angle."""
    body = Body(1, target)
    body.lines += ["  %low_place = alloca double", "  %quadrant_place = alloca i64"]
    turns = body.append(
        "f64", "call double @fuse.far_angle(double %x0, ptr %low_place, ptr %quadrant_place)"
    )
    turns_low = body.append("f64", "load double, ptr %low_place, align 8")
    quadrant = body.append("i64", "load i64, ptr %quadrant_place, align 8")
    half_pi = body.constant(_HALF_PI)
    high, low = two_product(turns, half_pi)
    low = low + fma(turns, _HALF_PI_LOW, turns_low * _HALF_PI)
    x = Value(body, "%x0", "f64")
    result = finish(*fast_two_sum(high, low), quadrant)
    result = select(abs(x) < math.inf, result, x - x)
    made = define_scalar(
        f"fuse.{name}.far", body, 1, result, ((_TABLE, _table()), ("fuse.far_angle", _REDUCE))
    )
    declared = (
        *made.declarations,
        "declare i64 @llvm.fshl.i64(i64, i64, i64)",
        "declare i128 @llvm.ctlz.i128(i128, i1 immarg)",
    )
    return ScalarFunction(made.name, made.text, declared, made.helpers)
