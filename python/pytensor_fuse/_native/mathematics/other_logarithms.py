"""Logarithms to the bases two and ten."""

from __future__ import annotations

import math

from pytensor_fuse._native.mathematics.arithmetic import fast_two_sum, two_product
from pytensor_fuse._native.mathematics.logarithms import (
    Split,
    finish,
    is_normal_positive,
    log_parts,
    split,
    split_any,
)
from pytensor_fuse._native.mathematics.rare import with_general_form
from pytensor_fuse._native.mathematics.text import Value, fma

# The logarithms of e and of two, each in two parts; the first part of the last one has 42 bits.
_LOG2_E = math.log2(math.e), float.fromhex("0x1.777d0ffda0d24p-56")
_LOG10_E = float.fromhex("0x1.bcb7b1526e50ep-2"), float.fromhex("0x1.95355baaafad3p-57")
_LOG10_2 = float.fromhex("0x1.34413509f7800p-2"), float.fromhex("0x1.fef311f12b358p-46")


def _scaled(high: Value, low: Value, factor: tuple[float, float]) -> tuple[Value, Value]:
    product, error = two_product(high, high.body.constant(factor[0]))
    return product, error + fma(low, factor[0], high * factor[1])


def log2(x: Value) -> Value:
    """Return the logarithm to the base two."""
    return with_general_form(
        "log2",
        is_normal_positive(x),
        _log2(split(x)),
        (x,),
        lambda y: finish(y, _log2(split_any(y))),
    )


def _log2(parts: Split) -> Value:
    high, low = _scaled(*log_parts(parts, of_mantissa=True), _LOG2_E)
    total, rest = fast_two_sum(parts.k, high)
    return total + (rest + low)


def log10(x: Value) -> Value:
    """Return the logarithm to the base ten."""
    return with_general_form(
        "log10",
        is_normal_positive(x),
        _log10(split(x)),
        (x,),
        lambda y: finish(y, _log10(split_any(y))),
    )


def _log10(parts: Split) -> Value:
    high, low = _scaled(*log_parts(parts, of_mantissa=True), _LOG10_E)
    total, rest = fast_two_sum(parts.k * _LOG10_2[0], high)
    return total + (rest + fma(parts.k, _LOG10_2[1], low))
