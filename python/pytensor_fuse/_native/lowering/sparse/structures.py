"""Structures: the positions of the entries of a sparse matrix, and their validation.

The *major* axis is that of rows in format csr, and that of columns in format csc; the other one is
*minor*. The entries of a major index are contiguous, between two elements of ``indptr``. A
transpose has the same parts, and so the same structure.

All structures are valid: ``indptr`` never decreases, it ends with the number of entries, and minor
indices are in bounds. For a matrix that is an argument, or comes from an op on arbitrary arrays,
one check establishes that, and accesses through its indices come after the check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pytensor_fuse._native.lowering.indexing.bounds import OUT_OF_BOUNDS
from pytensor_fuse._native.lowering.tensors import Tensor

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Array, Context, Value

_NOT_ONE_EACH: Final = "a sparse matrix has {0} values and {1} indices"
_MALFORMED: Final = "a sparse matrix has {0} elements of indptr for {1} rows or columns"
UNEVEN: Final = (
    "the indptr of a sparse matrix has to begin with 0, may not fall, and has to end with the "
    "number of its values"
)
# SciPy's indices have 32 bits.
_MOST: Final = (1 << 31) - 1


class Structure:
    """The positions of the entries of a sparse matrix.

    Attributes
    ----------
    indices
        The minor index of each entry.
    indptr
        The first entry of each major index, and the total number of entries.
    n_major, n_minor
        The lengths of the axes.
    is_checked
        Whether an earlier check established that the indices are in bounds.
    known
        The contents of the two arrays, if they are constants.
    """

    def __init__(
        self,
        indices: Tensor,
        indptr: Tensor,
        n_major: Value,
        n_minor: Value,
        *,
        is_checked: bool,
        known: tuple[Array, Array] | None = None,
    ) -> None:
        self.indices = StructurePart(indices, self)
        self.indptr = StructurePart(indptr, self)
        self.n_major = n_major
        self.n_minor = n_minor
        self.is_checked = is_checked
        self.known = known

    @property
    def n_entries(self) -> Value:
        """The number of entries."""
        return self.indices.lengths[0]

    def per_major(self) -> int | None:
        """Return the number of entries of each major index if it is known and the same for all."""
        if self.known is None:
            return None
        indices, indptr = self.known
        n_major = len(indptr) - 1
        if n_major == 0:
            return 0
        each, rest = divmod(len(indices), n_major)
        is_even = not rest and bool((indptr[1:] - indptr[:-1] == each).all())
        return each if is_even else None

    def all_have(self, least: int) -> bool | None:
        """Return whether all major indices have this many entries; None if only some may have."""
        if self.known is None:
            return None
        counts = np.diff(self.known[1])
        enough = counts >= least
        return bool(enough.all()) if enough.all() or not enough.any() else None

    def is_sorted(self) -> bool:
        """Whether the entries of each major index are known to be sorted without duplicates."""
        if self.known is None:
            return False
        indices, indptr = self.known
        rises = indices[1:] > indices[:-1]
        ends = indptr[1:-1]
        rises[ends[(ends > 0) & (ends < len(indices))] - 1] = True
        return bool(rises.all())


class StructurePart(Tensor):
    """An array of a structure, or a shape, with a reference to the structure.

    Attributes
    ----------
    structure
        The structure.
    storage
        The format of the matrix whose shape it is; empty for other arrays.
    """

    __slots__ = ("storage", "structure")

    def __init__(self, part: Tensor, structure: Structure, storage: str = "") -> None:
        # There is no buffer, so that no op overwrites parts that other matrices may share.
        super().__init__(part.dtype, part.lengths, part.at, None, part.data, part.layout)
        self.structure = structure
        self.storage = storage


def checked_structure(
    context: Context,
    values: Tensor | None,
    indices: Tensor,
    indptr: Tensor,
    n_major: Value,
    n_minor: Value,
) -> Structure:
    """Return the structure of arbitrary arrays, with checks of its validity.

    Parameters
    ----------
    context
        The lowering.
    values
        The values, one for each entry; None if there are none.
    indices, indptr
        The arrays, of any integer dtype.
    n_major, n_minor
        The lengths of the axes.
    """
    builder = context.builder
    indices, indptr = (_as_indices(context, one) for one in (indices, indptr))
    n_entries = context.length(indices.lengths[0])
    if values is not None:
        n_entries = context.require_equal(values.lengths[0], n_entries, ValueError, _NOT_ONE_EACH)
    known = structure_of(indices, indptr)
    if known is not None:
        lengths = [context.length(one) for one in (known.n_major, known.n_minor)]
        if lengths == [context.length(one) for one in (n_major, n_minor)]:
            return known
    n_bounds = context.length(indptr.lengths[0])
    fits = builder.op("eq", n_bounds, builder.op("add", n_major, builder.index(1)))
    fits = builder.op("and", fits, builder.op("ge", n_major, builder.index(0)))
    fits = builder.op("and", fits, builder.op("ge", n_minor, builder.index(0)))
    builder.check(fits, ValueError, _MALFORMED, n_bounds, n_major)
    with builder.guarding():
        _check_bounds(context, indptr, n_major, n_entries)
        _check_minor(context, indices, n_entries, n_minor)
    return Structure(indices, indptr, n_major, n_minor, is_checked=True)


def structure_of(indices: Tensor, indptr: Tensor) -> Structure | None:
    """Return the structure of which two arrays are the parts, or None if there is none."""
    if isinstance(indices, StructurePart) and isinstance(indptr, StructurePart):
        known = indices.structure
        is_it = indices is known.indices and indptr is known.indptr
        return known if is_it else None
    return None


def _as_indices(context: Context, tensor: Tensor) -> Tensor:
    """Return an index array in the dtype of sparse matrices that no op overwrites.

    Larger numbers wrap around.
    """
    builder = context.builder
    if tensor.dtype == "i32":
        if isinstance(tensor, StructurePart) or tensor.data is not None:
            return tensor
        about = None if tensor.buffer is None else builder.program.buffers[tensor.buffer]
        is_given = about is not None and about.kind == "input"
        if is_given and tensor.buffer not in context.overwritable:
            return tensor
    return context.materialized("i32", tensor.lengths, context.of_dtype(tensor, "i32").at)


def _check_bounds(context: Context, indptr: Tensor, n_major: Value, n_entries: Value) -> None:
    """Check that ``indptr`` starts at 0, never decreases, and ends with the number of entries."""
    builder, zero = context.builder, context.builder.index(0)

    def at(index: Value) -> Value:
        return builder.cast(indptr.at((index,)), "i64")

    fits = builder.op("eq", at(zero), zero)
    fits = builder.op("and", fits, builder.op("eq", at(n_major), n_entries))

    def rises(major: Value) -> Value:
        following = builder.op("add", major, builder.index(1))
        return builder.op("le", indptr.at((major,)), indptr.at((following,)))

    fits = builder.op("and", fits, context.all_hold(n_major, rises))
    builder.check(fits, ValueError, UNEVEN)


def _check_minor(context: Context, indices: Tensor, n_entries: Value, n_minor: Value) -> None:
    """Check that all minor indices are in bounds."""
    builder = context.builder
    limit = builder.op("minimum", n_minor, builder.index(_MOST))
    limit = builder.cast(limit, "u32")

    def is_there(entry: Value) -> Value:
        # As unsigned numbers, negative indices are too large.
        return builder.op("lt", builder.cast(indices.at((entry,)), "u32"), limit)

    builder.check(context.all_hold(n_entries, is_there), IndexError, OUT_OF_BOUNDS)
