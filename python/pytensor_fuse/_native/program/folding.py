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
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
}


def fold(builder: Builder, name: str, dtype: str, args: tuple[Value, ...]) -> Value | None:
    """Return the value that an operation folds to, or None."""
    constants = builder.program.constants
    numbers = [constants.get(arg) for arg in args]
    n_unknown = numbers.count(None)
    if n_unknown == len(numbers):
        if name in ("and", "or", "minimum", "maximum") and args[0] == args[1]:
            return args[0]
        if name == "select" and args[1] == args[2]:
            return args[1]
        return None
    if name == "select":
        condition = numbers[0]
        if condition is None:
            return args[1] if args[1] == args[2] else None
        return args[1] if condition else args[2]
    if not n_unknown:
        return _folded_numbers(builder, name, dtype, args, numbers)
    return _simplified(builder, name, dtype, args, numbers)


def _folded_numbers(
    builder: Builder, name: str, dtype: str, args: tuple[Value, ...], numbers: list[_Number | None]
) -> Value | None:
    known = [number for number in numbers if number is not None]
    if name in COMPARISONS:
        return builder.constant("bool", COMPARISONS[name](*known))
    if name == "cast":
        return _folded_cast(builder, dtype, builder.dtype(args[0]), known[0])
    if dtype == "bool" and name in ("and", "or", "xor", "not"):
        first = bool(known[0])
        second = bool(known[-1])
        result = {
            "and": first and second,
            "or": first or second,
            "xor": first != second,
            "not": not first,
        }[name]
        return builder.constant("bool", result)
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
    builder: Builder, name: str, dtype: str, args: tuple[Value, ...], numbers: list[_Number | None]
) -> Value | None:
    """Simplify an operation of two arguments, one of which is a literal."""
    if len(args) != 2:
        return None
    second = numbers[1]
    if name == "add" and dtype in INTEGERS:
        if numbers[0] == 0:
            return args[1]
        if second == 0:
            return args[0]
    elif name == "sub" and second == 0 and str(second) != "-0.0":
        return args[0]
    elif name == "mul":
        for this, other in ((0, 1), (1, 0)):
            if numbers[this] == 1:
                return args[other]
            if numbers[this] == 0 and dtype in INTEGERS:
                return args[this]
    elif name in ("div", "floordiv") and second == 1 and (name == "div" or dtype in INTEGERS):
        return args[0]
    elif dtype == "bool" and name in ("and", "or"):
        for this, other in ((0, 1), (1, 0)):
            if numbers[this] is (name == "and"):
                return args[other]
            if numbers[this] is (name == "or"):
                return args[this]
    return None
