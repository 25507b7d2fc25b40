"""The arrays that routines of LAPACK work in, by LAPACK's documented formulas.

LAPACK works by blocks of at most 64 columns, and takes as much room as it is given: with a block of
room, it does what it does after a query for the best size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytensor_fuse._native.lowering.matrices.operands import sizes_of

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.context import Context
    from pytensor_fuse._native.program.model import BufferId, Value

BLOCK: Final = 64


def work(
    context: Context, dtype: str, *terms: tuple[int, *tuple[Value, ...]]
) -> tuple[Value, BufferId]:
    """Return an array of a sum of products of numbers and lengths, and of at least 1, elements.

    Parameters
    ----------
    context
        The lowering.
    dtype
        That of the array.
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
