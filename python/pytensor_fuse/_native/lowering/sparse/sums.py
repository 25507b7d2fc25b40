"""Sums of the entries of a sparse matrix, and sums of a sparse matrix and an array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytensor.sparse import math

from pytensor_fuse._native.lowering.arrays.reductions import reduced_along
from pytensor_fuse._native.lowering.matrices.operands import of_dtype
from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.sparse.construction import refuses
from pytensor_fuse._native.lowering.sparse.formats import add_entries
from pytensor_fuse._native.lowering.sparse.matrices import as_matrix
from pytensor_fuse._native.lowering.sparse.products import gathered_sum, scattered_sum
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor, stored

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.annotations import Context, Index, Node, Tensors, Value


MISMATCH: Final = "a sum of matrices with axes of {0} and {1} elements"


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
        context.require_equal(mine, theirs, AssertionError, MISMATCH)
        for mine, theirs in zip(one.lengths, other.lengths, strict=True)
    ]


@lower.register(type(math.add_s_d), refuses=refuses)
def _add_array(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    matrix = as_matrix(inputs[0])
    dtype = DTYPES[node.outputs[0].type.dtype]
    require_one_shape(context, matrix, inputs[1])
    buffer = context.copied(of_dtype(context, inputs[1], dtype), is_once=False)
    add_entries(context, buffer, matrix)
    return [stored(context.builder, buffer)]


@lower.register(type(math.add_s_s_data), refuses=refuses)
def _add_values(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder = context.builder
    one, other = (as_matrix(given) for given in inputs)
    require_one_shape(context, one, other)
    length = context.require_equal(
        one.values.lengths[0], other.values.lengths[0], AssertionError, MISMATCH
    )

    def element(index: Index) -> Value:
        return builder.op("add", one.values.at(index), other.values.at(index))

    return [one.with_values(context.materialized(one.dtype, [length], element))]
