"""Construction of sparse matrices from arrays, and conversions back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytensor.sparse import basic

from pytensor_fuse._native.lowering.registry import dtype_refusal, lower
from pytensor_fuse._native.lowering.sparse.entries import all_entries, entries_of
from pytensor_fuse._native.lowering.sparse.formats import from_array, to_array
from pytensor_fuse._native.lowering.sparse.matrices import (
    SparseMatrix,
    as_matrix,
    format_refusal,
    in_order,
)
from pytensor_fuse._native.lowering.sparse.structures import (
    StructurePart,
    checked_structure,
    structure_of,
)
from pytensor_fuse._native.lowering.tensors import DTYPES, stored

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Context, Node, Tensors


_NOT_SQUARE: Final = "Diag only apply on square matrix"
_NOT_TWO: Final = "Shape should be an array of length 2"


def refuses(op: Any, node: Node) -> str | None:
    """Return the reason why a node with sparse variables cannot be lowered, or None."""
    return dtype_refusal(node) or format_refusal(node)


@lower.register(basic.CSMProperties, refuses=refuses)
def _properties(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    return as_matrix(inputs[0]).properties()


@lower.register(basic.CSM, refuses=refuses)
def _csm(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder = context.builder
    values, indices, indptr, shape = inputs
    context.require_equal(shape.lengths[0], builder.index(2), ValueError, _NOT_TWO)
    rows, columns = (builder.cast(shape.at((builder.index(axis),)), "i64") for axis in range(2))
    major, minor = in_order(op.format, rows, columns)
    known = structure_of(indices, indptr)
    if isinstance(shape, StructurePart) and shape.structure is known and shape.storage == op.format:
        # The op puts new values at the entries of an existing matrix.
        major, minor = known.n_major, known.n_minor
    structure = checked_structure(context, values, indices, indptr, major, minor)
    return [SparseMatrix(builder, values, structure, op.format)]


@lower.register(basic.CSMGrad, refuses=refuses)
def _csm_grad(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    """Return for each entry of one matrix the sum of another matrix's entries at its position."""
    builder = context.builder
    values, indices, indptr, shape, g_values, g_indices, g_indptr, _ = inputs
    dtype = DTYPES[node.outputs[0].type.dtype]
    known = structure_of(indices, indptr)
    if known is not None:
        n_major, n_minor = known.n_major, known.n_minor
    else:
        n_major = builder.op("sub", indptr.lengths[0], builder.index(1))
        rows, columns = (builder.cast(shape.at((builder.index(axis),)), "i64") for axis in range(2))
        n_minor = builder.op("select", builder.op("eq", n_major, rows), columns, rows)
    mine = checked_structure(context, values, indices, indptr, n_major, n_minor)
    theirs = checked_structure(context, g_values, g_indices, g_indptr, n_major, n_minor)
    if mine is theirs and mine.is_sorted():
        same = context.of_dtype(g_values, dtype)
        return [context.materialized(dtype, same.lengths, same.at)]
    is_checked = mine.is_checked or theirs.is_checked
    sums = context.filled(g_values.dtype, [n_minor])
    out = context.temporary(dtype, [mine.n_entries], is_once=False)
    zero = builder.constant(g_values.dtype, 0)
    with builder.loop(n_major) as outer:
        with entries_of(context, theirs, outer.index) as entry:
            value = g_values.at((entry.at,))
            builder.store(sums, (entry.minor,), value, "add", is_guarded=is_checked)
        with entries_of(context, mine, outer.index) as entry:
            total = builder.load(sums, (entry.minor,))
            builder.store(out, (entry.at,), builder.cast(total, dtype), is_guarded=is_checked)
        with entries_of(context, theirs, outer.index) as entry:
            builder.store(sums, (entry.minor,), zero, is_guarded=is_checked)
    return [stored(builder, out)]


@lower.register(basic.Transpose, refuses=refuses)
def _transpose(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    return [as_matrix(inputs[0]).transposed]


@lower.register(basic.Cast, refuses=refuses)
def _cast(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    return [as_matrix(inputs[0]).copied(context, DTYPES[op.out_type])]


@lower.register(basic.DenseFromSparse, refuses=refuses)
def _to_array(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    return [to_array(context, as_matrix(inputs[0]))]


@lower.register(basic.SparseFromDense, refuses=refuses)
def _from_array(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    return [from_array(context, inputs[0], op.format)]


@lower.register(basic.Diag, refuses=refuses)
def _diagonal(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder, matrix = context.builder, as_matrix(inputs[0])
    rows, columns = matrix.lengths
    length = context.require_equal(rows, columns, ValueError, _NOT_SQUARE)
    out = context.filled(matrix.dtype, [length])
    zero = builder.constant(matrix.dtype, 0)
    with all_entries(context, matrix.structure) as entry:
        is_there = builder.op("eq", entry.major, entry.minor)
        value = builder.op("select", is_there, matrix.values.at((entry.at,)), zero)
        builder.store(out, (entry.major,), value, "add")
    return [stored(builder, out)]
