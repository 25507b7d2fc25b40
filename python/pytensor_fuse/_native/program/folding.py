"""Constant folding and algebraic simplification, while a program is built.

An operation is folded only if the result has the same bits as running it: ``x + 0.0`` is not, since
``-0.0 + 0.0`` is ``0.0``.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Final

from pytensor_fuse._native.program.operations import COMPARISONS, INTEGERS, RANGES

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor_fuse._native.program.builder import Builder
    from pytensor_fuse._native.program.model import Value

_Number = bool | int | float

_ARITHMETIC: Final[dict[str, Callable[..., _Number]]] = {
    name: getattr(operator, name) for name in ("add", "sub", "mul", "neg")
}
_LOGIC: Final[dict[str, Callable[..., bool]]] = {
    "xor": operator.xor,
    **{name: getattr(operator, name + "_") for name in ("and", "or", "not")},
}


def fold(builder: Builder, name: str, dtype: str, args: tuple[Value, ...]) -> Value | None:
    """Return the value that an operation folds to, or None."""
    constants = builder.program.constants
    numbers = [constants.get(arg) for arg in args]
    if name == "select":
        if args[1] == args[2]:
            return args[1]
        condition = numbers[0]
        return None if condition is None else args[1] if condition else args[2]
    n_unknown = numbers.count(None)
    if n_unknown == len(numbers):
        is_one = name in ("and", "or", "minimum", "maximum") and args[0] == args[1]
        return args[0] if is_one else None
    if not n_unknown:
        return _folded_numbers(builder, name, dtype, args, numbers)
    return _simplified(name, dtype, args, numbers)


def _folded_numbers(
    builder: Builder, name: str, dtype: str, args: tuple[Value, ...], numbers: list[_Number | None]
) -> Value | None:
    known = [number for number in numbers if number is not None]
    if name in COMPARISONS:
        return builder.constant("bool", COMPARISONS[name](*known))
    if name == "cast":
        return _folded_cast(builder, dtype, builder.dtype(args[0]), known[0])
    if dtype == "bool" and name in _LOGIC:
        return builder.constant("bool", _LOGIC[name](*known))
    if name in _ARITHMETIC and (dtype == "f64" or dtype in INTEGERS):
        number = _ARITHMETIC[name](*known)
        if dtype == "f64" or int(number) in RANGES[dtype]:
            return builder.constant(dtype, number)
    if name in ("minimum", "maximum") and dtype in INTEGERS:
        return builder.constant(dtype, min(known) if name == "minimum" else max(known))
    if name in ("floordiv", "mod") and dtype in INTEGERS and known[1] > 0:
        number = known[0] // known[1] if name == "floordiv" else known[0] % known[1]
        return builder.constant(dtype, number)
    return None


def _folded_cast(builder: Builder, dtype: str, source: str, number: _Number) -> Value | None:
    if dtype == "bool":
        return builder.constant("bool", bool(number))
    if dtype == "f64":
        return builder.constant("f64", float(number))
    if dtype == "f32" and source not in ("f64",) and abs(number) < 1 << 24:
        return builder.constant("f32", float(number))
    if dtype in INTEGERS and source not in ("f64", "f32") and int(number) in RANGES[dtype]:
        return builder.constant(dtype, int(number))
    return None


def _simplified(
    name: str, dtype: str, args: tuple[Value, ...], numbers: list[_Number | None]
) -> Value | None:
    """Simplify an operation of two arguments, one of which is a literal."""
    if len(args) != 2:
        return None
    is_integer, second = dtype in INTEGERS, numbers[1]
    if name == "sub" and second == 0 and str(second) != "-0.0":
        return args[0]
    if name in ("div", "floordiv") and second == 1 and (name == "div" or is_integer):
        return args[0]
    for number, arg, other in ((numbers[0], *args), (second, *args[::-1])):
        if (name == "add" and is_integer and number == 0) or (name == "mul" and number == 1):
            return other
        if name == "mul" and is_integer and number == 0:
            return arg
        if dtype == "bool" and name in ("and", "or") and number is not None:
            return other if number is (name == "and") else arg
    return None
