"""Elementwise sums and products of two sparse matrices, with SciPy's order of entries.

If the entries of both are sorted without duplicates along each major index, so is the result.
Otherwise its entries come in the reverse order of their first occurrence. Entries that become zero
are dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytensor.sparse import math

from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.sparse.construction import refuses
from pytensor_fuse._native.lowering.sparse.elementwise import require_one_shape
from pytensor_fuse._native.lowering.sparse.entries import bounds_of, entries_of, guarding, minor_of
from pytensor_fuse._native.lowering.sparse.formats import in_format, matrix_of
from pytensor_fuse._native.lowering.sparse.matrices import SparseMatrix, as_matrix
from pytensor_fuse._native.lowering.sparse.structures import Structure
from pytensor_fuse._native.lowering.tensors import DTYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._native.lowering.types import (
        BufferId,
        Context,
        Index,
        Loop,
        Node,
        Tensors,
        Value,
    )


# The names of the classes depend on the version of PyTensor, those of the ops do not.
_Add: Final = type(math.add_s_s)


@lower.register(_Add, type(math.mul_s_s), refuses=refuses)
def _merge(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    one, other = (as_matrix(given) for given in inputs)
    require_one_shape(context, one, other)
    other = in_format(context, other, one.format)
    name = "add" if isinstance(op, _Add) else "mul"
    return [_Merge(context, one, other, name, DTYPES[node.outputs[0].type.dtype]).run()]


class _Merge:
    """A sum or product that is being emitted.

    Parameters
    ----------
    context
        The lowering.
    one, other
        The matrices, in one format.
    name
        The operation.
    dtype
        The dtype of the result and of the computation.
    """

    def __init__(
        self, context: Context, one: SparseMatrix, other: SparseMatrix, name: str, dtype: str
    ) -> None:
        builder = context.builder
        self._context = context
        self._builder = builder
        self._matrices = one, other
        self._name = name
        self._dtype = dtype
        self._n_major = context.length(one.structure.n_major)
        self._n_minor = context.length(one.structure.n_minor)
        self._is_checked = one.structure.is_checked or other.structure.is_checked
        # Each entry of the result is stored, and overwritten if it is zero: room for one more.
        n_entries = builder.op("add", one.structure.n_entries, other.structure.n_entries)
        room = [builder.op("add", n_entries, builder.index(1))]
        bounds = [builder.op("add", self._n_major, builder.index(1))]
        self._indices = context.temporary("i32", room, is_once=False)
        self._values = context.temporary(dtype, room, is_once=False)
        self._bounds = context.temporary("i32", bounds, is_once=False)

    def run(self) -> SparseMatrix:
        """Emit the loops and return the result."""
        context, builder = self._context, self._builder
        builder.store(self._bounds, (builder.index(0),), builder.constant("i32", 0))
        with guarding(context, *[one.structure for one in self._matrices]):
            conditions = (_is_in_order(context, one.structure) for one in self._matrices)
            are_in_order = context.folded("and", builder.constant("bool", True), conditions)
            known = builder.number(are_in_order)
            if known is not None:
                n_entries = self._in_order() if known else self._in_any_order()
            else:
                [n_entries] = context.branch(
                    are_in_order, lambda: [self._in_order()], lambda: [self._in_any_order()]
                )
        buffers = self._values, self._indices, self._bounds
        sizes, storage = (n_entries, self._n_major, self._n_minor), self._matrices[0].format
        return matrix_of(context, buffers, sizes, storage, is_checked=self._is_checked)

    def _store(self, buffer: BufferId, place: Index, value: Value, combiner: str = "") -> None:
        self._builder.store(buffer, place, value, combiner, is_guarded=self._is_checked)

    def _by_major(self, row: Callable[[Value, Value], Value]) -> Value:
        """Emit a loop over major indices.

        Parameters
        ----------
        row
            Emits the entries of one major index, from that index and the number of entries before
            it; returns the number of entries up to its end.

        Returns
        -------
        Value
            The total number of entries.
        """
        builder = self._builder
        with builder.loop(self._n_major) as loop:
            before = builder.carried("i64")
            after = row(loop.index, before)
            place = (builder.op("add", loop.index, builder.index(1)),)
            self._store(self._bounds, place, builder.cast(after, "i32"))
            return builder.carry(loop, before, builder.index(0), after)

    def _put(self, at: Value, minor: Value, value: Value) -> Value:
        """Store an entry of the result; return the number of entries including it."""
        builder = self._builder
        self._store(self._indices, (at,), builder.cast(minor, "i32"))
        self._store(self._values, (at,), value)
        stays = builder.op("ne", value, builder.constant(self._dtype, 0))
        return builder.op("add", at, builder.cast(stays, "i64"))

    # Entries in order

    def _in_order(self) -> Value:
        """Emit the merge of two matrices with sorted entries."""

        def row(major: Value, before: Value) -> Value:
            spans = [bounds_of(self._context, one.structure, major) for one in self._matrices]
            done, at = self._merged(spans, before)
            for number in range(len(spans)):
                at = self._rest(number, spans[number], done[number], at)
            return at

        return self._by_major(row)

    def _value(self, number: int, at: Value) -> Value:
        """Return the value of an entry of one of the matrices."""
        return self._builder.cast(self._matrices[number].values.at((at,)), self._dtype)

    def _merged(
        self, spans: Sequence[tuple[Value, Value]], before: Value
    ) -> tuple[list[Value], Value]:
        """Emit the merge along a major index until one of the matrices has no more entries.

        Parameters
        ----------
        spans
            For each matrix, the first entry and the number of entries of the major index.
        before
            The number of entries of the result before.

        Returns
        -------
        list of Value
            The number of merged entries of each matrix.
        Value
            The number of entries of the result afterwards.
        """
        builder = self._builder
        zero, one = builder.index(0), builder.index(1)
        none = builder.constant(self._dtype, 0)
        most, is_any = zero, builder.constant("bool", True)
        for _, count in spans:
            most = builder.op("add", most, count)
            is_any = builder.op("and", is_any, builder.op("gt", count, zero))
        with builder.loop(builder.op("select", is_any, most, zero)) as loop:
            done = [builder.carried("i64") for _ in spans]
            at = builder.carried("i64")
            entries = [
                builder.op("add", first, number)
                for (first, _), number in zip(spans, done, strict=True)
            ]
            places = [
                minor_of(self._context, matrix.structure, entry)
                for matrix, entry in zip(self._matrices, entries, strict=True)
            ]
            place = builder.op("minimum", *places)
            terms, finals = [], []
            is_over = builder.constant("bool", False)
            for number, (_, count) in enumerate(spans):
                is_next = builder.op("eq", places[number], place)
                value = self._value(number, entries[number])
                terms.append(builder.op("select", is_next, value, none))
                step = builder.op("select", is_next, one, zero)
                after = builder.op("add", done[number], step)
                finals.append(builder.carry(loop, done[number], zero, after))
                is_over = builder.op("or", is_over, builder.op("ge", after, count))
            loop.until = is_over
            following = self._put(at, place, builder.op(self._name, *terms))
            return finals, builder.carry(loop, at, before, following)

    def _rest(self, number: int, span: tuple[Value, Value], done: Value, before: Value) -> Value:
        """Store the rest of one matrix's entries; return the number of entries of the result."""
        builder = self._builder
        (first, count), none = span, builder.constant(self._dtype, 0)
        first = builder.op("add", first, done)
        with builder.loop(builder.op("sub", count, done)) as loop:
            at = builder.carried("i64")
            entry = builder.op("add", first, loop.index)
            terms = [none, none]
            terms[number] = self._value(number, entry)
            place = minor_of(self._context, self._matrices[number].structure, entry)
            following = self._put(at, place, builder.op(self._name, *terms))
            return builder.carry(loop, at, before, following)

    # Entries in any order

    def _in_any_order(self) -> Value:
        """Emit the result of two matrices whose entries are unsorted or have duplicates."""
        builder, context = self._builder, self._context
        # The minor indices of a row so far form a linked list; -1 marks absence, -2 ends the list.
        absent, end = builder.index(-1), builder.index(-2)
        chain = context.temporary("i64", [self._n_minor], is_once=False)
        sums = [context.temporary(self._dtype, [self._n_minor], is_once=False) for _ in range(2)]
        zero = builder.constant(self._dtype, 0)

        def clear(index: tuple[Value, ...]) -> None:
            builder.store(chain, index, absent)
            for buffer in sums:
                builder.store(buffer, index, zero)

        context.nest([self._n_minor], clear)

        def row(major: Value, before: Value) -> Value:
            head, count = end, builder.index(0)
            for matrix, buffer in zip(self._matrices, sums, strict=True):
                with entries_of(context, matrix.structure, major) as entry:
                    value = builder.cast(matrix.values.at((entry.at,)), self._dtype)
                    self._store(buffer, (entry.minor,), value, "add")
                    head, count = self._chained(entry.loop, entry.minor, chain, head, count)
            with builder.loop(count) as loop:
                place, at = builder.carried("i64"), builder.carried("i64")
                terms = [builder.load(buffer, (place,)) for buffer in sums]
                following = builder.load(chain, (place,))
                after = self._put(at, place, builder.op(self._name, *terms))
                for buffer in sums:
                    self._store(buffer, (place,), zero)
                self._store(chain, (place,), absent)
                builder.carry(loop, place, head, following)
                return builder.carry(loop, at, before, after)

        return self._by_major(row)

    def _chained(
        self, loop: Loop, minor: Value, chain: BufferId, head: Value, count: Value
    ) -> tuple[Value, Value]:
        """Prepend a minor index to a list unless it is in it; return the head and the length."""
        builder = self._builder
        first, number = builder.carried("i64"), builder.carried("i64")
        old = builder.load(chain, (minor,))
        is_new = builder.op("eq", old, builder.index(-1))
        self._store(chain, (minor,), builder.op("select", is_new, first, old))
        out = builder.carry(loop, first, head, builder.op("select", is_new, minor, first))
        more = builder.op("add", number, builder.cast(is_new, "i64"))
        return out, builder.carry(loop, number, count, more)


def _is_in_order(context: Context, structure: Structure) -> Value:
    """Return a condition that is true if entries are sorted without duplicates."""
    builder, indices, one = context.builder, structure.indices, context.builder.index(1)
    if structure.known is not None:
        return builder.constant("bool", structure.is_sorted())

    def is_row_in_order(major: Value) -> Value:
        first, count = bounds_of(context, structure, major)
        n_pairs = builder.op("maximum", builder.op("sub", count, one), builder.index(0))

        def rises(number: Value) -> Value:
            at = builder.op("add", first, number)
            return builder.op("lt", indices.at((at,)), indices.at((builder.op("add", at, one),)))

        return context.all_hold(n_pairs, rises)

    return context.all_hold(structure.n_major, is_row_in_order)
