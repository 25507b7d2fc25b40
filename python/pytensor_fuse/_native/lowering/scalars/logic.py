"""Comparisons, selections and conversions of scalars."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import pytensor.scalar.basic as ps

from pytensor_fuse._native.lowering.scalars.arithmetic import common_dtype
from pytensor_fuse._native.lowering.scalars.registry import out_dtype, scalar_rule

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.scalars.registry import ScalarRule
    from pytensor_fuse._native.lowering.types import Builder, Node, Value

_MIRRORED: Final = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def compared(b: Builder, name: str, one: Value, other: Value) -> Value:
    """Return a comparison of two values of any dtypes: integers exactly, as in NumPy."""
    dtypes = b.dtype(one), b.dtype(other)
    if dtypes[0] == "u64" and dtypes[1][0] == "i":
        name, one, other = _MIRRORED[name], other, one
    elif not (dtypes[0][0] == "i" and dtypes[1] == "u64"):
        dtype = common_dtype(b, (one, other))
        return b.op(name, b.cast(one, dtype), b.cast(other, dtype))
    # No dtype holds all values of both; negative numbers are less than all unsigned ones.
    is_negative = b.op("lt", one, b.constant(b.dtype(one), 0))
    result = b.op(name, b.cast(one, "u64"), other)
    if name in ("ne", "lt", "le"):
        return b.op("or", is_negative, result)
    return b.op("and", b.op("not", is_negative), result)


def _comparison(name: str) -> ScalarRule:
    def rule(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
        return compared(b, name, *args)

    return rule


for _op, _name in (
    (ps.EQ, "eq"),
    (ps.NEQ, "ne"),
    (ps.LT, "lt"),
    (ps.LE, "le"),
    (ps.GT, "gt"),
    (ps.GE, "ge"),
):
    scalar_rule.register(_op)(_comparison(_name))


@scalar_rule.register(ps.IsNan)
def _is_nan(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
    [x] = args
    return b.op("ne", x, x) if b.dtype(x)[0] == "f" else b.constant("bool", False)


@scalar_rule.register(ps.IsInf)
def _is_inf(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
    [x] = args
    dtype = b.dtype(x)
    if dtype[0] != "f":
        return b.constant("bool", False)
    return b.op("eq", b.op("abs", x), b.constant(dtype, math.inf))


@scalar_rule.register(ps.Switch)
def _switch(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
    dtype = out_dtype(node)
    condition = b.cast(args[0], "bool")
    return b.op("select", condition, b.cast(args[1], dtype), b.cast(args[2], dtype))


@scalar_rule.register(ps.Clip)
def _clip(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
    dtype = out_dtype(node)
    x, least, most = args
    # NaN is neither below nor above.
    is_below, is_above = compared(b, "lt", x, least), compared(b, "gt", x, most)
    x, least, most = [b.cast(arg, dtype) for arg in args]
    return b.op("select", is_below, least, b.op("select", is_above, most, x))


@scalar_rule.register(ps.Identity)
@scalar_rule.register(ps.Cast)
@scalar_rule.register(ps.Real)
@scalar_rule.register(ps.Conj)
def _same(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
    return args[0]


@scalar_rule.register(ps.Second)
def _second(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
    return args[1]
