"""Singular value decomposition.

If LAPACK fails, all results are NaN, and the singular vectors of an empty matrix are zeros, as in
PyTensor's Numba implementation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.tensor.linalg.decomposition.svd import SVD

from pytensor_fuse._native.lowering.matrices import operands
from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.tensors import DTYPES

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Context, Node, Tensors


@lower.register(SVD, refuses=operands.refuses_not_real)
def _svd(op: SVD, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder, dtype = context.builder, DTYPES[node.outputs[0].type.dtype]
    matrix = context.of_dtype(inputs[0], dtype)
    rows, columns = (context.length(length) for length in matrix.lengths)
    least = rows if rows == columns else builder.op("minimum", rows, columns)
    copied = context.copy_of(matrix)
    values = context.array(dtype, [least], is_once=False)
    if not op.compute_uv:
        name, lengths = "svd_values", []
    elif op.full_matrices:
        name, lengths = "svd_full", [(rows, rows), (columns, columns)]
    else:
        name, lengths = "svd_thin", [(rows, least), (least, columns)]
    arrays = [context.array(dtype, shape, is_once=False) for shape in lengths]
    # At most 4 k**2 + 7 k for vectors in addition to blocks of columns, and 7 k for values alone.
    of_vectors = [(4, least, least)] if op.compute_uv else []
    length, room = operands.work(
        context, dtype, *of_vectors, (10, least), (operands.BLOCK, rows), (operands.BLOCK, columns)
    )
    n_integers, integers = operands.work(context, "i32", (8, least))
    sizes = operands.sizes_of(context, [rows, columns, least])
    is_empty = context.is_empty([rows, columns])

    def clear() -> None:
        for array in arrays:
            context.fill_with(array, 0.0)

    def decompose() -> None:
        report = builder.call(
            name, [*sizes, length, n_integers], [copied, values, *arrays, room, integers]
        )
        succeeded = operands.has_succeeded(context, report)
        for array in (values, *arrays):
            context.fill_unless(succeeded, array)

    context.branch(is_empty, clear, decompose)
    held = [context.held(array) for array in (values, *arrays)]
    return [held[1], held[0], held[2]] if op.compute_uv else held
