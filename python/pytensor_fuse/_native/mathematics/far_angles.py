"""Reduction of one large angle to its quadrant.

The argument is an integer of 53 bits times a power of two. Only 192 bits of `2 / pi` matter: the
bits before them contribute multiples of four quarter turns, and the bits after them less than
2**-137. The product has the quadrant in its top two bits, followed by the angle within it.
"""

from __future__ import annotations

import functools
import math

from pytensor_fuse._native.mathematics.arithmetic import fast_two_sum, two_product
from pytensor_fuse._native.mathematics.text import SIGN, Value, fma, select

_TABLE = "fuse.two_over_pi"
_WORDS = 22
_FRACTION = (1 << 52) - 1
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
    words = [(number >> 64 * k) & ((1 << 64) - 1) for k in range(_WORDS)]
    listed = ", ".join(f"i64 {word}" for word in words)
    return f"@{_TABLE} = internal unnamed_addr constant [{_WORDS} x i64] [{listed}]\n"


def reduce_far(x: Value) -> tuple[Value, Value, Value]:
    """Return a large scalar angle within its quadrant, in two parts, and the quadrant's number."""
    body, bits = x.body, x.bits()
    body.helpers[_TABLE] = _table()

    def cast(value: Value, operation: str, kind: str) -> Value:
        to = body.type(kind)
        return body.append(kind, f"{operation} {body.type(value.kind)} {value.name} to {to}")

    exponent, m = (bits >> 52) & 2047, (bits & _FRACTION) | (_FRACTION + 1)
    # The 192 bits, counted from the last one of the table, in the four words that contain them.
    first = (64 * _WORDS - 192 + 1013) - exponent
    place = body.append("ptr", f"getelementptr i64, ptr @{_TABLE}, i64 {(first >> 6).name}")
    words = body.append("i256", f"load i256, ptr {place.name}, align 8")
    known = cast(words >> cast(first & 63, "zext", "i256"), "trunc", "i192")
    product = cast((known * cast(m, "zext", "i192")) >> 64, "trunc", "i128")
    quarters = (product + (1 << 125)) >> 126
    angle = product - (quarters << 126)
    is_negative = angle < 0
    size = select(is_negative, 0 - angle, angle)
    body.declarations["declare i128 @llvm.ctlz.i128(i128, i1 immarg)"] = None
    zeros = body.append("i128", f"call i128 @llvm.ctlz.i128(i128 {size.name}, i1 false)")
    normal = size << zeros
    high = cast(cast(normal >> 75, "trunc", "i64"), "uitofp", "f64")
    low = cast(cast(normal >> 22, "trunc", "i64") & ((1 << 53) - 1), "uitofp", "f64")
    sign = (bits & SIGN) ^ (cast(is_negative, "zext", "i64") << 63)
    scale = (((972 - cast(zeros, "trunc", "i64")) << 52) | sign).number()
    turns, turns_low = high * scale, low * (scale * 2.0**-53)
    product_high, product_low = two_product(turns, body.constant(_HALF_PI))
    product_low = product_low + fma(turns, _HALF_PI_LOW, turns_low * _HALF_PI)
    count = cast(quarters, "trunc", "i64")
    quadrant = select(bits < 0, 0 - count, count)
    return *fast_two_sum(product_high, product_low), quadrant
