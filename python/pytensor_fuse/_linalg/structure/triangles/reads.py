"""Diagonals of a matrix that its clients read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytensor.compile.builders import OpFromGraph
from pytensor.scalar.basic import Mul
from pytensor.tensor.basic import ExtractDiag
from pytensor.tensor.shape import Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
)

from pytensor_fuse._linalg.structure.matrices import scalar_op, transpose_of
from pytensor_fuse._linalg.structure.taken_diagonals import diagonal_taken
from pytensor_fuse._linalg.structure.triangles.masks import EVERYWHERE, NOWHERE, Span
from pytensor_fuse._linalg.structure.triangles.triangular import Triangle, triangle_of
from pytensor_fuse._linalg.structure.triangles.writes import places_read

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# The depth to which the uses of elements are followed.
_DEPTH: Final = 16


def diagonals_read(fgraph: FunctionGraph, matrix: Any, depth: int = _DEPTH) -> Span:
    """Return the range of diagonals of a matrix whose elements have a use."""
    found = NOWHERE
    for client, at in fgraph.clients[matrix]:
        read = _read_by(fgraph, client, at, matrix, depth) if depth else EVERYWHERE
        if read == EVERYWHERE:
            return EVERYWHERE
        if read.first <= read.last:
            is_first = found.first > found.last
            around = Span(min(found.first, read.first), max(found.last, read.last))
            found = read if is_first else around
    return found


def _read_by(fgraph: FunctionGraph, client: Apply[Any], at: int, matrix: Any, depth: int) -> Span:
    if not client.outputs or matrix.type.ndim != 2 or len(client.outputs) != 1:
        return EVERYWHERE
    [result] = client.outputs
    match client.op:
        case Shape() | Shape_i():
            return NOWHERE
        case OpFromGraph() if at == 2:
            taken = diagonal_taken(client)
            return EVERYWHERE if taken is None else Span(taken.offset, taken.offset)
        case ExtractDiag(offset=offset, axis1=0, axis2=1):
            return Span(offset, offset)
        case AdvancedSubtensor() | Subtensor() if at == 0:
            places = places_read(client)
            return EVERYWHERE if places is None or places.span is None else places.span
        case AdvancedIncSubtensor() | IncSubtensor() | SpecifyShape() if at == 0:
            return diagonals_read(fgraph, result, depth - 1)
    if transpose_of(result) is matrix:
        first, last = diagonals_read(fgraph, result, depth - 1)
        return Span(-last, -first)
    if scalar_op(result) is None or result.type.ndim != 2:
        return EVERYWHERE
    if isinstance(scalar_op(result), Mul):
        # Elements that are multiplied by structural zeros are not read.
        masks = Triangle.NONE
        for one in client.inputs:
            masks |= Triangle.NONE if one is matrix else triangle_of(fgraph, one)
        if masks:
            is_lower, is_upper = (bool(masks & one) for one in (Triangle.LOWER, Triangle.UPPER))
            # A factor with zeros above the diagonal reads elements on it and below it.
            return Span(0 if is_upper else EVERYWHERE.first, 0 if is_lower else EVERYWHERE.last)
    return diagonals_read(fgraph, result, depth - 1)
