"""Emission of single operations, on scalars or vectors, which differ only in their types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytensor_fuse._native.emission.types import BITS, REGISTER, literal, suffix, vector
from pytensor_fuse._native.program.operations import (
    COMPARISONS,
    MATHEMATICS,
    POSITIVE,
    POWER_BY_LOG,
    POWER_LOG,
    POWER_LOG_LOW,
)

if TYPE_CHECKING:
    from pytensor_fuse._native.emission.writer import Writer

_FLOAT_ARITHMETIC: Final = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INTEGER_ARITHMETIC: Final = ("add", "sub", "mul", "and", "or", "xor")
_FLOAT_COMPARISONS: Final = {name: "une" if name == "ne" else f"o{name}" for name in COMPARISONS}
_INTRINSICS: Final = ("sqrt", "floor", "ceil", "trunc", "rint")


def splat(dtype: str, number: bool | int | float, lanes: int) -> str:
    """Return a literal, repeated for each lane."""
    text = literal(dtype, number)
    if lanes == 1:
        return text
    if number == 0 and text in ("0", "false", "0x0000000000000000"):
        return "zeroinitializer"
    one = f"{REGISTER[dtype]} {text}"
    return "<" + ", ".join([one] * lanes) + ">"


def emit_operation(
    w: Writer, name: str, dtype: str, given: str, args: list[str], lanes: int
) -> str:
    """Write one operation.

    Parameters
    ----------
    w
        The writer.
    name
        One of `pytensor_fuse._native.program.operations.OPERATIONS`.
    dtype
        The dtype of the result.
    given
        The dtype of the last argument.
    args
        The operands of the arguments.
    lanes
        The number of lanes; 1 for scalars.

    Returns
    -------
    str
        The operand of the result.
    """
    kind = vector(REGISTER[given], lanes)
    is_float = given[0] == "f"
    if name in _FLOAT_ARITHMETIC and is_float:
        return w.let(f"{_FLOAT_ARITHMETIC[name]} {kind} {args[0]}, {args[1]}")
    if name in _INTEGER_ARITHMETIC and not is_float:
        return w.let(f"{name} {kind} {args[0]}, {args[1]}")
    if name in _FLOAT_COMPARISONS:
        return w.let(f"{_comparison(name, given)} {kind} {args[0]}, {args[1]}")
    if name == "select":
        bits = vector("i1", lanes)
        return w.let(f"select {bits} {args[0]}, {kind} {args[1]}, {kind} {args[2]}")
    if name == "cast":
        return _cast(w, dtype, given, args[0], lanes)
    if name in ("minimum", "maximum"):
        return _extremum(w, name, given, args, lanes)
    if name in _INTRINSICS:
        return w.intrinsic(f"llvm.{name}", kind, suffix(REGISTER[given], lanes), args)
    if name == "neg":
        if is_float:
            return w.let(f"fneg {kind} {args[0]}")
        return w.let(f"sub {kind} {splat(given, 0, lanes)}, {args[0]}")
    if name == "not":
        ones = splat(given, True, lanes) if given == "bool" else splat(given, -1, lanes)
        return w.let(f"xor {kind} {args[0]}, {ones}")
    if name == "abs":
        return _abs(w, given, args[0], lanes)
    if name in ("shl", "shr"):
        return _shift(w, name, given, args, lanes)
    if name in ("floordiv", "mod"):
        if is_float:
            return w.call_of(name, given, args, lanes)
        return _integer_division(w, name, given, args, lanes)
    if name in (POWER_LOG, POWER_LOG_LOW):
        high, low = w.pair_of(POWER_LOG, given, args, lanes)
        return high if name == POWER_LOG else low
    if name in MATHEMATICS or name.endswith(POSITIVE) or name == POWER_BY_LOG:
        return w.call_of(name, given, args, lanes)
    raise AssertionError(f"no instructions for {name}")


def combined(w: Writer, combiner: str, dtype: str, args: list[str], lanes: int) -> str:
    """Write the instructions of a combiner; return the operand of the result."""
    return emit_operation(w, combiner, dtype, dtype, args, lanes)


def _comparison(name: str, dtype: str) -> str:
    if dtype[0] == "f":
        return f"fcmp {_FLOAT_COMPARISONS[name]}"
    if name in ("eq", "ne"):
        return f"icmp {name}"
    return f"icmp {'s' if dtype[0] == 'i' else 'u'}{name}"


def _cast(w: Writer, dtype: str, given: str, arg: str, lanes: int) -> str:
    to, source = vector(REGISTER[dtype], lanes), vector(REGISTER[given], lanes)
    from_float, to_float = given[0] == "f", dtype[0] == "f"
    if dtype == "bool":
        return w.let(f"{_comparison('ne', given)} {source} {arg}, {splat(given, 0, lanes)}")
    if from_float and to_float:
        return w.let(f"{'fpext' if dtype == 'f64' else 'fptrunc'} {source} {arg} to {to}")
    if from_float:
        return _float_to_integer(w, dtype, given, arg, lanes)
    if to_float:
        name = "sitofp" if given[0] == "i" else "uitofp"
        return w.let(f"{name} {source} {arg} to {to}")
    if BITS[dtype] == BITS[given]:
        return arg
    if BITS[dtype] < BITS[given]:
        return w.let(f"trunc {source} {arg} to {to}")
    return w.let(f"{'sext' if given[0] == 'i' else 'zext'} {source} {arg} to {to}")


def _float_to_integer(w: Writer, dtype: str, given: str, arg: str, lanes: int) -> str:
    source = vector(REGISTER[given], lanes)
    if dtype == "u64":
        wide = vector("i64", lanes)
        limit = splat(given, float(2**63), lanes)
        is_large = w.let(f"fcmp oge {source} {arg}, {limit}")
        lower = w.let(f"fsub {source} {arg}, {limit}")
        small = _truncated(w, "i64", given, arg, lanes)
        large = _truncated(w, "i64", given, lower, lanes)
        flipped = w.let(f"xor {wide} {large}, {splat('i64', -(2**63), lanes)}")
        return w.let(f"select {vector('i1', lanes)} {is_large}, {wide} {flipped}, {wide} {small}")
    through = "i64" if dtype in ("i64", "u32") else "i32"
    wide = vector(through, lanes)
    whole = _truncated(w, through, given, arg, lanes)
    if BITS[dtype] == BITS[through]:
        return whole
    return w.let(f"trunc {wide} {whole} to {vector(REGISTER[dtype], lanes)}")


def _truncated(w: Writer, dtype: str, given: str, arg: str, lanes: int) -> str:
    """Truncate to a signed integer; NaN and numbers out of range become the least integer.

    LLVM's instruction usually does so on x86, but its result is then undefined (poison).
    """
    source, wide, bits = (vector(one, lanes) for one in (REGISTER[given], REGISTER[dtype], "i1"))
    size = w.intrinsic("llvm.fabs", source, suffix(REGISTER[given], lanes), [arg])
    end = 2 ** (BITS[dtype] - 1)
    fits = w.let(f"fcmp olt {source} {size}, {splat(given, float(end), lanes)}")
    safe = w.let(f"select {bits} {fits}, {source} {arg}, {source} {splat(given, 0.0, lanes)}")
    whole = w.let(f"fptosi {source} {safe} to {wide}")
    return w.let(f"select {bits} {fits}, {wide} {whole}, {wide} {splat(dtype, -end, lanes)}")


def _extremum(w: Writer, name: str, given: str, args: list[str], lanes: int) -> str:
    kind, bits = vector(REGISTER[given], lanes), vector("i1", lanes)
    one, other = args
    wanted = "ge" if name == "maximum" else "le"
    takes = w.let(f"{_comparison(wanted, given)} {kind} {one}, {other}")
    if given[0] == "f":
        is_nan = w.let(f"fcmp uno {kind} {one}, {one}")
        takes = w.let(f"or {bits} {takes}, {is_nan}")
    return w.let(f"select {bits} {takes}, {kind} {one}, {kind} {other}")


def _abs(w: Writer, given: str, arg: str, lanes: int) -> str:
    kind = vector(REGISTER[given], lanes)
    if given[0] == "f":
        return w.intrinsic("llvm.fabs", kind, suffix(REGISTER[given], lanes), [arg])
    if given[0] == "u":
        return arg
    negated = w.let(f"sub {kind} zeroinitializer, {arg}" if lanes > 1 else f"sub {kind} 0, {arg}")
    is_less = w.let(f"icmp slt {kind} {arg}, {splat(given, 0, lanes)}")
    return w.let(f"select {vector('i1', lanes)} {is_less}, {kind} {negated}, {kind} {arg}")


def _shift(w: Writer, name: str, given: str, args: list[str], lanes: int) -> str:
    kind, bits = vector(REGISTER[given], lanes), vector("i1", lanes)
    width = BITS[given]
    fits = w.let(f"icmp ult {kind} {args[1]}, {splat(given, width, lanes)}")
    most = splat(given, width - 1, lanes)
    if name == "shr" and given[0] == "i":
        by = w.let(f"select {bits} {fits}, {kind} {args[1]}, {kind} {most}")
        return w.let(f"ashr {kind} {args[0]}, {by}")
    by = w.let(f"select {bits} {fits}, {kind} {args[1]}, {kind} {splat(given, 0, lanes)}")
    shifted = w.let(f"{'shl' if name == 'shl' else 'lshr'} {kind} {args[0]}, {by}")
    return w.let(f"select {bits} {fits}, {kind} {shifted}, {kind} {splat(given, 0, lanes)}")


def _integer_division(w: Writer, name: str, given: str, args: list[str], lanes: int) -> str:
    """Divide as Python does, except that a divisor of 0 gives 0; no division overflows."""
    kind, bits = vector(REGISTER[given], lanes), vector("i1", lanes)
    zero, one = splat(given, 0, lanes), splat(given, 1, lanes)
    number, divisor = args
    is_zero = w.let(f"icmp eq {kind} {divisor}, {zero}")
    unsafe = is_zero
    if given[0] == "i":
        least = splat(given, -(2 ** (BITS[given] - 1)), lanes)
        is_least = w.let(f"icmp eq {kind} {number}, {least}")
        is_minus = w.let(f"icmp eq {kind} {divisor}, {splat(given, -1, lanes)}")
        overflows = w.let(f"and {bits} {is_least}, {is_minus}")
        unsafe = w.let(f"or {bits} {is_zero}, {overflows}")
    safe = w.let(f"select {bits} {unsafe}, {kind} {one}, {kind} {divisor}")
    sign = "s" if given[0] == "i" else "u"
    remainder = w.let(f"{sign}rem {kind} {number}, {safe}")
    if name == "mod":
        result, correction = remainder, f"add {kind} {remainder}, {safe}"
    else:
        result = w.let(f"{sign}div {kind} {number}, {safe}")
        correction = f"sub {kind} {result}, {one}"
    if sign == "s":
        adjusted = w.let(correction)
        differs = _signs_differ(w, kind, bits, zero, remainder, safe)
        result = w.let(f"select {bits} {differs}, {kind} {adjusted}, {kind} {result}")
    return w.let(f"select {bits} {is_zero}, {kind} {zero}, {kind} {result}")


def _signs_differ(w: Writer, kind: str, bits: str, zero: str, remainder: str, divisor: str) -> str:
    """Write whether the remainder is not zero and differs in sign from the divisor."""
    both = w.let(f"xor {kind} {remainder}, {divisor}")
    opposite = w.let(f"icmp slt {kind} {both}, {zero}")
    is_there = w.let(f"icmp ne {kind} {remainder}, {zero}")
    return w.let(f"and {bits} {opposite}, {is_there}")
