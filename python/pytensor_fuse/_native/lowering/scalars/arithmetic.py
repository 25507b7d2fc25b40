"""Scalar arithmetic: sums, products, quotients, powers, signs and rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytensor.scalar.basic as ps
from pytensor.tensor.math import MulWithoutZeros

from pytensor_fuse._native.lowering.scalars.registry import (
    known_numbers,
    out_dtype,
    scalar_refusal,
    scalar_rule,
)
from pytensor_fuse._native.lowering.tensors import DTYPES
from pytensor_fuse._native.program.model import NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.scalars.registry import ScalarRule
    from pytensor_fuse._native.lowering.types import Builder, Node, Value


def common_dtype(b: Builder, args: Sequence[Value]) -> str:
    """Return the dtype in which NumPy computes with values."""
    return DTYPES[str(np.result_type(*[np.dtype(NAMES[b.dtype(arg)]) for arg in args]))]


def _operation(name: str) -> ScalarRule:
    """Return the rule of an op that is one operation in the dtype of its output."""

    def rule(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
        dtype = out_dtype(node)
        return b.op(name, *[b.cast(arg, dtype) for arg in args])

    return rule


for _op, _name in (
    (ps.Sub, "sub"),
    (ps.Maximum, "maximum"),
    (ps.Minimum, "minimum"),
    (ps.Neg, "neg"),
    (ps.AND, "and"),
    (ps.OR, "or"),
    (ps.XOR, "xor"),
    (ps.Invert, "not"),
):
    scalar_rule.register(_op)(_operation(_name))


@scalar_refusal.register(ps.AND)
@scalar_refusal.register(ps.OR)
@scalar_refusal.register(ps.XOR)
def _bits_refusal(op: Any, node: Node) -> str | None:
    dtypes = [variable.type.dtype for variable in node.inputs]
    if np.result_type(*map(np.dtype, dtypes)).kind == "f":
        # PyTensor declares a float result for these, and has no implementation.
        return f"bits of {' and '.join(dtypes)}"
    return None


@scalar_rule.register(ps.Sqr)
def _sqr(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
    x = b.cast(args[0], out_dtype(node))
    return b.op("and" if b.dtype(x) == "bool" else "mul", x, x)


def _chained(name: str, on_bools: str) -> ScalarRule:
    """Return the rule of a sum or product of any number of terms, from left to right."""

    def rule(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
        dtype = out_dtype(node)
        total = args[0]
        for arg in args[1:]:
            # Intermediate results keep the operands' own float dtype if it is narrower than the
            # output's.
            step = common_dtype(b, (total, arg)) if dtype == "f64" else dtype
            step = step if step[0] == "f" else dtype
            total = b.op(
                on_bools if step == "bool" else name, b.cast(total, step), b.cast(arg, step)
            )
        return total

    return rule


scalar_rule.register(ps.Add)(_chained("add", "or"))
scalar_rule.register(ps.Mul)(_chained("mul", "and"))


@scalar_rule.register(MulWithoutZeros)
def _mul_without_zeros(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
    dtype = out_dtype(node)
    one, other = [b.cast(arg, dtype) for arg in args]
    zero = b.constant(dtype, 0)
    product = b.op("and" if dtype == "bool" else "mul", one, other)
    nonzero = b.op("select", b.op("eq", other, zero), one, product)
    return b.op("select", b.op("eq", one, zero), other, nonzero)


_SMALL: Final = ("bool", "i8", "u8", "i16", "u16")


@scalar_rule.register(ps.TrueDiv)
def _true_div(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
    dtype = out_dtype(node)
    if dtype[0] != "f" or all(b.dtype(arg)[0] != "f" for arg in args):
        # Integers are divided in double precision whatever the output; Numba uses single precision
        # where that represents all operands exactly.
        is_single = b.program.calls_libm and all(b.dtype(arg) in _SMALL for arg in args)
        dtype = "f32" if is_single else "f64"
    return b.op("div", *[b.cast(arg, dtype) for arg in args])


@scalar_rule.register(ps.IntDiv)
def _int_div(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
    dtype = out_dtype(node)
    args = [b.cast(arg, dtype) for arg in args]
    if dtype[0] == "f":
        # As in Numba and C: 1.0 // 0.1 is 10.0, where NumPy has 9.0.
        return b.op("floor", b.op("div", *args))
    # Division by False gives False, as the division of integers by 0 gives 0.
    return b.op("and" if dtype == "bool" else "floordiv", *args)


@scalar_rule.register(ps.Mod)
def _mod(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
    dtype = out_dtype(node)
    if dtype == "bool":
        return b.constant("bool", False)
    rest = b.op("mod", *[b.cast(arg, dtype) for arg in args])
    # NumPy gives a zero remainder the sign of the divisor; Numba's is +0.0.
    is_numbas = b.program.calls_libm and dtype[0] == "f"
    return b.op("add", rest, b.constant(dtype, 0.0)) if is_numbas else rest


@scalar_rule.register(ps.Reciprocal)
def _reciprocal(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
    dtype = out_dtype(node)
    return b.op("div", b.constant(dtype, 1), b.cast(args[0], dtype))


@scalar_rule.register(ps.Abs)
def _abs(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
    return args[0] if b.dtype(args[0]) == "bool" else b.op("abs", args[0])


@scalar_rule.register(ps.Sign)
def _sign(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
    [x] = args
    dtype = b.dtype(x)
    if dtype == "bool":
        return x
    zero, one = b.constant(dtype, 0), b.constant(dtype, 1)
    # The sign of -0.0 is 0.0 in NumPy, and -0.0 in Numba.
    zero_or_x = x if b.program.calls_libm and dtype[0] == "f" else zero
    sign = b.op("select", b.op("gt", x, zero), one, zero_or_x)
    if dtype[0] == "u":
        return sign
    sign = b.op("select", b.op("lt", x, zero), b.constant(dtype, -1), sign)
    return b.op("select", b.op("ne", x, x), x, sign) if dtype[0] == "f" else sign


# Rounding


def _rounding(name: str) -> ScalarRule:
    def rule(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
        arg = b.cast(args[0], out_dtype(node))
        return b.op(name, arg) if b.dtype(arg)[0] == "f" else arg

    return rule


scalar_rule.register(ps.Ceil)(_rounding("ceil"))
scalar_rule.register(ps.Floor)(_rounding("floor"))
scalar_rule.register(ps.Trunc)(_rounding("trunc"))
scalar_rule.register(ps.RoundHalfToEven)(_rounding("rint"))


@scalar_rule.register(ps.RoundHalfAwayFromZero)
def _round_away(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
    # In double precision, as in PyTensor, by an addition of 0.5 and rounding down: the predecessor
    # of 0.5 is rounded to 1.
    x = b.cast(args[0], "f64")
    half = b.constant("f64", 0.5)
    up = b.op("floor", b.op("add", x, half))
    down = b.op("ceil", b.op("sub", x, half))
    return b.op("select", b.op("gt", x, b.constant("f64", 0)), up, down)


# Powers

# Powers with these exponents are products, with at most one rounding more than necessary.
_MULTIPLIED: Final = (2, 3)
# Numba multiplies for exponents up to 2**16, which have at most this many bits.
_MULTIPLIED_BITS: Final = 17


@scalar_refusal.register(ps.Pow)
def _pow_refusal(op: Any, node: Node) -> str | None:
    base, exponent = [np.dtype(variable.type.dtype) for variable in node.inputs]
    if base.kind == "f" or exponent.kind != "i":
        return None
    numbers = known_numbers(node.inputs[1])
    if numbers is None or np.any(numbers < 0):
        # Numba raises an exception for a negative power of 0, NumPy for every negative power.
        return "a power of integers whose exponent may be negative"
    return None


@scalar_rule.register(ps.Pow)
def _pow(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
    dtype = out_dtype(node)
    base, exponent = args
    if dtype[0] == "f":
        if b.program.calls_libm and b.dtype(base)[0] == "f" and b.dtype(exponent)[0] in "iu":
            return _power_of_numba(b, base, exponent)
        return _float_pow(b, dtype, b.cast(base, dtype), b.cast(exponent, dtype))
    bits = 1 if b.dtype(exponent) == "bool" else int(b.dtype(exponent)[1:])
    return _integer_pow(b, dtype, b.cast(base, dtype), b.cast(exponent, dtype), bits)


def _power_of_numba(b: Builder, base: Value, exponent: Value) -> Value:
    """Return a float to the power of an integer, with the same roundings as Numba's.

    Numba squares and multiplies in the dtype of the base, and calls the C library's pow on doubles
    for exponents beyond 2**16.
    """
    dtype, given = b.dtype(exponent), b.dtype(base)
    wide = b.cast(exponent, "u64" if dtype == "u64" else "i64")
    size = wide if dtype[0] == "u" else b.op("abs", wide)
    kind = b.dtype(wide)
    zero, unit = b.constant(kind, 0), b.constant(given, 1.0)
    result = _squared(b, unit, base, size, min(int(dtype[1:]), _MULTIPLIED_BITS))
    if dtype[0] == "i":
        result = b.op("select", b.op("lt", wide, zero), b.op("div", unit, result), result)
    if int(dtype[1:]) < _MULTIPLIED_BITS:
        return result
    far = b.cast(b.op("pow", b.cast(base, "f64"), b.cast(exponent, "f64")), given)
    is_far = b.op("gt", size, b.constant(kind, 1 << (_MULTIPLIED_BITS - 1)))
    return b.op("select", is_far, far, result)


def _float_pow(b: Builder, dtype: str, base: Value, exponent: Value) -> Value:
    number = b.number(exponent)
    if number == 0:
        return b.constant(dtype, 1)
    if number == 1:
        return base
    if number == -1:
        return b.op("div", b.constant(dtype, 1), base)
    if number in _MULTIPLIED and not (number == 3 and b.program.calls_libm):
        return _product(b, dtype, base, int(number))
    return b.op("pow", base, exponent)


def _product(b: Builder, dtype: str, base: Value, exponent: int) -> Value:
    """Return a power by repeated squaring."""
    result = b.constant(dtype, 1)
    while exponent:
        if exponent & 1:
            result = b.op("mul", result, base)
        exponent >>= 1
        base = b.op("mul", base, base) if exponent else base
    return result


def _integer_pow(b: Builder, dtype: str, base: Value, exponent: Value, bits: int) -> Value:
    """Return a power of an integer, whose exponent has at most the given number of bits."""
    number = b.number(exponent)
    if number is not None:
        return _product(b, dtype, base, int(number))
    return _squared(b, b.constant(dtype, 1), base, exponent, bits)


def _squared(b: Builder, result: Value, power: Value, exponent: Value, bits: int) -> Value:
    """Return a product with a power, by squaring once for each bit of the exponent."""
    kind = b.dtype(exponent)
    one, zero = b.constant(kind, 1), b.constant(kind, 0)
    for place in range(bits):
        power = b.op("mul", power, power) if place else power
        bit = b.op("and", b.op("shr", exponent, b.constant(kind, place)), one)
        product = b.op("mul", result, power)
        result = b.op("select", b.op("ne", bit, zero), product, result)
    return result
