"""Logarithms to the bases 2 and 10: the logarithm in two parts, times that of e to the base.

The logarithm has 66 bits, so the result is almost always correctly rounded, and exact results are
exact. Scaled by a single number, the natural logarithm would be off by more than one unit of the
last place.
"""

from __future__ import annotations

import math

from pytensor_fuse._native.mathematics.arithmetic import two_product
from pytensor_fuse._native.mathematics.logarithms import finish, is_normal_positive
from pytensor_fuse._native.mathematics.powers import accurate_log, split_for_power
from pytensor_fuse._native.mathematics.rare import with_general_form
from pytensor_fuse._native.mathematics.text import Value, fma

# The logarithms of e, each in two parts.
_LOG2_E = math.log2(math.e), float.fromhex("0x1.777d0ffda0d24p-56")
_LOG10_E = float.fromhex("0x1.bcb7b1526e50ep-2"), float.fromhex("0x1.95355baaafad3p-57")


def log2(x: Value) -> Value:
    """Return the logarithm to the base 2."""
    return _with_general_form("log2", _LOG2_E, x)


def log10(x: Value) -> Value:
    """Return the logarithm to the base 10."""
    return _with_general_form("log10", _LOG10_E, x)


def _with_general_form(name: str, of_e: tuple[float, float], x: Value) -> Value:
    """Return a logarithm for all numbers, with a rare path for all but normal positive ones."""

    def scaled(y: Value, *, is_normal: bool) -> Value:
        high, low = accurate_log(split_for_power(y, is_normal=is_normal))
        product, product_low = two_product(high, y.body.constant(of_e[0]))
        return product + fma(low, of_e[0], fma(high, of_e[1], product_low))

    return with_general_form(
        name,
        is_normal_positive(x),
        scaled(x, is_normal=True),
        (x,),
        lambda y: finish(y, scaled(y, is_normal=False)),
    )
