"""Logarithms to the bases two and ten."""

from __future__ import annotations

import math
from collections.abc import Callable

from pytensor_fuse._native.mathematics.arithmetic import fast_two_sum, two_product
from pytensor_fuse._native.mathematics.logarithms import (
    Split,
    finish,
    is_normal_positive,
    log_less_argument,
    split,
    split_any,
)
from pytensor_fuse._native.mathematics.rare import with_general_form
from pytensor_fuse._native.mathematics.text import Value, fma

# The logarithms of e and of two, each in two parts; the first part of the last one has 42 bits.
_LOG2_E = math.log2(math.e), float.fromhex("0x1.777d0ffda0d24p-56")
_LOG10_E = float.fromhex("0x1.bcb7b1526e50ep-2"), float.fromhex("0x1.95355baaafad3p-57")
_LOG10_2 = float.fromhex("0x1.34413509f7800p-2"), float.fromhex("0x1.fef311f12b358p-46")


def log2(x: Value) -> Value:
    """Return the logarithm to the base two."""
    return _with_any("log2", _log2, x)


def log10(x: Value) -> Value:
    """Return the logarithm to the base ten."""
    return _with_any("log10", _log10, x)


def _with_any(name: str, of_split: Callable[[Split], Value], x: Value) -> Value:
    """Return a logarithm, also of what is no normal positive number."""
    return with_general_form(
        name,
        is_normal_positive(x),
        of_split(split(x)),
        (x,),
        lambda y: finish(y, of_split(split_any(y))),
    )


def _log2(parts: Split) -> Value:
    high, low = _scaled_log(parts.m - 1.0, _LOG2_E)
    total, rest = fast_two_sum(parts.k, high)
    return total + (rest + low)


def _log10(parts: Split) -> Value:
    high, low = _scaled_log(parts.m - 1.0, _LOG10_E)
    total, rest = fast_two_sum(parts.k * _LOG10_2[0], high)
    return total + (rest + fma(parts.k, _LOG10_2[1], low))


def _scaled_log(f: Value, factor: tuple[float, float]) -> tuple[Value, Value]:
    """Return `log(1 + f)` times a factor in two parts: that of `f` itself, and the rest."""
    high, low = two_product(f, f.body.constant(factor[0]))
    return high, fma(log_less_argument(f), factor[0], fma(f, factor[1], low))
