"""Products of matrices: by BLAS, or by loops of our own where these are sooner.

A regression multiplies a matrix of data by its coefficients, and the gradient by the rows of the
log-density multiplies the same matrix, transposed. Its few columns become constants of their own,
which the loop over the rows reads side by side: both products are a part of the loop that does all
other work on the rows, and read the matrix once. BLAS reads it twice. BLAS takes sums in an order
of its own, and so does this, where `numba__fastmath` allows it.

Products with few terms in all are written out, and products with one term in each sum are
elementwise. Products of integers are loops, as BLAS has none. All others are calls of BLAS, which
transposes a matrix as it reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from pytensor.configdefaults import config
from pytensor.graph.basic import Constant
from pytensor.tensor.blas import BatchedDot
from pytensor.tensor.math import Dot

from pytensor_fuse._native.lowering.batches import Batch, for_each
from pytensor_fuse._native.lowering.matrices import (
    fill_with,
    in_memory,
    of_dtype,
    real_refusal,
    sizes_of,
    transposed,
)
from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor, stored
from pytensor_fuse._native.program.operations import FLOATS
from pytensor_fuse._pytensor.versions import PRODUCT_MISMATCH as MISMATCH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Apply

    from pytensor_fuse._native.lowering.context import Context
    from pytensor_fuse._native.lowering.tensors import Index
    from pytensor_fuse._native.program.model import BufferId, Value

# The text of PyTensor's Python implementation, without the arrays; Numba's checks nothing.
_BATCH_MISMATCH: Final = "Inputs must have the same size in axis 0, but have sizes [{0}, {1}]."
# Each is a stream of memory, or a register for a sum.
_MOST: Final = 16
# Products of so many terms in all are written out.
_MOST_TERMS: Final = 64


class _DataProduct(NamedTuple):
    """A matrix times a vector.

    Attributes
    ----------
    matrix
        The constant, with the axis along which it is multiplied last.
    vector
        Which input the vector is.
    """

    matrix: np.ndarray[Any, Any]
    vector: int


def _data_product(node: Apply[Any]) -> _DataProduct | None:
    """Return the product of data that a node is, or None."""
    left, right = node.inputs
    if not config.numba__fastmath or len({one.type.dtype for one in (left, right)}) > 1:
        return None
    if left.type.dtype not in ("float64", "float32"):
        return None
    if right.type.shape[1] == 1 and isinstance(left, Constant):
        found = _DataProduct(np.asarray(left.data), 1)
    elif left.type.shape[0] == 1 and isinstance(right, Constant):
        found = _DataProduct(np.asarray(right.data).T, 0)
    else:
        return None
    n_along = node.inputs[found.vector].type.shape[1 - found.vector]
    if n_along != found.matrix.shape[1] or min(found.matrix.shape) > _MOST:
        return None
    return found


def _refuses(_: Any, node: Apply[Any]) -> str | None:
    return real_refusal(node)


@lower.register(Dot, refuses=_refuses)
def _dot(_: Dot, node: Apply[Any], context: Context, inputs: list[Tensor]) -> list[Tensor]:
    dtype = DTYPES[node.outputs[0].type.dtype]
    data = _data_product(node)
    if data is not None:
        return [_by_streams(context, data, inputs[data.vector], dtype)]
    return [product(context, *[of_dtype(context, one, dtype) for one in inputs])]


@lower.register(BatchedDot, refuses=_refuses)
def _batched_dot(
    _: BatchedDot, node: Apply[Any], context: Context, inputs: list[Tensor]
) -> list[Tensor]:
    dtype = DTYPES[node.outputs[0].type.dtype]
    lengths = [one.lengths[0] for one in inputs]
    length = context.require_equal(*lengths, TypeError, _BATCH_MISMATCH)
    batches = [Batch(of_dtype(context, one, dtype), (False,)) for one in inputs]
    return for_each(context, [length], batches, lambda given: [product(context, *given)])


def product(context: Context, left: Tensor, right: Tensor) -> Tensor:
    """Return the product of two matrices of one dtype."""
    builder, dtype = context.builder, left.dtype
    along = context.require_equal(left.lengths[1], right.lengths[0], ValueError, MISMATCH)
    lengths = context.length(left.lengths[0]), context.length(right.lengths[1])
    n_along = builder.number(along)

    def term(index: Index, at: Value) -> Value:
        return builder.op("mul", left.at((index[0], at)), right.at((at, index[1])))

    if n_along == 1:
        # Stored at once: another op may overwrite a factor before the product is read.
        return context.materialized(dtype, lengths, lambda index: term(index, builder.index(0)))
    zero = builder.constant(dtype, 0)
    if _is_small((*lengths, along), context):

        def total(index: Index) -> Value:
            found = zero
            for place in range(int(n_along or 0)):
                found = builder.op("add", found, term(index, builder.index(place)))
            return found

        return context.materialized(dtype, lengths, total)
    if dtype not in FLOATS or all(builder.number(one) == 1 for one in lengths):

        def by_loop(index: Index) -> Value:
            with builder.loop(along) as loop:
                return builder.reduce(loop, "add", zero, term(index, loop.index))

        return context.materialized(dtype, lengths, by_loop)
    return _by_blas(context, left, right, along)


def _is_small(lengths: Sequence[Value], context: Context) -> bool:
    """Whether a product has so few terms that they are written out."""
    n_terms = 1
    for length in lengths:
        number = context.builder.number(length)
        if number is None:
            return False
        n_terms *= int(number)
    return n_terms <= _MOST_TERMS


def _by_blas(context: Context, left: Tensor, right: Tensor, along: Value) -> Tensor:
    builder = context.builder
    lengths = context.length(left.lengths[0]), context.length(right.lengths[1])
    if builder.number(lengths[1]) == 1:
        return _with_vector(context, left, right, along, lengths)
    if builder.number(lengths[0]) == 1:
        return transposed(
            _with_vector(context, transposed(right), transposed(left), along, lengths[::-1])
        )
    one, is_left_transposed = in_memory(context, left)
    other, is_right_transposed = in_memory(context, right)
    out = context.array(left.dtype, lengths)
    flags = "nt"[is_left_transposed] + "nt"[is_right_transposed]
    sizes = sizes_of(context, (lengths[0], along, lengths[1]))
    builder.call(f"matmul_{flags}", sizes, [out, one, other])
    return context.held(out)


def _with_vector(
    context: Context, matrix: Tensor, column: Tensor, along: Value, lengths: Sequence[Value]
) -> Tensor:
    builder = context.builder
    one, is_transposed = in_memory(context, matrix)
    other, _ = in_memory(context, column)
    is_known = builder.number(along) not in (None, 0)
    out = context.array(matrix.dtype, lengths, is_once=is_known)
    if not is_known:
        # BLAS leaves the result as it is where there is nothing to add up.
        fill_with(context, out, 0.0)
    name = ("" if is_known else "add_") + "matvec_" + "nt"[is_transposed]
    builder.call(name, sizes_of(context, (lengths[0], along)), [out, one, other])
    return context.held(out)


def _by_streams(context: Context, data: _DataProduct, given: Tensor, dtype: str) -> Tensor:
    builder, n_kept = context.builder, data.matrix.shape[0]

    def vector(at: Value) -> Value:
        return given.at((at, builder.index(0)) if data.vector else (builder.index(0), at))

    out = context.temporary(dtype, (builder.index(n_kept),))
    zero = builder.constant(dtype, 0.0)
    if data.matrix.shape[1] <= _MOST:
        columns = _streams(context, data.matrix.T, dtype)
        with builder.loop(builder.index(n_kept)) as row:
            total = zero
            for number, column in enumerate(columns):
                element = builder.load(column, (row.index,))
                term = builder.op("mul", element, vector(builder.index(number)))
                # From 0.0 on, as BLAS: a sum of -0.0 alone is 0.0.
                total = builder.op("add", total, term)
            builder.store(out, (row.index,), total)
    else:
        rows = _streams(context, data.matrix, dtype)
        with builder.loop(builder.index(data.matrix.shape[1])) as loop:
            element = vector(loop.index)
            totals = [
                builder.reduce(
                    loop, "add", zero, builder.op("mul", builder.load(row, (loop.index,)), element)
                )
                for row in rows
            ]
        for number, total in enumerate(totals):
            builder.store(out, (builder.index(number),), total)
    array = stored(builder, out)

    def at(index: Index) -> Value:
        return array.at(index[:1] if data.vector else index[1:])

    lengths = (builder.index(n_kept), builder.index(1))
    return Tensor(dtype, lengths if data.vector else lengths[::-1], at)


def _streams(context: Context, rows: np.ndarray[Any, Any], dtype: str) -> list[BufferId]:
    """Return a constant buffer for each row, the same ones for the same rows."""
    rows = np.ascontiguousarray(rows)
    bits = rows.view(f"u{rows.dtype.itemsize}")
    for known, buffers in context.streams:
        if np.array_equal(known, bits) and known.dtype == bits.dtype:
            return buffers
    buffers = []
    for row in rows:
        buffers.append(context.builder.given("constant", len(context.constants), dtype, row.shape))
        context.constants.append(row)
    context.streams.append((bits, buffers))
    return buffers
