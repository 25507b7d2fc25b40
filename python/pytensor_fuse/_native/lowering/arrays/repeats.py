"""Repeat: repetition of the elements along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytensor.tensor.extra_ops import Repeat

from pytensor_fuse._native.lowering.registry import lower, refuses_dtypes
from pytensor_fuse._native.lowering.sorting.binary_search import in_memory

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import (
        BufferId,
        Context,
        Index,
        Node,
        Tensor,
        Tensors,
        Value,
    )


# Numba's messages for vectors, and NumPy's for all other arrays, where Numba calls NumPy.
_NEGATIVE: Final = "negative dimensions are not allowed"
_NEGATIVE_OF_NUMPY: Final = "repeats may not contain negative values."
_MISMATCH: Final = "operands could not be broadcast together"
_MISMATCH_OF_NUMPY: Final = f"{_MISMATCH} with shape ({{0}},) ({{1}},)"

# A bound on the number of elements of any array.
_MOST_ELEMENTS: Final = 2.0**62
_TOO_MANY: Final = "an array would have more elements than any memory"


@lower.register(Repeat, refuses=refuses_dtypes)
def _repeat(op: Repeat, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder = context.builder
    given, repeats = in_memory(context, inputs[0]), inputs[1]
    axis = op.axis
    lengths = [context.length(length) for length in given.lengths]
    sources, total = _sources(context, lengths[axis], repeats, is_vector=given.ndim == 1)
    lengths[axis] = total

    def at(index: Index) -> Value:
        source = builder.load(sources, (index[axis],), is_guarded=True)
        with builder.guarding():
            return given.at((*index[:axis], source, *index[axis + 1 :]))

    return [context.materialized(given.dtype, lengths, at)]


def _sources(
    context: Context, length: Value, repeats: Tensor, *, is_vector: bool
) -> tuple[BufferId, Value]:
    """Return the source position of each result position, and the number of the latter."""
    builder = context.builder
    op, zero = builder.op, builder.index(0)
    n_numbers = context.length(repeats.lengths[0])
    is_for_all = op("eq", n_numbers, builder.index(1))
    mismatch = _MISMATCH if is_vector else _MISMATCH_OF_NUMPY
    fits = op("or", is_for_all, op("eq", n_numbers, length))
    builder.check(fits, ValueError, mismatch, length, n_numbers)
    with builder.loop(n_numbers) as loop:
        is_valid = op("ge", builder.cast(repeats.at((loop.index,)), "i64"), zero)
        negative = _NEGATIVE if is_vector else _NEGATIVE_OF_NUMPY
        builder.check(is_valid, ValueError, negative)

    def count(at: Value) -> Value:
        with builder.guarding():
            return builder.cast(repeats.at((op("select", is_for_all, zero, at),)), "i64")

    with builder.loop(length) as loop:
        number = count(loop.index)
        total = builder.reduce(loop, "add", zero, number)
        about = builder.cast(number, "f64")
        about_total = builder.reduce(loop, "add", builder.constant("f64", 0), about)
    most = builder.constant("f64", _MOST_ELEMENTS)
    builder.check(op("lt", about_total, most), MemoryError, _TOO_MANY)
    sources = context.temporary("i64", [total], is_once=False)
    with builder.loop(length) as loop:
        before = builder.carried("i64")
        number = count(loop.index)
        with builder.loop(number) as inner:
            place = op("add", before, inner.index)
            builder.store(sources, (place,), loop.index, is_guarded=True)
        builder.carry(loop, before, zero, op("add", before, number))
    return sources, total
