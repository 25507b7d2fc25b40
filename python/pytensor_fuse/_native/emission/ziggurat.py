"""Ziggurat method for normal numbers, inlined: the algorithm of NumPy's `random_standard_normal`.

A loop of calls of NumPy takes four times as long. As in Numba, the code calls the functions in the
generator's ``bitgen_t`` for random bits; their addresses follow the address of the state there.
Nearly all numbers take one call and two table lookups (Marsaglia and Tsang, "The ziggurat method
for generating random variables", 2000).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytensor_fuse._native.emission.types import literal
from pytensor_fuse._native.emission.ziggurat_tables import (
    BELOW,
    DENSITIES,
    ONE_BY_TAIL,
    TAIL,
    WIDTHS,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_TEXT: Final = """\
define internal double @{symbol}(i64 %generator) alwaysinline {{
entry:
  %at = inttoptr i64 %generator to ptr
  %state = load ptr, ptr %at
  %bits_at = getelementptr ptr, ptr %at, i64 1
  %bits = load ptr, ptr %bits_at
  %double_at = getelementptr ptr, ptr %at, i64 3
  %double = load ptr, ptr %double_at
  br label %again
again:
  %r = call i64 %bits(ptr %state)
  %layer = and i64 %r, 255
  %sign = and i64 %r, 256
  %rest = lshr i64 %r, 9
  %size = and i64 %rest, 4503599627370495
  %width_at = getelementptr double, ptr @{symbol}.widths, i64 %layer
  %width = load double, ptr %width_at
  %float = uitofp i64 %size to double
  %beside = fmul double %float, %width
  %opposite = fneg double %beside
  %is_negative = icmp ne i64 %sign, 0
  %x = select i1 %is_negative, double %opposite, double %beside
  %below_at = getelementptr i64, ptr @{symbol}.below, i64 %layer
  %below = load i64, ptr %below_at
  %is_in = icmp ult i64 %size, %below
  br i1 %is_in, label %found, label %edge, !prof !{{!"branch_weights", i32 100, i32 1}}
edge:
  %is_lowest = icmp eq i64 %layer, 0
  br i1 %is_lowest, label %tail, label %wedge
wedge:
  %above = sub i64 %layer, 1
  %upper_at = getelementptr double, ptr @{symbol}.densities, i64 %above
  %upper = load double, ptr %upper_at
  %lower_at = getelementptr double, ptr @{symbol}.densities, i64 %layer
  %lower = load double, ptr %lower_at
  %height = fsub double %upper, %lower
  %share = call double %double(ptr %state)
  %part = fmul double %height, %share
  %y = fadd double %part, %lower
  %half = fmul double %x, {minus_half}
  %power = fmul double %half, %x
  %density = call double @exp(double %power)
  %is_under = fcmp olt double %y, %density
  br i1 %is_under, label %found, label %again
tail:
  %u = call double %double(ptr %state)
  %minus_u = fneg double %u
  %log_u = call double @log1p(double %minus_u)
  %xx = fmul double %log_u, {minus_one_by_tail}
  %v = call double %double(ptr %state)
  %minus_v = fneg double %v
  %log_v = call double @log1p(double %minus_v)
  %yy = fneg double %log_v
  %both = fadd double %yy, %yy
  %square = fmul double %xx, %xx
  %is_under_tail = fcmp ogt double %both, %square
  br i1 %is_under_tail, label %end, label %tail
end:
  %far = fadd double %xx, {tail}
  %minus_far = fneg double %far
  %side = and i64 %size, 256
  %is_left = icmp ne i64 %side, 0
  %out = select i1 %is_left, double %minus_far, double %far
  br label %found
found:
  %drawn = phi double [ %x, %again ], [ %x, %wedge ], [ %out, %end ]
  ret double %drawn
}}"""


def ziggurat(symbol: str) -> str:
    """Return the definition of a function that draws a normal number from a generator."""
    function = _TEXT.format(
        symbol=symbol,
        minus_half=literal("f64", -0.5),
        minus_one_by_tail=literal("f64", -ONE_BY_TAIL),
        tail=literal("f64", TAIL),
    )
    return "\n".join(
        [
            _table(f"{symbol}.below", "i64", [str(one) for one in BELOW]),
            _table(f"{symbol}.widths", "double", [f"0x{one:016X}" for one in WIDTHS]),
            _table(f"{symbol}.densities", "double", [f"0x{one:016X}" for one in DENSITIES]),
            function,
        ]
    )


def _table(symbol: str, kind: str, entries: Sequence[str]) -> str:
    listed = ", ".join([f"{kind} {one}" for one in entries])
    return f"@{symbol} = internal constant [{len(entries)} x {kind}] [{listed}]"
