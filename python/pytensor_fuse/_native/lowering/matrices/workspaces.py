"""Workspaces of LAPACK routines, sized by LAPACK's documented formulas.

LAPACK works on blocks of at most 64 columns, and adapts to the workspace: with room for a block, it
behaves as after a query for the optimal size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytensor_fuse._native.lowering.matrices.operands import sizes_of

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.annotations import BufferId, Context, Value

BLOCK: Final = 64


def work(
    context: Context, dtype: str, *terms: tuple[int, *tuple[Value, ...]]
) -> tuple[Value, BufferId]:
    """Return an array whose size is a sum of products of numbers and lengths, at least 1.

    Parameters
    ----------
    context
        The lowering.
    dtype
        The dtype of the array.
    *terms
        The factors of each term: a number, then lengths.

    Returns
    -------
    size : Value
        The number of elements, as a size for a routine.
    buffer : BufferId
        The array.
    """
    builder = context.builder
    total = builder.index(0)
    for number, *lengths in terms:
        term = builder.index(number)
        for length in lengths:
            term = builder.op("mul", term, length)
        total = builder.op("add", total, term)
    [size] = sizes_of(context, [builder.op("maximum", total, builder.index(1))])
    return size, context.temporary(dtype, [size], is_once=False)
