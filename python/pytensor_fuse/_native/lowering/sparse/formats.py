"""Conversions between the sparse formats, and from and to arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._native.lowering.sparse.entries import all_entries, gatherable
from pytensor_fuse._native.lowering.sparse.matrices import SparseMatrix, in_order, other_format
from pytensor_fuse._native.lowering.sparse.structures import Structure
from pytensor_fuse._native.lowering.tensors import Tensor, stored

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import BufferId, Context, Value


def in_format(context: Context, matrix: SparseMatrix, storage: str) -> SparseMatrix:
    """Return a matrix in a format."""
    return matrix if matrix.format == storage else converted(context, matrix)


def converted(context: Context, matrix: SparseMatrix) -> SparseMatrix:
    """Return a matrix in the other format, with sorted entries along each major index.

    Duplicate entries are kept, in their original order.
    """
    builder, old = context.builder, matrix.structure
    n_entries, n_major = context.length(old.n_entries), context.length(old.n_minor)
    one = builder.index(1)
    bounds = context.filled("i32", [builder.op("add", n_major, one)])
    with all_entries(context, old) as entry:
        behind = builder.op("add", entry.minor, one)
        builder.store(
            bounds, (behind,), builder.constant("i32", 1), "add", is_guarded=old.is_checked
        )
    _add_up(context, bounds, n_major)
    following = context.temporary("i32", [n_major], is_once=False)
    context.nest(
        [n_major], lambda index: builder.store(following, index, builder.load(bounds, index))
    )
    indices = context.temporary("i32", [n_entries], is_once=False)
    values = context.temporary(matrix.dtype, [n_entries], is_once=False)
    with all_entries(context, old) as entry:
        place = builder.load(following, (entry.minor,))
        into = builder.cast(place, "i64")
        major = builder.cast(entry.major, "i32")
        value = matrix.values.at((entry.at,))
        builder.store(indices, (into,), major, is_guarded=old.is_checked)
        builder.store(values, (into,), value, is_guarded=old.is_checked)
        after = builder.op("add", place, builder.constant("i32", 1))
        builder.store(following, (entry.minor,), after, is_guarded=old.is_checked)
    sizes, storage = (n_entries, n_major, old.n_major), other_format(matrix.format)
    buffers = values, indices, bounds
    return matrix_of(context, buffers, sizes, storage, is_checked=old.is_checked)


def _add_up(context: Context, buffer: BufferId, length: Value) -> None:
    """Replace a vector by its cumulative sums, from its second element on."""
    builder = context.builder
    with builder.loop(length) as loop:
        place = (builder.op("add", loop.index, builder.index(1)),)
        total = builder.carried("i32")
        after = builder.op("add", total, builder.load(buffer, place))
        builder.store(buffer, place, after)
        builder.carry(loop, total, builder.constant("i32", 0), after)


def to_array(context: Context, matrix: SparseMatrix) -> Tensor:
    """Return a matrix as an array; duplicate entries are summed."""
    buffer = context.filled(matrix.dtype, matrix.lengths)
    add_entries(context, buffer, matrix)
    return stored(context.builder, buffer)


def add_entries(context: Context, buffer: BufferId, matrix: SparseMatrix) -> None:
    """Add the entries of a matrix to an array of its shape."""
    builder = context.builder
    dtype = builder.program.buffers[buffer].dtype
    with all_entries(context, matrix.structure) as entry:
        place = in_order(matrix.format, entry.major, entry.minor)
        value = builder.cast(matrix.values.at((entry.at,)), dtype)
        builder.store(buffer, place, value, "add", is_guarded=matrix.structure.is_checked)


def from_array(context: Context, given: Tensor, storage: str) -> SparseMatrix:
    """Return the nonzero elements of an array as a sparse matrix."""
    builder = context.builder
    lengths = [context.length(length) for length in given.lengths]
    n_major, n_minor = lengths if storage == "csr" else lengths[::-1]
    zero = builder.index(0)
    given = gatherable(context, given)

    def element(major: Value, minor: Value) -> Value:
        return given.at(in_order(storage, major, minor))

    def is_there(value: Value) -> Value:
        return builder.cast(builder.cast(value, "bool"), "i64")

    with builder.loop(n_major) as outer:
        with builder.loop(n_minor) as inner:
            here = is_there(element(outer.index, inner.index))
            row = builder.reduce(inner, "add", zero, here)
        n_entries = builder.reduce(outer, "add", zero, row)
    # Each element is stored, and overwritten if it is zero: no branch, but room for one more.
    room = [builder.op("add", n_entries, builder.index(1))]
    indices = context.temporary("i32", room, is_once=False)
    values = context.temporary(given.dtype, room, is_once=False)
    bounds = context.temporary("i32", [builder.op("add", n_major, builder.index(1))], is_once=False)
    builder.store(bounds, (zero,), builder.constant("i32", 0))
    with builder.loop(n_major) as outer:
        so_far = builder.carried("i64")
        with builder.loop(n_minor) as inner:
            at = builder.carried("i64")
            value = element(outer.index, inner.index)
            builder.store(indices, (at,), builder.cast(inner.index, "i32"))
            builder.store(values, (at,), value)
            after = builder.op("add", at, is_there(value))
            end = builder.carry(inner, at, so_far, after)
        following = builder.op("add", outer.index, builder.index(1))
        builder.store(bounds, (following,), builder.cast(end, "i32"))
        builder.carry(outer, so_far, zero, end)
    sizes = n_entries, n_major, n_minor
    return matrix_of(context, (values, indices, bounds), sizes, storage, is_checked=False)


def matrix_of(
    context: Context,
    buffers: tuple[BufferId, BufferId, BufferId],
    sizes: tuple[Value, Value, Value],
    storage: str,
    *,
    is_checked: bool,
) -> SparseMatrix:
    """Return the matrix whose parts are in memory.

    Parameters
    ----------
    context
        The lowering.
    buffers
        The values, their minor indices, and the bounds of major indices. The first two may have
        room for more entries.
    sizes
        The numbers of entries, of major and of minor indices.
    storage
        The format.
    is_checked
        Whether an earlier check established that the indices are in bounds.
    """
    builder, (n_entries, n_major, n_minor) = context.builder, sizes
    length = context.length(n_entries)
    # A buffer of exactly this length can become a result without a copy.
    values, indices = (
        one if one.lengths[0] == length else Tensor(one.dtype, [n_entries], one.at)
        for one in (stored(builder, buffer) for buffer in buffers[:2])
    )
    bounds = stored(builder, buffers[2])
    structure = Structure(indices, bounds, n_major, n_minor, is_checked=is_checked)
    return SparseMatrix(builder, values, structure, storage)
