"""Products of a constant matrix with a few columns, or a few rows, and a vector.

A regression multiplies a matrix of data by its coefficients, and the gradient by the rows of the
log-density multiplies the same matrix, transposed. Its few columns become constants of their own,
which the loop over the rows reads side by side: both products are a part of the loop that does all
other work on the rows, and read the matrix once. BLAS reads it twice.

BLAS takes sums in an order of its own, and so does this. All other products are left to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from pytensor.configdefaults import config
from pytensor.graph.basic import Constant
from pytensor.tensor.math import Dot

from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor, stored

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply, Variable

    from pytensor_fuse._native.lowering.context import Context
    from pytensor_fuse._native.lowering.tensors import Index
    from pytensor_fuse._native.program.model import BufferId, Value

# Each is a stream of memory, or a register for a sum.
_MOST: Final = 16
_WHY: Final = f"a product other than of a vector and a constant of at most {_MOST} rows or columns"


class _Product(NamedTuple):
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


def _product(node: Apply[Any]) -> _Product | None:
    """Return what a node multiplies, or None if this module has no rule for it."""
    left, right = node.inputs
    if right.type.shape[1] == 1 and isinstance(left, Constant):
        found = _Product(np.asarray(left.data), 1)
    elif left.type.shape[0] == 1 and isinstance(right, Constant):
        found = _Product(np.asarray(right.data).T, 0)
    else:
        return None
    n_along = node.inputs[found.vector].type.shape[1 - found.vector]
    if n_along != found.matrix.shape[1] or min(found.matrix.shape) > _MOST:
        return None
    return found


def may_be_of_data(node: Apply[Any]) -> bool:
    """Whether a product may have a rule once rewriting has folded what constants give."""
    left, right = node.inputs
    if not config.numba__fastmath:
        return False
    for matrix, is_vector in ((left, right.type.shape[1] == 1), (right, left.type.shape[0] == 1)):
        if is_vector and any(n is not None and n <= _MOST for n in matrix.type.shape):
            return _is_of_constants(matrix)
    return False


def _is_of_constants(variable: Variable[Any, Any]) -> bool:
    pending, seen = [variable], {variable}
    while pending:
        one = pending.pop()
        if one.owner is None:
            if not isinstance(one, Constant):
                return False
            continue
        new = [given for given in one.owner.inputs if given not in seen]
        seen.update(new)
        pending += new
    return True


def _refuses(_: Dot, node: Apply[Any]) -> str | None:
    dtypes = {variable.type.dtype for variable in (*node.inputs, *node.outputs)}
    if len(dtypes) > 1 or not dtypes <= {"float64", "float32"}:
        return "a product of other numbers than floats of one precision"
    if not config.numba__fastmath:
        return "the order of the sums of a product, which BLAS has"
    return None if _product(node) is not None else _WHY


@lower.register(Dot, refuses=_refuses)
def _dot(_: Dot, node: Apply[Any], context: Context, inputs: list[Tensor]) -> list[Tensor]:
    builder, product = context.builder, _product(node)
    assert product is not None
    given, n_kept = inputs[product.vector], product.matrix.shape[0]

    def vector(at: Value) -> Value:
        return given.at((at, builder.index(0)) if product.vector else (builder.index(0), at))

    dtype = DTYPES[node.outputs[0].type.dtype]
    out = context.temporary(dtype, (builder.index(n_kept),))
    zero = builder.constant(dtype, 0.0)
    if product.matrix.shape[1] <= _MOST:
        columns = _streams(context, product.matrix.T, dtype)
        with builder.loop(builder.index(n_kept)) as row:
            total = zero
            for number, column in enumerate(columns):
                element = builder.load(column, (row.index,))
                term = builder.op("mul", element, vector(builder.index(number)))
                # From 0.0 on, as BLAS: a sum of -0.0 alone is 0.0.
                total = builder.op("add", total, term)
            builder.store(out, (row.index,), total)
    else:
        rows = _streams(context, product.matrix, dtype)
        with builder.loop(builder.index(product.matrix.shape[1])) as loop:
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
        return array.at(index[:1] if product.vector else index[1:])

    lengths = (builder.index(n_kept), builder.index(1))
    return [Tensor(dtype, lengths if product.vector else lengths[::-1], at)]


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
