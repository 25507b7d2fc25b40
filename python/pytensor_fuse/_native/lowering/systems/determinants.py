"""Determinants and their logarithms, by LU factorization.

As in Numba, the logarithms of the pivots are summed, since their product may overflow, and
nonfinite elements raise an exception.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from numpy.linalg import LinAlgError
from pytensor.tensor.linalg.summary import Det, SLogDet

from pytensor_fuse._native.lowering.matrices.operands import all_finite, refuses_not_real
from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.systems.lu_factors import lu_factors
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor, scalar

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Context, Node, Tensors, Value


_NOT_SQUARE: Final = "Last 2 dimensions of the array must be square."
_NOT_FINITE: Final = "Array must not contain infs or NaNs."


@lower.register(SLogDet, refuses=refuses_not_real)
def _slogdet(op: SLogDet, node: Node, context: Context, inputs: Tensors) -> Tensors:
    dtype = DTYPES[node.outputs[0].type.dtype]
    sign, logarithm = _sign_and_logarithm(context, context.of_dtype(inputs[0], dtype))
    return [scalar(context.builder, context.builder.cast(one, dtype)) for one in (sign, logarithm)]


@lower.register(Det, refuses=refuses_not_real)
def _det(op: Det, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder, dtype = context.builder, DTYPES[node.outputs[0].type.dtype]
    sign, logarithm = _sign_and_logarithm(context, context.of_dtype(inputs[0], dtype))
    number = builder.op("mul", sign, builder.op("exp", logarithm))
    return [scalar(builder, builder.cast(number, dtype))]


def _sign_and_logarithm(context: Context, matrix: Tensor) -> tuple[Value, Value]:
    """Return the sign and the logarithm of a determinant, in double precision."""
    builder = context.builder
    rows, columns = matrix.lengths
    size = context.require_equal(rows, columns, LinAlgError, _NOT_SQUARE)
    builder.check(all_finite(context, matrix), LinAlgError, _NOT_FINITE)
    factors = lu_factors(context, matrix)
    diagonal, pivots = context.held(factors.columns), context.held(factors.pivots)
    one, zero = builder.index(1), builder.index(0)
    with builder.loop(size) as loop:
        at = loop.index
        pivot = builder.cast(diagonal.at((at, at)), "f64")
        is_negative = builder.op("lt", pivot, builder.constant("f64", 0.0))
        swapped = builder.cast(pivots.at((at,)), "i64")
        is_swapped = builder.op("ne", swapped, builder.op("add", at, one))
        is_odd = builder.reduce(
            loop, "xor", builder.constant("bool", False), builder.op("xor", is_negative, is_swapped)
        )
        term = builder.op("log", builder.op("abs", pivot))
        logarithm = builder.reduce(loop, "add", builder.constant("f64", 0.0), term)
    sign = builder.op("select", is_odd, *[builder.constant("f64", one) for one in (-1.0, 1.0)])
    is_regular = builder.op("eq", factors.report, zero)
    return (
        builder.op("select", is_regular, sign, builder.constant("f64", 0.0)),
        builder.op("select", is_regular, logarithm, builder.constant("f64", -math.inf)),
    )
