"""Gradients by what a triangular matrix is written from: ``(L L')^-1 L`` is ``L^-T``.

The gradient of ``log |L L'|`` by ``L`` is twice that, which is upper triangular. If ``L`` is lower
triangular by its form, nothing but the lower triangle is read: the diagonal, one over that of
``L``. So nothing is inverted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytensor.tensor as pt
from pytensor.scalar.basic import Add
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.math import Dot

from pytensor_fuse._linalg.rules.by_structure.triangular import (
    diagonal_of_square_triangle,
    inverse_in,
    without_pairs_of_transposes,
)
from pytensor_fuse._linalg.rules.replacements import replaced
from pytensor_fuse._linalg.structure.matrices import core_of, is_real_matrix, same, scalar_op
from pytensor_fuse._linalg.structure.triangles.masks import EVERYWHERE
from pytensor_fuse._linalg.structure.triangles.reads import diagonals_read
from pytensor_fuse._linalg.structure.triangles.triangular import Triangle, triangle_of

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._linalg.structure.triangles.masks import Span


def product_that_cancels_inverse(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Replace ``(c (L L')^-1 + H) L`` by ``c diag(L)^-1 + H L`` where that is what is read."""
    if not isinstance(core_of(node), Dot) or not is_real_matrix(node.outputs[0]):
        return None
    [old] = node.outputs
    left, right = node.inputs
    for whole, other, is_first in ((left, right, True), (right, left, False)):
        if other.type.dtype != old.type.dtype or not is_real_matrix(whole):
            continue
        terms = _summands(whole)
        cancelled = [_cancelled(fgraph, one, other, is_first) for one in terms]
        if all(one is None for one in cancelled):
            continue
        read = diagonals_read(fgraph, old)
        known = [None if one is None else _read_part(fgraph, one[1], read) for one in cancelled]
        if all(one is None for one in known):
            continue
        parts: list[Any] = []
        rest = []
        for term, found, diagonal in zip(terms, cancelled, known, strict=True):
            if found is None or diagonal is None:
                rest.append(term)
            else:
                parts.append(pt.mul(diagonal, *found[0]) if found[0] else diagonal)
        if rest:
            others = pt.add(*rest) if len(rest) > 1 else rest[0]
            parts.append(pt.dot(others, other) if is_first else pt.dot(other, others))
        return replaced(node, pt.add(*parts) if len(parts) > 1 else parts[0])
    return None


def _summands(variable: Any) -> list[Any]:
    if not isinstance(scalar_op(variable), Add):
        return [variable]
    if not all(is_real_matrix(one) for one in variable.owner.inputs):
        return [variable]
    return [part for one in variable.owner.inputs for part in _summands(one)]


def _cancelled(
    fgraph: FunctionGraph, term: Any, other: Any, is_first: bool
) -> tuple[list[Any], Any] | None:
    """Return numbers and ``T``, if ``T^-1`` times these is left of the product of two matrices."""
    known = inverse_in(fgraph, term)
    if known is None or len(known[1]) != 2 or term.type.dtype != other.type.dtype:
        return None
    numbers, (first, second) = known
    gone, left = (first, second) if is_first else (second, first)
    plain = without_pairs_of_transposes
    return (numbers, left) if same(plain(gone), plain(other)) else None


def _read_part(fgraph: FunctionGraph, matrix: Any, read: Span) -> Any:
    """Return the diagonal of an inverse as a matrix, if nothing else of it is read that is not 0.

    Parameters
    ----------
    fgraph, matrix
        The graph, and the triangular matrix that is inverted.
    read
        Between which diagonals the inverse is read.
    """
    triangle = triangle_of(fgraph, matrix)
    if not (
        (triangle & Triangle.LOWER and read.first >= 0)
        or (triangle & Triangle.UPPER and read.last <= 0)
    ):
        return None
    return pt.diag(1 / diagonal_of_square_triangle(matrix))


def diagonal_of_triangular_inverse(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Take the diagonal for the inverse of a triangular matrix, where nothing else of it counts."""
    if type(core_of(node)) is not MatrixInverse or not is_real_matrix(node.outputs[0]):
        return None
    [matrix] = node.inputs
    read = diagonals_read(fgraph, node.outputs[0])
    if read == EVERYWHERE or matrix.type.dtype != node.outputs[0].type.dtype:
        return None
    diagonal = _read_part(fgraph, matrix, read)
    return None if diagonal is None else replaced(node, diagonal)
