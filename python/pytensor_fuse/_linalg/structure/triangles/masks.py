"""Masks of triangles: comparisons of row numbers with column numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.scalar.basic import GE, GT, LE, LT, Add, Cast, Invert, Sub
from pytensor.tensor.basic import ARange
from pytensor.tensor.elemwise import DimShuffle

from pytensor_fuse._linalg.structure.matrices import core_of, long_axes, scalar_op
from pytensor_fuse._linalg.structure.signs import whole_number_of

# Further from the diagonal than any matrix reaches.
_FAR = 2**62

# In these dtypes, a row number plus at most `_MOST` neither wraps nor is rounded.
_EXACT = frozenset({"int32", "int64", "float64"})
_MOST = 2**30


class Span(NamedTuple):
    """An inclusive range of diagonals, by their offsets: the column minus the row."""

    first: int
    last: int


NOWHERE = Span(1, -1)
EVERYWHERE = Span(-_FAR, _FAR)


def is_triangle(variable: Any, *, lower: bool) -> bool:
    """Whether a matrix has ones in a triangle and on the diagonal, and zeros elsewhere."""
    if variable.type.ndim != 2:
        return False
    if isinstance(variable, Constant):
        full = np.ones_like(variable.data)
        return bool(np.array_equal(variable.data, np.tril(full) if lower else np.triu(full)))
    if isinstance(scalar_op(variable), Cast):
        return is_triangle(variable.owner.inputs[0], lower=lower)
    span = nonzeros_of_mask(variable)
    return span is not None and (span.last == 0 if lower else span.first == 0)


def nonzeros_of_mask(variable: Any, depth: int = 6) -> Span | None:
    """Return the diagonals where a mask of a triangle is nonzero; None for other variables."""
    if depth == 0 or variable.type.ndim < 2 or any(variable.type.broadcastable[-2:]):
        return None
    op = scalar_op(variable)
    if op is None:
        return None
    inputs = variable.owner.inputs
    if isinstance(op, Cast):
        return nonzeros_of_mask(inputs[0], depth - 1)
    if isinstance(op, Invert) and variable.type.dtype == "bool":
        return _others_if_known(nonzeros_of_mask(inputs[0], depth - 1))
    if isinstance(op, Sub):
        # One minus a mask is the mask of the other triangle.
        whole, mask = inputs
        is_one = all(whole.type.broadcastable) and whole_number_of(whole) == 1
        return _others_if_known(nonzeros_of_mask(mask, depth - 1)) if is_one else None
    if not isinstance(op, GE | GT | LE | LT):
        return None
    compared = _compared(inputs)
    starts = [counted_from(one) for one in compared]
    if len(starts) != 2 or starts[0] is None or starts[1] is None:
        return None
    # Row i and column j have the numbers i + starts[0] and j + starts[1].
    least = 0 if isinstance(op, GE | LE) else 1
    if (compared[0] is inputs[0]) == isinstance(op, GE | GT):
        return Span(-_FAR, starts[0] - starts[1] - least)
    return Span(starts[0] - starts[1] + least, _FAR)


def _compared(sides: list[Any]) -> list[Any]:
    """Return the column and the row that are compared; an empty list if there are none."""
    for down, across in (sides, sides[::-1]):
        if down.type.broadcastable[-2:] == (False, True):
            return [down, across] if across.type.broadcastable[-2:] == (True, False) else []
    return []


def places_compared(mask: Any) -> list[Any]:
    """Return the numbers of the rows and of the columns, from 0, that make a mask of a triangle."""
    node = mask.owner
    if isinstance(scalar_op(mask), Cast | Invert):
        return places_compared(node.inputs[0])
    if isinstance(scalar_op(mask), Sub):
        return places_compared(node.inputs[1])
    starts = [(one, counted_from(one)) for one in _compared(node.inputs)]
    return [one - start if start else one for one, start in starts]


def _others_if_known(span: Span | None) -> Span | None:
    return None if span is None else others(span)


def others(span: Span) -> Span:
    """Return the diagonals where a mask of a triangle is zero."""
    first, last = span
    return Span(last + 1, _FAR) if first == -_FAR else Span(-_FAR, first - 1)


def counted_from(variable: Any) -> int | None:
    """Return the first number of a variable that counts by ones along one axis; else None."""
    if long_axes(variable) != 1:
        return None
    if isinstance(variable, Constant):
        data = variable.data.ravel()
        if data.dtype.kind not in "iu" or not data.size:
            return None
        start = int(data[0])
        return start if np.array_equal(data, np.arange(start, start + data.size)) else None
    node = variable.owner
    if node is None:
        return None
    if isinstance(node.op, DimShuffle):
        return counted_from(node.inputs[0])
    if isinstance(core_of(node), ARange):
        first, _, step = (whole_number_of(one) for one in node.inputs)
        return first if step == 1 else None
    if isinstance(scalar_op(variable), Add) and variable.type.dtype in _EXACT:
        long = [one for one in node.inputs if long_axes(one)]
        numbers = [whole_number_of(one) for one in node.inputs if not long_axes(one)]
        counted = counted_from(long[0]) if len(long) == 1 else None
        known = [one for one in numbers if one is not None]
        if counted is None or len(known) < len(numbers):
            return None
        start = counted + sum(known)
        return start if abs(start) < _MOST else None
    return None
