"""Products of vectors with constant matrices of few rows or columns, as in regression.

A regression multiplies a data matrix by the coefficients, and its gradient multiplies the transpose
by the derivatives with respect to the rows. Each of the few columns becomes a constant buffer of
its own. Both products thus fuse into the loop that does all other work on the rows, which reads the
matrix once; BLAS would read it twice. The order of the sums differs from that of BLAS, so
`numba__fastmath` must allow it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from pytensor.configdefaults import config
from pytensor.graph.basic import Constant

from pytensor_fuse._native.lowering.tensors import Tensor, stored

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.annotations import BufferId, Context, Index, Node, Value


# Each column takes a memory stream, or a register for its sum.
_MOST: Final = 16


class DataProduct(NamedTuple):
    """A matrix times a vector.

    Attributes
    ----------
    matrix
        The constant, with the contracted axis last.
    vector
        The position of the vector among the operands.
    """

    matrix: np.ndarray[Any, Any]
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


def _streams(context: Context, rows: np.ndarray[Any, Any], dtype: str) -> list[BufferId]:
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
