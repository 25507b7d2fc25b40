"""QR factorizations, with and without pivoting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.tensor.linalg.decomposition.qr import QR

from pytensor_fuse._native.lowering.matrices import operands
from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor
from pytensor_fuse._native.program.model import Operand

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Context, Index, Node, Tensors, Value


def _refuses(op: QR, node: Node) -> str | None:
    # PyTensor's Numba implementation returns another shape than the op declares.
    if op.mode == "raw":
        return "a QR factorization in mode raw"
    rows, columns = node.inputs[0].type.shape
    if op.mode == "r" and (rows is None or columns is None or rows > columns):
        return "a QR factorization in mode r of a matrix that may have more rows than columns"
    return operands.real_refusal(node)


@lower.register(QR, refuses=_refuses)
def _qr(op: QR, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder, dtype = context.builder, DTYPES[node.outputs[0].type.dtype]
    matrix = context.of_dtype(inputs[0], dtype)
    rows, columns = (context.length(length) for length in matrix.lengths)
    least = rows if rows == columns else builder.op("minimum", rows, columns)
    factor = context.copy_of(operands.transposed(matrix))
    scales = context.temporary(dtype, [least], is_once=False)
    length, room = operands.work(context, dtype, (operands.BLOCK + 2, columns), (operands.BLOCK,))
    sizes = [*operands.sizes_of(context, [rows, columns, least]), length]
    order: Tensors = []
    if op.pivoting:
        pivots = context.temporary("i32", [columns], is_once=False)
        context.fill(Operand(pivots), lambda _: builder.constant("i32", 0))
        builder.call("geqp3", sizes, [factor, pivots, scales, room])
        is_empty = context.is_empty([rows, columns])

        def column(index: Index) -> Value:
            pivot = builder.op("sub", builder.load(pivots, index), builder.constant("i32", 1))
            return builder.op("select", is_empty, builder.constant("i32", 0), pivot)

        order = [context.held(context.copy_of(Tensor("i32", [columns], column)))]
    else:
        builder.call("geqrf", sizes, [factor, scales, room])
    kept = least if op.mode == "economic" else rows
    of_columns = context.held(factor)

    def of_upper(index: Index) -> Value:
        row, column = index
        is_in = builder.op("le", row, column)
        element = of_columns.at((column, row))
        return builder.op("select", is_in, element, builder.constant(dtype, 0.0))

    upper = context.held(context.copy_of(Tensor(dtype, [kept, columns], of_upper)))
    if op.mode == "r":
        return [upper, *order]
    orthogonal = context.array(dtype, [kept, rows], is_once=False)
    buffer, prefix = orthogonal
    if kept == least:
        context.fill(orthogonal, of_columns.at)
    else:
        context.fill_with(orthogonal, 0.0)
        with builder.loop(least) as outer, builder.loop(rows) as inner:
            at = outer.index, inner.index
            builder.store(buffer, prefix + at, of_columns.at(at))
    length, room = operands.work(context, dtype, (operands.BLOCK, kept))

    # Without columns, PyTensor returns zeros where the identity would be correct.
    def multiply_out() -> None:
        sizes = operands.sizes_of(context, [rows, kept, least])
        builder.call("orgqr", [*sizes, length], [orthogonal, scales, room])

    context.branch(builder.op("gt", least, builder.index(0)), multiply_out)
    return [operands.transposed(context.held(orthogonal)), upper, *order]
