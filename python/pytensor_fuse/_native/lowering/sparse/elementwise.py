"""Sums of the entries of sparse matrices, sums with arrays, and products by array elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytensor.sparse import basic, math

from pytensor_fuse._native.lowering.arrays.reductions import reduced_along
from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.sparse.construction import refuses
from pytensor_fuse._native.lowering.sparse.entries import (
    all_entries,
    gatherable,
    guarding,
    minor_of,
)
from pytensor_fuse._native.lowering.sparse.formats import add_entries
from pytensor_fuse._native.lowering.sparse.matrices import SparseMatrix, as_matrix, in_order
from pytensor_fuse._native.lowering.sparse.products import gathered_sum, scattered_sum
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor, stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor_fuse._native.lowering.types import Context, Index, Node, Tensors, Value


_MISMATCH: Final = "axes of {0} and {1} elements"
_SUM_MISMATCH: Final = f"a sum of matrices with {_MISMATCH}"


@lower.register(math.SpSum, refuses=refuses)
def _sum(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    matrix = as_matrix(inputs[0])
    if op.axis is None:
        zero = context.builder.constant(matrix.dtype, 0)
        return [reduced_along(context, matrix.values, (0,), "add", matrix.dtype, zero)]
    is_along_minor = (op.axis == 1) == (matrix.format == "csr")
    total = gathered_sum if is_along_minor else scattered_sum
    return [total(context, matrix)]


def require_one_shape(context: Context, one: Tensor, other: Tensor) -> list[Value]:
    """Check that two matrices have the same shape, and return it."""
    return [
        context.require_equal(mine, theirs, AssertionError, _SUM_MISMATCH)
        for mine, theirs in zip(one.lengths, other.lengths, strict=True)
    ]


@lower.register(type(math.add_s_d), refuses=refuses)
def _add_array(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    matrix = as_matrix(inputs[0])
    dtype = DTYPES[node.outputs[0].type.dtype]
    require_one_shape(context, matrix, inputs[1])
    buffer = context.copied(context.of_dtype(inputs[1], dtype), is_once=False)
    add_entries(context, buffer, matrix)
    return [stored(context.builder, buffer)]


@lower.register(type(math.add_s_s_data), refuses=refuses)
def _add_values(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder = context.builder
    one, other = (as_matrix(given) for given in inputs)
    require_one_shape(context, one, other)
    length = context.require_equal(
        one.values.lengths[0], other.values.lengths[0], AssertionError, _SUM_MISMATCH
    )

    def element(index: Index) -> Value:
        return builder.op("add", one.values.at(index), other.values.at(index))

    return [one.with_values(context.materialized(one.dtype, [length], element))]


@lower.register(type(math.mul_s_d), type(math.mul_s_v), refuses=refuses)
def _multiply(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    matrix, factor = as_matrix(inputs[0]), inputs[1]
    dtype = DTYPES[node.outputs[0].type.dtype]
    matrix = matrix.with_values(context.of_dtype(matrix.values, dtype))
    factor = context.of_dtype(factor, dtype)
    for one, other in zip(reversed(matrix.lengths), reversed(factor.lengths), strict=False):
        context.require_equal(one, other, AssertionError, _MISMATCH)
    if factor.ndim == 0:
        return [_scaled(context, matrix, lambda _: factor.at(()))]
    if factor.ndim == 1:
        return [_scaled_along(context, matrix, factor, 1)]
    factor = gatherable(context, factor)
    return [
        _by_entries(
            context, matrix, lambda major, minor: factor.at(in_order(matrix.format, major, minor))
        )
    ]


@lower.register(basic.ColScaleCSC, basic.RowScaleCSC, refuses=refuses)
def _scale(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    matrix, factor = as_matrix(inputs[0]), inputs[1]
    axis = int(isinstance(op, basic.ColScaleCSC))
    context.require_equal(matrix.lengths[axis], factor.lengths[0], AssertionError, _MISMATCH)
    factor = context.of_dtype(factor, matrix.dtype)
    return [_scaled_along(context, matrix, factor, axis)]


def _scaled_along(
    context: Context, matrix: SparseMatrix, factor: Tensor, axis: int
) -> SparseMatrix:
    """Return a matrix times a vector along one of its axes."""
    factor = gatherable(context, factor)
    is_major = (axis == 0) == (matrix.format == "csr")
    if is_major:
        return _by_entries(context, matrix, lambda major, _: factor.at((major,)))
    structure = matrix.structure
    with guarding(context, structure):
        return _scaled(context, matrix, lambda at: factor.at((minor_of(context, structure, at),)))


def _scaled(
    context: Context, matrix: SparseMatrix, factor: Callable[[Value], Value]
) -> SparseMatrix:
    """Return a matrix times a factor for each entry."""
    builder, values = context.builder, matrix.values

    def product(index: Index) -> Value:
        return builder.op("mul", values.at(index), factor(index[0]))

    return matrix.with_values(context.materialized(matrix.dtype, values.lengths, product))


def _by_entries(
    context: Context, matrix: SparseMatrix, factor: Callable[[Value, Value], Value]
) -> SparseMatrix:
    """Return a matrix times a factor for each major and minor index."""
    builder, structure = context.builder, matrix.structure
    out = context.temporary(matrix.dtype, [structure.n_entries])
    with all_entries(context, structure) as entry:
        value = matrix.values.at((entry.at,))
        product = builder.op("mul", value, factor(entry.major, entry.minor))
        builder.store(out, (entry.at,), product, is_guarded=structure.is_checked)
    return matrix.with_values(stored(builder, out))
