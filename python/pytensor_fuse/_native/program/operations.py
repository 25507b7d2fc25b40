"""Operations on values: their arities, operand dtypes and result dtypes.

All are total: none traps, whatever its arguments, so an operation may run where its result is not
needed. ``floordiv`` and ``mod`` of integers give 0 for a divisor of 0, as NumPy's do, and shifts by
at least the width of the dtype (or by less than 0) give 0, or -1 for ``shr`` of a negative number.

Integers wrap; so do ``abs`` and ``neg`` of the least integer, and its ``floordiv`` by -1.
``floordiv`` and ``mod`` of floats agree with NumPy's. ``minimum`` and ``maximum`` propagate NaN;
for two zeros of different signs they may return either. ``rint`` rounds halves to even. Comparisons
with NaN are false, except for ``ne``.

Casts to ``bool`` map 0 to false and everything else, also NaN, to true. Integers keep their low
bits. Conversions to floats round halves to even. Conversions from floats to integers truncate, as
x86's instructions do: NaN and numbers beyond a signed dtype become its least number. ``i64`` and
``i32`` have such an instruction; ``i16``, ``i8``, ``u16`` and ``u8`` take the low bits of the
``i32``, and ``u32`` those of the ``i64``. ``u64`` takes the bits of the ``i64`` below 2**63; from
there on, it is the ``i64`` of the number less 2**63, with the highest bit flipped.

``gammaln_of_positive`` and the like equal ``gammaln`` for arguments whose sign bit is clear, and
for NaN; for other arguments their result is unspecified. ``pow_by_log(x, y, a, b)`` is ``pow(x,
y)`` if ``a`` is ``pow_log(x)`` and ``b`` is ``pow_log_low(x)``; the results of these two are
unspecified.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

FLOATS: Final = ("f64", "f32")
SIGNED: Final = ("i64", "i32", "i16", "i8")
UNSIGNED: Final = ("u64", "u32", "u16", "u8")
INTEGERS: Final = SIGNED + UNSIGNED
BITS: Final = (*INTEGERS, "bool")
NUMBERS: Final = FLOATS + INTEGERS
ALL: Final = (*NUMBERS, "bool")


_BITS_OF: Final = {dtype: int(dtype[1:]) for dtype in INTEGERS}
# The integers of each dtype.
RANGES: Final = {
    **{dtype: range(-(1 << _BITS_OF[dtype] - 1), 1 << _BITS_OF[dtype] - 1) for dtype in SIGNED},
    **{dtype: range(1 << _BITS_OF[dtype]) for dtype in UNSIGNED},
}


class Operation(NamedTuple):
    """The signature of an operation.

    Attributes
    ----------
    arity
        The number of arguments.
    takes
        The dtypes that arguments may have. All arguments have the same dtype, except that the first
        argument of ``select`` is a ``bool``.
    gives
        The dtype of the result: ``same`` as the arguments', a dtype by name, or ``any`` for casts.
    """

    arity: int
    takes: tuple[str, ...]
    gives: str = "same"


_ARITHMETIC: Final = {
    **{name: Operation(2, NUMBERS) for name in ("add", "sub", "mul")},
    "div": Operation(2, FLOATS),
    **{name: Operation(2, NUMBERS) for name in ("floordiv", "mod")},
    **{name: Operation(1, NUMBERS) for name in ("neg", "abs")},
    **{name: Operation(2, ALL) for name in ("minimum", "maximum")},
    **{name: Operation(2, BITS) for name in ("and", "or", "xor")},
    "not": Operation(1, BITS),
    **{name: Operation(2, INTEGERS) for name in ("shl", "shr")},
}

COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}

_SELECTION: Final = {"select": Operation(3, ALL), "cast": Operation(1, ALL, "any")}

_ROUNDING: Final = {
    name: Operation(1, FLOATS) for name in ("sqrt", "floor", "ceil", "trunc", "rint")
}

# Each of these is in the library of vector functions, the C library or SciPy.
_OF_ONE: Final = (
    "exp exp2 expm1 log log2 log10 log1p log1mexp softplus sigmoid tanh sinh cosh sin cos tan "
    "arctan arcsin arccos arctanh arcsinh arccosh erf erfc erfcx erfinv erfcinv gammaln gamma "
    "digamma trigamma ndtri_exp j0 j1 i0 i1 i0e i1e"
)
_OF_TWO: Final = (
    "pow arctan2 hypot owens_t jv iv ive kve kv gammainc gammaincc gammaincinv gammainccinv"
)
MATHEMATICS: Final = {
    **{name: Operation(1, FLOATS) for name in _OF_ONE.split()},
    **{name: Operation(2, FLOATS) for name in _OF_TWO.split()},
    **{name: Operation(3, FLOATS) for name in ("betainc", "betaincinv")},
    "hyp2f1": Operation(4, FLOATS),
}

# Functions with forms for nonnegative arguments, and the suffix of these forms' names.
OF_POSITIVE: Final = ("gammaln", "gamma", "digamma", "trigamma")
POSITIVE: Final = "_of_positive"
# Powers of a shared base: the high and low parts of its logarithm, and the power.
POWER_LOG: Final = "pow_log"
POWER_LOG_LOW: Final = "pow_log_low"
POWER_BY_LOG: Final = "pow_by_log"
FORMS: Final = {
    **{name + POSITIVE: Operation(1, FLOATS) for name in OF_POSITIVE},
    POWER_LOG: Operation(1, ("f64",)),
    POWER_LOG_LOW: Operation(1, ("f64",)),
    POWER_BY_LOG: Operation(4, ("f64",)),
}

OPERATIONS: Final[dict[str, Operation]] = {
    **_ARITHMETIC,
    **{name: Operation(2, ALL, "bool") for name in COMPARISONS},
    **_SELECTION,
    **_ROUNDING,
    **MATHEMATICS,
    **FORMS,
}


def result_dtype(name: str, dtypes: tuple[str, ...]) -> str:
    """Return the dtype of an operation's result (not for ``cast``)."""
    gives = OPERATIONS[name].gives
    return dtypes[-1] if gives == "same" else gives


def identity(combiner: str, dtype: str) -> bool | int | float:
    """Return the identity element of a combiner, exact to the bit.

    For sums of floats it is -0.0: adding 0.0 changes the sign of -0.0.
    """
    if combiner == "add":
        return -0.0 if dtype[0] == "f" else 0
    if combiner in ("or", "xor"):
        return 0
    if combiner == "mul":
        return 1
    if combiner == "and":
        return True if dtype == "bool" else -1 if dtype[0] == "i" else RANGES[dtype][-1]
    if dtype[0] == "f":
        return -math.inf if combiner == "maximum" else math.inf
    if dtype == "bool":
        return combiner == "minimum"
    numbers = RANGES[dtype]
    return numbers[0] if combiner == "maximum" else numbers[-1]
