"""Products of a sparse matrix and an array, or of two sparse matrices, as an array.

A product along the major axis gathers: each of its elements is a sum over the entries of one major
index. A product along the minor axis scatters: each entry is added to an element. If a constant has
the same number of entries for each major index, as group indicators have, neither needs a loop over
entries, and other work on each row fuses into the same vectorized loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytensor_fuse._native.lowering.matrices.operands import transposed
from pytensor_fuse._native.lowering.sparse.entries import (
    Entry,
    all_entries,
    bounds_of,
    entries_of,
    gatherable,
    guarding,
    minor_of,
)
from pytensor_fuse._native.lowering.sparse.formats import converted
from pytensor_fuse._native.lowering.sparse.matrices import SparseMatrix, in_order
from pytensor_fuse._native.lowering.sparse.structures import Structure
from pytensor_fuse._native.lowering.tensors import Tensor, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._native.lowering.types import BufferId, Context, Index, Value


# SciPy's message contains both shapes; a check has the two lengths that matter.
MISMATCH: Final = "a product of {0} columns and {1} rows"
# Bound of unrolling, for the entries of a major index and for columns with sums in registers.
_MOST_WRITTEN_OUT: Final = 8
# Sums of at least this many terms are vectorized, although their operands are gathered.
_LEAST_FOR_VECTORS: Final = 16


def with_array(context: Context, matrix: SparseMatrix, other: Tensor, dtype: str) -> Tensor:
    """Return the product of a sparse matrix and a vector or matrix.

    Parameters
    ----------
    context
        The lowering.
    matrix, other
        The factors.
    dtype
        The dtype of the product and of the computation.
    """
    context.require_equal(matrix.lengths[1], other.lengths[0], ValueError, MISMATCH)
    values, right = context.of_dtype(matrix.values, dtype), context.of_dtype(other, dtype)
    product = _Product(context, matrix, values, right)
    return product.gathered() if matrix.format == "csr" else product.scattered()


def array_with(context: Context, other: Tensor, matrix: SparseMatrix, dtype: str) -> Tensor:
    """Return the product of a vector or matrix and a sparse matrix."""
    context.require_equal(other.lengths[-1], matrix.lengths[0], ValueError, MISMATCH)
    if other.ndim == 1:
        return with_array(context, matrix.transposed, other, dtype)
    return transposed(with_array(context, matrix.transposed, transposed(other), dtype))


class _Product:
    """A product that is being emitted.

    Parameters
    ----------
    context
        The lowering.
    matrix
        The sparse matrix.
    values, right
        Its values and the other factor, in the dtype of the product.
    """

    def __init__(
        self, context: Context, matrix: SparseMatrix, values: Tensor, right: Tensor
    ) -> None:
        self._context = context
        self._builder = context.builder
        self._structure = matrix.structure
        self._values = values
        self._right = right
        self._dtype = values.dtype
        self._zero = context.builder.constant(values.dtype, 0)
        # The axes behind the first one; a vector has none.
        self._inner = [context.length(length) for length in right.lengths[1:]]

    def _columns(self) -> list[Index] | None:
        """Return the columns of the product if they are few and their number is known."""
        if not self._inner:
            return [()]
        number = self._builder.number(self._inner[0])
        if number is None or number > _MOST_WRITTEN_OUT:
            return None
        return [(self._builder.index(place),) for place in range(int(number))]

    def _each(self) -> int | None:
        """Return the number of entries of each major index if they are unrolled."""
        each = self._structure.per_major()
        return each if each is not None and each <= _MOST_WRITTEN_OUT else None

    def _term(self, at: Value, column: Index, minor: Value) -> Value:
        return self._builder.op("mul", self._values.at((at,)), self._right.at((minor, *column)))

    def gathered(self) -> Tensor:
        """Return a product with a row for each major index."""
        context = self._context
        self._right = gatherable(context, self._right)
        each, columns = self._each(), self._columns()
        if each is not None:
            return self._gathered_written_out(each)
        lengths = [self._structure.n_major, *self._inner]
        if columns is None:
            buffer = context.filled(self._dtype, lengths)
            with all_entries(context, self._structure) as entry:
                self._add_row(buffer, entry.major, entry.minor, entry.at, is_checked=False)
            return stored(self._builder, buffer)
        return self._gathered_in_registers(lengths, columns)

    def _gathered_in_registers(self, lengths: Sequence[Value], columns: Sequence[Index]) -> Tensor:
        builder, context = self._builder, self._context
        buffer = context.temporary(self._dtype, lengths)

        def terms(entry: Entry) -> list[Value]:
            return [self._term(entry.at, column, entry.minor) for column in columns]

        with builder.loop(self._structure.n_major) as outer:
            totals = _sums(context, self._structure, outer.index, terms, self._zero)
            for column, total in zip(columns, totals, strict=True):
                builder.store(buffer, (outer.index, *column), total)
        return stored(builder, buffer)

    def _gathered_written_out(self, each: int) -> Tensor:
        builder, context, structure = self._builder, self._context, self._structure

        def total(index: Index) -> Value:
            found = self._zero
            for number in range(each):
                at = _place(context, index[0], each, number)
                term = self._term(at, index[1:], minor_of(context, structure, at))
                found = builder.op("add", found, term)
            return found

        return context.materialized(self._dtype, [structure.n_major, *self._inner], total)

    def scattered(self) -> Tensor:
        """Return a product with a row for each minor index."""
        builder, context, structure = self._builder, self._context, self._structure
        each = self._each()
        buffer = context.filled(self._dtype, [structure.n_minor, *self._inner])
        if each is None:
            self._right = gatherable(context, self._right)
            with all_entries(context, structure) as entry:
                self._add_row(
                    buffer, entry.minor, entry.major, entry.at, is_checked=structure.is_checked
                )
            return stored(builder, buffer)
        if each > 1:
            self._right = gatherable(context, self._right)
        for number in range(each):
            self._scatter_one_of_each(buffer, each, number)
        return stored(builder, buffer)

    def _scatter_one_of_each(self, buffer: BufferId, each: int, number: int) -> None:
        """Add one entry of each major index to the product."""
        builder, context = self._builder, self._context

        def add(index: Index) -> None:
            at = _place(context, index[0], each, number)
            minor = minor_of(context, self._structure, at)
            term = self._term(at, index[1:], index[0])
            builder.store(buffer, (minor, *index[1:]), term, "add")

        context.nest([self._structure.n_major, *self._inner], add)

    def _add_row(
        self, buffer: BufferId, into: Value, row: Value, at: Value, *, is_checked: bool
    ) -> None:
        """Add a row of the other factor, times an entry, to a row of the product."""
        builder = self._builder

        def add(index: Index) -> None:
            term = self._term(at, index, row)
            builder.store(buffer, (into, *index), term, "add", is_guarded=is_checked)

        self._context.nest(self._inner, add)


def _place(context: Context, major: Value, each: int, number: int) -> Value:
    """Return the position of an entry where all major indices have the same number."""
    builder = context.builder
    first = builder.op("mul", major, builder.index(each))
    return builder.op("add", first, builder.index(number))


def sampled(
    context: Context, structure: Structure, by_major: Tensor, by_minor: Tensor, dtype: str
) -> Tensor:
    """Return for each entry the inner product of its rows in two arrays.

    Parameters
    ----------
    context
        The lowering.
    structure
        The structure of the entries.
    by_major, by_minor
        The arrays, with rows for the major and for the minor indices.
    dtype
        The dtype of the products.
    """
    builder = context.builder
    along = context.require_equal(by_major.lengths[1], by_minor.lengths[1], ValueError, MISMATCH)
    one, other = (gatherable(context, context.of_dtype(x, dtype)) for x in (by_major, by_minor))
    zero = builder.constant(dtype, 0)
    out = context.temporary(dtype, [structure.n_entries])

    def term(entry: Entry, at: Value) -> Value:
        return builder.op("mul", one.at((entry.major, at)), other.at((entry.minor, at)))

    def total(entry: Entry) -> Value:
        number = builder.number(along)
        if number is not None and number <= _MOST_WRITTEN_OUT:
            places = map(builder.index, range(int(number)))
            return context.folded("add", zero, (term(entry, place) for place in places))
        with builder.loop(along) as loop:
            return builder.reduce(loop, "add", zero, term(entry, loop.index))

    with all_entries(context, structure) as entry:
        builder.store(out, (entry.at,), total(entry), is_guarded=structure.is_checked)
    return stored(builder, out)


def of_sparse(context: Context, left: SparseMatrix, right: SparseMatrix, dtype: str) -> Tensor:
    """Return the product of two sparse matrices as an array."""
    builder = context.builder
    context.require_equal(left.lengths[1], right.lengths[0], ValueError, MISMATCH)
    buffer = context.filled(dtype, [left.lengths[0], right.lengths[1]])
    if left.format == "csr" and right.format == "csc":
        right = converted(context, right)
    # A loop over the entries of one factor accesses one major index of the other for each.
    is_by_left = right.format == "csr"
    outer, inner = (left, right) if is_by_left else (right, left)
    is_checked = outer.structure.is_checked or inner.structure.is_checked
    with all_entries(context, outer.structure) as one:
        row, column = in_order(outer.format, one.major, one.minor)
        value = builder.cast(outer.values.at((one.at,)), dtype)
        with entries_of(context, inner.structure, column if is_by_left else row) as other:
            term = builder.op("mul", value, builder.cast(inner.values.at((other.at,)), dtype))
            place = (row, other.minor) if is_by_left else (other.minor, column)
            builder.store(buffer, place, term, "add", is_guarded=is_checked)
    return stored(builder, buffer)


def gathered_sum(context: Context, matrix: SparseMatrix) -> Tensor:
    """Return the sum of the entries of each major index."""
    builder, structure = context.builder, matrix.structure
    zero = builder.constant(matrix.dtype, 0)
    buffer = context.temporary(matrix.dtype, [structure.n_major])

    def terms(entry: Entry) -> list[Value]:
        return [matrix.values.at((entry.at,))]

    with builder.loop(structure.n_major) as outer:
        [total] = _sums(context, structure, outer.index, terms, zero)
        builder.store(buffer, (outer.index,), total)
    return stored(builder, buffer)


def _sums(
    context: Context,
    structure: Structure,
    major: Value,
    terms: Callable[[Entry], Sequence[Value]],
    zero: Value,
) -> list[Value]:
    """Return sums of terms over the entries of one major index."""
    builder = context.builder

    def total(*, by_vectors: bool) -> list[Value]:
        with entries_of(context, structure, major, by_vectors=by_vectors) as entry:
            return [builder.reduce(entry.loop, "add", zero, term) for term in terms(entry)]

    are_many = structure.all_have(_LEAST_FOR_VECTORS)
    if not builder.program.reassociates:
        are_many = False
    if are_many is not None:
        return total(by_vectors=are_many)
    with guarding(context, structure):
        _, count = bounds_of(context, structure, major)
    are_many_here = builder.op("ge", count, builder.index(_LEAST_FOR_VECTORS))
    return context.branch(
        are_many_here, lambda: total(by_vectors=True), lambda: total(by_vectors=False)
    )


def scattered_sum(context: Context, matrix: SparseMatrix) -> Tensor:
    """Return the sum of the entries of each minor index."""
    builder, structure = context.builder, matrix.structure
    buffer = context.filled(matrix.dtype, [structure.n_minor])

    def add(index: Index) -> None:
        with guarding(context, structure):
            minor = minor_of(context, structure, index[0])
        value = matrix.values.at(index)
        builder.store(buffer, (minor,), value, "add", is_guarded=structure.is_checked)

    context.nest([structure.n_entries], add)
    return stored(builder, buffer)
