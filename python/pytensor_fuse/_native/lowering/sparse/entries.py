"""Loops over the entries of sparse matrices, and arrays that they read and write."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor_fuse._native.lowering.sparse.structures import Structure
    from pytensor_fuse._native.lowering.types import Context, Loop, Tensor, Value


class Entry(NamedTuple):
    """An entry, while a loop over the entries of a matrix is being emitted.

    Attributes
    ----------
    loop
        The loop over the entries of one major index.
    major, minor
        The indices of the entry along the major and the minor axis.
    at
        The position of the entry among all entries.
    """

    loop: Loop
    major: Value
    minor: Value
    at: Value


def bounds_of(context: Context, structure: Structure, major: Value) -> tuple[Value, Value]:
    """Return the first entry and the number of entries of a major index."""
    builder = context.builder
    first = builder.cast(structure.indptr.at((major,)), "i64")
    following = builder.op("add", major, builder.index(1))
    end = builder.cast(structure.indptr.at((following,)), "i64")
    return first, builder.op("sub", end, first)


def minor_of(context: Context, structure: Structure, at: Value) -> Value:
    """Return the minor index of an entry."""
    return context.builder.cast(structure.indices.at((at,)), "i64")


@contextmanager
def guarding(context: Context, *structures: Structure) -> Iterator[None]:
    """Order loads within the context after the checks of structures."""
    is_needed = any(one.is_checked for one in structures)
    with context.builder.guarding() if is_needed else nullcontext():
        yield


@contextmanager
def entries_of(
    context: Context, structure: Structure, major: Value, *, by_vectors: bool = False
) -> Iterator[Entry]:
    """Emit a loop over the entries of one major index.

    Parameters
    ----------
    context
        The lowering.
    structure
        The structure of the entries.
    major
        The major index.
    by_vectors
        Whether the loop may be vectorized, which is slower for few entries.
    """
    builder = context.builder
    with guarding(context, structure):
        each = structure.per_major()
        if each is None:
            first, count = bounds_of(context, structure, major)
        else:
            first, count = builder.op("mul", major, builder.index(each)), builder.index(each)
        with builder.loop(count) as loop:
            if by_vectors:
                at = builder.op("add", first, loop.index)
            else:
                at = builder.carried("i64")
                builder.carry(loop, at, first, builder.op("add", at, builder.index(1)))
            yield Entry(loop, major, minor_of(context, structure, at), at)


@contextmanager
def all_entries(context: Context, structure: Structure) -> Iterator[Entry]:
    """Emit a loop over the entries of all major indices, in order."""
    with (
        context.builder.loop(structure.n_major) as outer,
        entries_of(context, structure, outer.index) as entry,
    ):
        yield entry


def gatherable(context: Context, tensor: Tensor) -> Tensor:
    """Return an array in memory, since its elements are read repeatedly."""
    if tensor.layout is not None or tensor.data is not None:
        return tensor
    return context.materialized(tensor.dtype, tensor.lengths, tensor.at)
