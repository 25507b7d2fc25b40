"""Matrix products: by BLAS, or by loop nests where these are faster.

Products with few terms in total are fully unrolled, and products with one term in each sum are
elementwise. Products of integers are loops, as BLAS has none. Products with vectors are in
`products.vectors`. All others are calls of BLAS, which can transpose its operands.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from pytensor.tensor.blas import BatchedDot
from pytensor.tensor.math import Dot

from pytensor_fuse._native.lowering.batches import Batch, for_each
from pytensor_fuse._native.lowering.matrices.operands import (
    in_memory,
    real_refusal_of,
    sizes_of,
    transposed,
)
from pytensor_fuse._native.lowering.products.vectors import by_streams, data_product, with_vector
from pytensor_fuse._native.lowering.registry import dtype_refusal, lower
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor
from pytensor_fuse._native.program.operations import FLOATS
from pytensor_fuse._pytensor.compat.versions import PRODUCT_MISMATCH as MISMATCH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.types import Context, Index, Node, Tensors, Value


# The message of PyTensor's Python implementation, without the arrays; Numba checks nothing.
_BATCH_MISMATCH: Final = "Inputs must have the same size in axis 0, but have sizes [{0}, {1}]."
# Products up to this total number of terms are fully unrolled.
_MOST_TERMS: Final = 64


def _refuses(_: Any, node: Node) -> str | None:
    # Boolean masks may be factors, but not results.
    return dtype_refusal(node) or real_refusal_of(node.outputs)


@lower.register(Dot, refuses=_refuses)
def _dot(_: Dot, node: Node, context: Context, inputs: Tensors) -> Tensors:
    dtype = DTYPES[node.outputs[0].type.dtype]
    data = data_product(node)
    if data is not None:
        return [by_streams(context, data, inputs[data.vector], dtype)]
    return [product(context, *[context.of_dtype(one, dtype) for one in inputs])]


@lower.register(BatchedDot, refuses=_refuses)
def _batched_dot(_: BatchedDot, node: Node, context: Context, inputs: Tensors) -> Tensors:
    dtype = DTYPES[node.outputs[0].type.dtype]
    one, other = (given.lengths[0] for given in inputs)
    length = context.require_equal(one, other, TypeError, _BATCH_MISMATCH)
    batches = [Batch(context.of_dtype(one, dtype), (False,)) for one in inputs]
    return for_each(context, [length], batches, lambda given: [product(context, *given)])


def product(context: Context, left: Tensor, right: Tensor) -> Tensor:
    """Return the product of two matrices of one dtype."""
    builder, dtype = context.builder, left.dtype
    along = context.require_equal(left.lengths[1], right.lengths[0], ValueError, MISMATCH)
    lengths = context.length(left.lengths[0]), context.length(right.lengths[1])
    n_along = builder.number(along)

    def term(index: Index, at: Value) -> Value:
        return builder.op("mul", left.at((index[0], at)), right.at((at, index[1])))

    zero = builder.constant(dtype, 0)
    if n_along == 1 or _is_small((*lengths, along), context):

        def total(index: Index) -> Value:
            # The sum starts from 0.0, as in BLAS: a sum of -0.0 alone is 0.0.
            places = map(builder.index, range(int(n_along or 0)))
            return context.folded("add", zero, (term(index, place) for place in places))

        # Stored at once: another op may overwrite a factor before the product is read.
        return context.materialized(dtype, lengths, total)
    if dtype not in FLOATS or all(builder.number(one) == 1 for one in lengths):

        def by_loop(index: Index) -> Value:
            with builder.loop(along) as loop:
                return builder.reduce(loop, "add", zero, term(index, loop.index))

        return context.materialized(dtype, lengths, by_loop)
    return _by_blas(context, left, right, along)


def _is_small(lengths: Sequence[Value], context: Context) -> bool:
    """Whether a product has few enough terms for unrolling."""
    numbers = [context.builder.number(length) for length in lengths]
    return None not in numbers and math.prod(int(one or 0) for one in numbers) <= _MOST_TERMS


def _by_blas(context: Context, left: Tensor, right: Tensor, along: Value) -> Tensor:
    builder = context.builder
    lengths = context.length(left.lengths[0]), context.length(right.lengths[1])
    if builder.number(lengths[1]) == 1:
        return with_vector(context, left, right, along, lengths)
    if builder.number(lengths[0]) == 1:
        return transposed(
            with_vector(context, transposed(right), transposed(left), along, lengths[::-1])
        )
    one, is_left_transposed = in_memory(context, left)
    other, is_right_transposed = in_memory(context, right)
    out = context.array(left.dtype, lengths)
    flags = "nt"[is_left_transposed] + "nt"[is_right_transposed]
    sizes = sizes_of(context, (lengths[0], along, lengths[1]))
    builder.call(f"matmul_{flags}", sizes, [out, one, other])
    return context.held(out)
