"""Polygamma functions of a known order: digamma, trigamma, and others by the Hurwitz zeta function.

The zeta function is computed by the Euler-Maclaurin formula, as in SciPy's C code: terms up to an
argument of more than 9, and an asymptotic series for the rest.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import pytensor.scalar.math as psm

from pytensor_fuse._native.lowering.scalars.registry import (
    known_numbers,
    out_dtype,
    scalar_refusal,
    scalar_rule,
)

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Builder, Node, Value


_BY_NAME: Final = {0: "digamma", 1: "trigamma"}
# For higher orders, factorials and powers leave the range of doubles too soon.
_LAST_ORDER: Final = 20
_N_TERMS: Final = 9
# A bound on the run time; only arguments below its negative need more terms.
_MOST_TERMS: Final = 10_000_000
# Beyond this argument, two terms of the series are accurate.
_FAR: Final = 1e8
# The factorial of 2 k, divided by the Bernoulli number of 2 k, for k from 1 on.
_DIVISORS: Final = (
    12.0,
    -720.0,
    30240.0,
    -1209600.0,
    47900160.0,
    -1307674368000.0 / 691,
    74724249600.0,
    -10670622842880000.0 / 3617,
    5109094217170944000.0 / 43867,
    -802857662698291200000.0 / 174611,
    14101100039391805440000.0 / 77683,
    -1693824136731743669452800000.0 / 236364091,
)


def _order(node: Node) -> int | None:
    """Return the order of a polygamma function if it is a constant, equal for all elements."""
    numbers = known_numbers(node.inputs[0])
    if numbers is None or not numbers.size or (numbers != numbers.flat[0]).any():
        return None
    order = float(numbers.flat[0])
    return int(order) if order in range(_LAST_ORDER + 1) else None


@scalar_refusal.register(psm.PolyGamma)
def _refusal(op: Any, node: Node) -> str | None:
    if _order(node) is not None:
        return None
    return f"a polygamma function whose order is not known to be one of 0 to {_LAST_ORDER}"


@scalar_rule.register(psm.PolyGamma)
def _polygamma(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
    number = b.number(args[0])
    assert number is not None
    order = int(number)
    if order in _BY_NAME:
        return b.op(_BY_NAME[order], b.cast(args[1], out_dtype(node)))
    factor = b.constant("f64", (-1.0) ** (order + 1) * math.factorial(order))
    # Adding 0.0 turns -0.0 into 0.0, so that both have the same pole.
    argument = b.op("add", b.cast(args[1], "f64"), b.constant("f64", 0.0))
    return b.op("mul", factor, _zeta(b, order + 1, argument))


def _power(b: Builder, value: Value, exponent: int) -> Value:
    """Return a power by repeated squaring."""
    if exponent == 1:
        return value
    half = _power(b, value, exponent // 2)
    square = b.op("mul", half, half)
    return b.op("mul", square, value) if exponent % 2 else square


def _zeta(b: Builder, exponent: int, argument: Value) -> Value:
    """Return the Hurwitz zeta function: the sum of (argument + k) ** -exponent over k >= 0."""

    def number(of: float) -> Value:
        return b.constant("f64", of)

    def term(base: Value) -> Value:
        return _power(b, b.op("div", number(1), base), exponent)

    is_positive = b.op("gt", argument, number(0))
    is_whole = b.op("eq", argument, b.op("ceil", argument))
    is_pole = b.op("and", is_whole, b.op("le", argument, number(0)))
    above = b.op("sub", number(_N_TERMS + 1), b.op("ceil", argument))
    above = b.op("minimum", above, number(_MOST_TERMS))
    n_terms = b.op("select", is_positive, b.index(_N_TERMS), b.cast(above, "i64"))
    # Poles need no sum, however far from zero: all doubles beyond 2**52 are integers.
    n_terms = b.op("select", is_pole, b.index(0), n_terms)
    with b.loop(n_terms) as loop:
        total = b.carried("f64")
        following = b.op("add", total, term(b.op("add", argument, b.cast(loop.index, "f64"))))
        total = b.carry(loop, total, number(0), following)
    last = b.op("add", argument, b.cast(n_terms, "f64"))
    # The integral over the rest, half of its first term, and the corrections.
    power = term(last)
    rest = b.op("mul", power, b.op("div", last, number(exponent - 1)))
    rest = b.op("add", rest, b.op("mul", power, number(0.5)))
    rising = 1.0
    for at, divisor in enumerate(_DIVISORS):
        rising *= exponent + 2 * at
        power = b.op("div", power, last)
        rest = b.op("add", rest, b.op("mul", power, number(rising / divisor)))
        rising *= exponent + 2 * at + 1
        power = b.op("div", power, last)
    near = b.op("add", total, rest)
    reciprocal = b.op("div", number(1), argument)
    far = b.op("add", number(1 / (exponent - 1)), b.op("mul", number(0.5), reciprocal))
    far = b.op("mul", far, _power(b, reciprocal, exponent - 1))
    near = b.op("select", is_pole, number(math.inf), near)
    return b.op("select", b.op("gt", argument, number(_FAR)), far, near)
