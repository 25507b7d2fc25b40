"""Logarithms to the bases 2 and 10, by the table of logarithms that powers use.

After the table lookup, the remaining argument is so small that its square needs no second part.
With a division, as in the natural logarithm, errors exceeded one unit of the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pytensor_fuse._native.mathematics import coefficients
from pytensor_fuse._native.mathematics.arithmetic import fast_two_sum, polynomial, two_product
from pytensor_fuse._native.mathematics.logarithms import Split, finish, is_normal_positive
from pytensor_fuse._native.mathematics.powers import interval_of, split_for_power
from pytensor_fuse._native.mathematics.rare import with_general_form
from pytensor_fuse._native.mathematics.text import Value, fma, look_up

# Logarithms of e and of 2, each in two parts; the first part of `LOG10_2` has 42 bits.
_LOG2_E = math.log2(math.e), float.fromhex("0x1.777d0ffda0d24p-56")
_LOG10_E = float.fromhex("0x1.bcb7b1526e50ep-2"), float.fromhex("0x1.95355baaafad3p-57")
LOG10_2 = float.fromhex("0x1.34413509f7800p-2"), float.fromhex("0x1.fef311f12b358p-46")


def log2(x: Value) -> Value:
    """Return the logarithm to the base 2."""
    return _with_any("log2", _log2, x)


def log10(x: Value) -> Value:
    """Return the logarithm to the base 10."""
    return _with_any("log10", _log10, x)


def _with_any(name: str, of_split: Callable[[Split], Value], x: Value) -> Value:
    """Return a logarithm for all numbers, with a rare path for all but normal positive ones."""
    return with_general_form(
        name,
        is_normal_positive(x),
        of_split(split_for_power(x)),
        (x,),
        lambda y: finish(y, of_split(split_for_power(y, is_normal=False))),
    )


def _log2(parts: Split) -> Value:
    tables = coefficients.POWER_LOGS2, coefficients.POWER_LOGS2_LOW
    return _by_table(parts, (1.0, 0.0), _LOG2_E, "2", tables)


def _log10(parts: Split) -> Value:
    tables = coefficients.POWER_LOGS10, coefficients.POWER_LOGS10_LOW
    return _by_table(parts, LOG10_2, _LOG10_E, "10", tables)


def _by_table(
    parts: Split,
    of_two: tuple[float, float],
    of_e: tuple[float, float],
    base: str,
    tables: tuple[Sequence[float], Sequence[float]],
) -> Value:
    """Return the logarithm to a base, given the logarithms of 2 and e to that base."""
    k = parts.k
    interval, r = interval_of(parts)
    middle = look_up(interval, f"power_logs{base}", tables[0])
    middle_low = look_up(interval, f"power_logs{base}_low", tables[1])
    square = r * r
    # log(1 + r) - r, at most 2**-8 times r.
    rest = square * fma(r, polynomial(r, square, coefficients.POWER), -0.5)
    scaled, scaled_low = two_product(r, r.body.constant(of_e[0]))
    # The first operand of the sum is exact.
    total, first = fast_two_sum(fma(k, of_two[0], middle), scaled)
    low = fma(rest, of_e[0], fma(r, of_e[1], scaled_low))
    return total + (low + (fma(k, of_two[1], middle_low) + first))
