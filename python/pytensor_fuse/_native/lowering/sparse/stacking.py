"""Stacking, row selection and sorting of sparse matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytensor.sparse import basic

from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.sparse.construction import refuses
from pytensor_fuse._native.lowering.sparse.entries import guarding
from pytensor_fuse._native.lowering.sparse.formats import in_format, matrix_of
from pytensor_fuse._native.lowering.sparse.matrices import SparseMatrix, as_matrix
from pytensor_fuse._native.lowering.tensors import DTYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.types import Context, Index, Node, Tensors, Value


# Messages of Numba mode.
_MISMATCH: Final = "Mismatching dimensions along axis {axis}"


@lower.register(basic.HStack, basic.VStack, refuses=refuses)
def _stack(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    axis = int(isinstance(op, basic.HStack))
    storage = ("csr", "csc")[axis]
    blocks = [in_format(context, as_matrix(given), storage) for given in inputs]
    message = _MISMATCH.format(axis=1 - axis)
    n_minor = blocks[0].structure.n_minor
    for block in blocks[1:]:
        n_minor = context.require_equal(block.structure.n_minor, n_minor, ValueError, message)
    stacked = _stacked(context, blocks, n_minor, DTYPES[op.dtype])
    return [in_format(context, stacked, op.format)]


def _stacked(
    context: Context, blocks: Sequence[SparseMatrix], n_minor: Value, dtype: str
) -> SparseMatrix:
    """Return the concatenation of matrices along the major axis."""
    builder = context.builder
    majors, entries = [builder.index(0)], [builder.index(0)]
    for block in blocks:
        majors.append(builder.op("add", majors[-1], block.structure.n_major))
        entries.append(builder.op("add", entries[-1], block.structure.n_entries))
    indices = context.temporary("i32", [entries[-1]], is_once=False)
    values = context.temporary(dtype, [entries[-1]], is_once=False)
    bounds = context.temporary("i32", [builder.op("add", majors[-1], builder.index(1))])
    builder.store(bounds, (builder.index(0),), builder.constant("i32", 0))
    buffers = values, indices, bounds
    for block, major, entry in zip(blocks, majors, entries, strict=False):
        _copy_block(context, block, buffers, major, entry)
    is_checked = any(block.structure.is_checked for block in blocks)
    sizes = entries[-1], majors[-1], n_minor
    return matrix_of(context, buffers, sizes, blocks[0].format, is_checked=is_checked)


def _copy_block(
    context: Context, block: SparseMatrix, into: tuple[int, int, int], major: Value, entry: Value
) -> None:
    """Copy the parts of a matrix behind those of others.

    Parameters
    ----------
    context
        The lowering.
    block
        The matrix.
    into
        The values, indices and bounds of the result.
    major, entry
        The number of major indices and of entries before the matrix.
    """
    builder, structure = context.builder, block.structure
    values, indices, bounds = into
    dtype = builder.program.buffers[values].dtype

    def copy_entry(index: Index) -> None:
        place = (builder.op("add", entry, index[0]),)
        builder.store(indices, place, structure.indices.at(index))
        builder.store(values, place, builder.cast(block.values.at(index), dtype))

    def copy_bound(index: Index) -> None:
        behind = builder.op("add", index[0], builder.index(1))
        place = (builder.op("add", major, behind),)
        end = builder.op("add", structure.indptr.at((behind,)), builder.cast(entry, "i32"))
        builder.store(bounds, place, end)

    with guarding(context, structure):
        context.nest([structure.n_entries], copy_entry)
        context.nest([structure.n_major], copy_bound)
