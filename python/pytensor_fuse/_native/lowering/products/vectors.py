"""Products of vectors with matrices: by loop nests, or by BLAS.

A loop over the rows of a tall matrix can fuse with all other work on each row, and compute both
products of a regression, ``X @ beta`` and ``X.T @ g``, in one pass. If the matrix is row-major,
BLAS uses registers better than a loop that gathers one element of each of many rows at once, unless
there are few columns; and a product with the transpose alone is faster by BLAS. If the matrix is
column-major, the loop is faster for every number of columns that fits into registers.

Each of the few columns (or rows) of a constant matrix becomes a constant buffer of its own, so that
loops read the matrix once; BLAS would read it twice. The order of the sums differs from that of
BLAS, so `numba__fastmath` must allow it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from pytensor.configdefaults import config
from pytensor.graph.basic import Constant

from pytensor_fuse._native.lowering.matrices.operands import in_memory, sizes_of
from pytensor_fuse._native.lowering.tensors import Tensor, stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.types import Array, BufferId, Context, Index, Node, Value

# Each column takes a memory stream, or a register for its sum.
_MOST: Final = 16
# With more contiguous columns, BLAS is faster.
_MOST_BY_ROWS: Final = 6


def with_vector(
    context: Context, matrix: Tensor, column: Tensor, along: Value, lengths: Sequence[Value]
) -> Tensor:
    """Return the product of a matrix and a vector.

    Parameters
    ----------
    context
        The lowering.
    matrix, column
        The matrix, and the vector as a matrix of one column.
    along
        The length of each sum.
    lengths
        The lengths of the product.
    """
    builder = context.builder
    n_along, n_kept = builder.number(along), builder.number(context.length(lengths[0]))
    if _is_short(n_along, n_kept) and _is_by_loop(context, matrix, int(n_along or 0), is_long=True):
        return _of_rows(context, matrix, column, int(n_along or 0), lengths)
    if _is_short(n_kept, n_along) and _is_by_loop(context, matrix, int(n_kept or 0), is_long=False):
        return _of_columns(context, matrix, column, along, lengths)
    return _by_blas(context, matrix, column, along, lengths)


def _is_short(number: float | None, other: float | None) -> bool:
    """Whether the elements along an axis fit into registers, and it is not the longer axis."""
    return number is not None and number <= _MOST and (other is None or number <= other)


def _is_by_loop(context: Context, matrix: Tensor, n_short: int, *, is_long: bool) -> bool:
    """Whether a loop along the long axis of a matrix is faster than BLAS.

    Parameters
    ----------
    context
        The lowering.
    matrix
        The matrix.
    n_short
        The length of its other axis.
    is_long
        Whether the product has the long axis; otherwise the sums run along it.
    """
    if not context.builder.program.reassociates:
        # The order of the sums would differ from that of BLAS.
        return False
    layout = matrix.layout
    short = int(is_long)
    if layout is not None and layout.axes[short] == 0 and layout.axes[1 - short] == 1:
        return True
    if n_short > _MOST_BY_ROWS or layout is None:
        return False
    # The product with the transpose fuses into the same loop.
    return is_long or (layout.buffer, layout.prefix) in context.by_rows


def _of_rows(
    context: Context, matrix: Tensor, column: Tensor, n_along: int, lengths: Sequence[Value]
) -> Tensor:
    """Return a product with short sums, each unrolled."""
    if matrix.layout is not None:
        context.by_rows.add((matrix.layout.buffer, matrix.layout.prefix))
    builder, zero = context.builder, context.builder.index(0)

    def total(index: Index) -> Value:
        # The sum starts from 0.0, as in BLAS: a sum of -0.0 alone is 0.0.
        found = builder.constant(matrix.dtype, 0.0)
        for place in map(builder.index, range(n_along)):
            term = builder.op("mul", matrix.at((index[0], place)), column.at((place, zero)))
            found = builder.op("add", found, term)
        return found

    return context.materialized(matrix.dtype, lengths, total)


def _of_columns(
    context: Context, matrix: Tensor, column: Tensor, along: Value, lengths: Sequence[Value]
) -> Tensor:
    """Return a product of few long sums, all computed by one loop."""
    builder, zero = context.builder, context.builder.index(0)
    initial = builder.constant(matrix.dtype, 0.0)
    places = [builder.index(place) for place in range(int(builder.number(lengths[0]) or 0))]
    with builder.loop(along) as loop:
        element = column.at((loop.index, zero))
        totals = [
            builder.reduce(
                loop, "add", initial, builder.op("mul", matrix.at((place, loop.index)), element)
            )
            for place in places
        ]
    out, prefix = array = context.array(matrix.dtype, lengths)
    for place, total in zip(places, totals, strict=True):
        builder.store(out, (*prefix, place, zero), total)
    return context.held(array)


def _by_blas(
    context: Context, matrix: Tensor, column: Tensor, along: Value, lengths: Sequence[Value]
) -> Tensor:
    builder = context.builder
    one, is_transposed = in_memory(context, matrix)
    other, _ = in_memory(context, column)
    is_known = builder.number(along) not in (None, 0)
    out = context.array(matrix.dtype, lengths, is_once=is_known)
    if not is_known:
        # BLAS leaves the result unchanged if the sums are empty.
        context.fill_with(out, 0.0)
    name = ("" if is_known else "add_") + "matvec_" + "nt"[is_transposed]
    builder.call(name, sizes_of(context, (lengths[0], along)), [out, one, other])
    return context.held(out)


class DataProduct(NamedTuple):
    """A matrix times a vector.

    Attributes
    ----------
    matrix
        The constant, with the contracted axis last.
    vector
        The position of the vector among the operands.
    """

    matrix: Array
    vector: int


def data_product(node: Node) -> DataProduct | None:
    """Return the product with constant data that a node computes, or None."""
    left, right = node.inputs
    if not config.numba__fastmath or len({one.type.dtype for one in (left, right)}) > 1:
        return None
    if left.type.dtype not in ("float64", "float32"):
        return None
    if right.type.shape[1] == 1 and isinstance(left, Constant):
        found = DataProduct(np.asarray(left.data), 1)
    elif left.type.shape[0] == 1 and isinstance(right, Constant):
        found = DataProduct(np.asarray(right.data).T, 0)
    else:
        return None
    n_along = node.inputs[found.vector].type.shape[1 - found.vector]
    if n_along != found.matrix.shape[1] or min(found.matrix.shape) > _MOST:
        return None
    return found


def by_streams(context: Context, data: DataProduct, given: Tensor, dtype: str) -> Tensor:
    """Return the product of a constant matrix and a vector."""
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
                # The sum starts from 0.0, as in BLAS: a sum of -0.0 alone is 0.0.
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


def _streams(context: Context, rows: Array, dtype: str) -> list[BufferId]:
    """Return a constant buffer for each row, shared between equal matrices."""
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
