"""Reference evaluation of each operation on NumPy scalars: slow and obvious.

Integers are computed as Python integers and wrapped to their width at the end; floats are NumPy's.
Mathematical functions are computed in double precision and rounded to the dtype.
"""

from __future__ import annotations

import math
import operator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from pytensor_fuse._native.program.model import NAMES
from pytensor_fuse._native.program.operations import (
    COMPARISONS,
    FLOATS,
    OF_POSITIVE,
    POSITIVE,
    POWER_BY_LOG,
    POWER_LOG,
    POWER_LOG_LOW,
)

if TYPE_CHECKING:
    from collections.abc import Callable

Scalar = np.generic

# `scipy.special` has no type stubs.
special: Final[Any] = import_module("scipy.special")

NUMPY_DTYPES: Final[dict[str, type[Any]]] = {
    dtype: np.dtype(name).type for dtype, name in NAMES.items()
}


def evaluate(name: str, dtype: str, args: list[Scalar]) -> Scalar:
    """Return the result of an operation.

    Parameters
    ----------
    name, dtype
        The operation, and the dtype of its result.
    args
        Its arguments.

    Returns
    -------
    np.generic
        The result, a scalar of the dtype.
    """
    of = NUMPY_DTYPES[dtype]
    with np.errstate(all="ignore"):
        if name == "cast":
            return cast_scalar(args[0], dtype)
        if name == "select":
            return args[1] if args[0] else args[2]
        if name in COMPARISONS:
            return cast("Scalar", np.bool_(COMPARISONS[name](args[0].item(), args[1].item())))
        if name in _MATHEMATICS:
            return cast("Scalar", of(_MATHEMATICS[name](*[np.float64(arg) for arg in args])))
        if dtype in FLOATS:
            return cast("Scalar", of(_FLOATS[name](*args)))
        numbers = [int(arg) for arg in args]
        if dtype == "bool":
            return cast("Scalar", np.bool_(_INTEGERS[name](*numbers) & 1))
        bits = 8 * np.dtype(of).itemsize
        if name in ("shl", "shr"):
            return integer(_shifted(name, numbers[0], numbers[1], bits), dtype)
        return integer(_INTEGERS[name](*numbers), dtype)


def integer(number: int, dtype: str) -> Scalar:
    """Return the low bits of a number, as an integer of a dtype."""
    bits = int(dtype[1:])
    number &= (1 << bits) - 1
    if dtype[0] == "i" and number >> (bits - 1):
        number -= 1 << bits
    return cast("Scalar", NUMPY_DTYPES[dtype](number))


def cast_scalar(value: Scalar, dtype: str) -> Scalar:
    """Return a number converted to a dtype."""
    of = NUMPY_DTYPES[dtype]
    if dtype == "bool":
        return cast("Scalar", np.bool_(value.item() != 0))
    if dtype in FLOATS:
        # NumPy's conversion rounds once; a detour through a Python number might round twice.
        with np.errstate(all="ignore"):
            return cast("Scalar", value.astype(of))
    if isinstance(value, np.floating):
        return integer(_truncated(float(value), dtype), dtype)
    return integer(int(value), dtype)


def _truncated(number: float, dtype: str) -> int:
    """Return an integer whose low bits are those of a float converted to an integer dtype."""
    if dtype == "u64" and number >= 2.0**63:
        return _converted(number - 2.0**63, 64) + (1 << 63)
    return _converted(number, 64 if dtype in ("i64", "u64", "u32") else 32)


def _converted(number: float, bits: int) -> int:
    """Truncate a float to a signed integer, as the instruction ``cvttsd2si`` does."""
    least = -(1 << bits - 1)
    if not math.isfinite(number) or not least <= math.trunc(number) < -least:
        return least
    return math.trunc(number)


def _shifted(name: str, number: int, by: int, bits: int) -> int:
    if 0 <= by < bits:
        return number << by if name == "shl" else number >> by
    return -1 if name == "shr" and number < 0 else 0


def _minimum(one: Any, other: Any) -> Any:
    return one if one <= other or np.isnan(one) else other


def _maximum(one: Any, other: Any) -> Any:
    return one if one >= other or np.isnan(one) else other


_FLOATS: Final[dict[str, Callable[..., Any]]] = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "neg")},
    **{name: getattr(np, name) for name in ("abs", "sqrt", "floor", "ceil", "trunc", "rint")},
    "div": operator.truediv,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "minimum": _minimum,
    "maximum": _maximum,
}

_INTEGERS: Final[dict[str, Callable[..., int]]] = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "neg", "xor")},
    "floordiv": lambda one, other: one // other if other else 0,
    "mod": lambda one, other: one % other if other else 0,
    "abs": abs,
    "minimum": min,
    "maximum": max,
    "and": operator.and_,
    "or": operator.or_,
    "not": operator.invert,
}


def _log1mexp(x: Any) -> Any:
    return np.log(-np.expm1(x)) if x > -math.log(2) else np.log1p(-np.exp(x))


def _power(x: Any, y: Any) -> Any:
    # NumPy computes a power with a scalar exponent by square roots and products, whose last bits
    # differ.
    return np.power(np.array([x, x]), np.array([y, 1.0]))[0]


_OF_NUMPY: Final = (
    "exp exp2 expm1 log log2 log10 log1p tanh sinh cosh sin cos tan arctan arcsin arccos arctanh "
    "arcsinh arccosh arctan2 hypot"
)
_OF_SCIPY: Final = (
    "erf erfc erfcx erfinv erfcinv ndtri_exp owens_t gammaln gamma digamma j0 j1 i0 i1 i0e i1e jv "
    "iv ive kve kv gammainc gammaincc gammaincinv gammainccinv betainc betaincinv hyp2f1"
)
_MATHEMATICS: Final[dict[str, Callable[..., Any]]] = {
    **{name: getattr(np, name) for name in _OF_NUMPY.split()},
    **{name: getattr(special, name) for name in _OF_SCIPY.split()},
    "pow": _power,
    "log1mexp": _log1mexp,
    "softplus": lambda x: np.logaddexp(0.0, x),
    "sigmoid": special.expit,
    "trigamma": lambda x: special.polygamma(1, x),
}
_MATHEMATICS.update({name + POSITIVE: _MATHEMATICS[name] for name in OF_POSITIVE})
_MATHEMATICS.update(
    {POWER_LOG: np.log, POWER_LOG_LOW: np.zeros_like, POWER_BY_LOG: lambda x, y, *_: _power(x, y)}
)
