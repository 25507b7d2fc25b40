"""Loops over one triangle of a square array in memory, where LAPACK leaves the other unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Context, Operand, Value

# The width of a block of columns: reads by rows fill a cache line, and the number of write streams
# is the associativity of a cache whose sets collide if rows are a power of two apart.
_BLOCK: Final = 8


def _size_of(context: Context, array: Operand) -> Value:
    return context.length(context.builder.program.buffers[array.buffer].lengths[-1])


def clear_triangle(context: Context, array: Operand, *, lower: bool) -> None:
    """Fill the triangle below, or above, the diagonal with zeros."""
    builder, (buffer, prefix) = context.builder, array
    zero = builder.constant(builder.program.buffers[buffer].dtype, 0.0)
    size, one = _size_of(context, array), builder.index(1)
    with builder.loop(size) as rows:
        row = rows.index
        after = builder.op("add", row, one)
        with builder.loop(row if lower else builder.op("sub", size, after)) as columns:
            column = columns.index if lower else builder.op("add", columns.index, after)
            builder.store(buffer, (*prefix, row, column), zero)


def mirror_triangle(context: Context, array: Operand, *, lower: bool) -> None:
    """Make a square array symmetric by copying its lower triangle to the upper, or upper to lower.

    The copy runs block by block: a transposed copy of whole rows would touch one cache line for
    each element.
    """
    builder, (buffer, prefix) = context.builder, array
    size, one, block = _size_of(context, array), builder.index(1), builder.index(_BLOCK)
    blocks = builder.op("floordiv", builder.op("add", size, builder.index(_BLOCK - 1)), block)
    with builder.loop(blocks) as outer:
        start = builder.op("mul", outer.index, block)
        with builder.loop(builder.op("sub", size, start)) as rows:
            row = builder.op("add", rows.index, start)
            # Within its block, the diagonal is copied to itself.
            width = builder.op("minimum", builder.op("add", rows.index, one), block)
            with builder.loop(width) as columns:
                column = builder.op("add", columns.index, start)
                places = (*prefix, row, column), (*prefix, column, row)
                source, target = places if lower else places[::-1]
                builder.store(buffer, target, builder.load(buffer, source))
