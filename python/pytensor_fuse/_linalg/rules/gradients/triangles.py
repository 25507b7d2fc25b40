"""Gradients by the elements of a triangular matrix: ``(L L')^-1 L`` is ``L^-T``.

The gradient of ``log |L L'|`` by ``L`` is twice that, which is upper triangular. If ``L`` is lower
triangular by its form, only the lower triangle of the gradient is read: the diagonal, the
reciprocal of that of ``L``. So no matrix is inverted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytensor.tensor as pt
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.math import Dot

from pytensor_fuse._linalg.rules.by_structure.triangular import (
    diagonal_of_square_triangle,
    inverse_in,
    without_pairs_of_transposes,
)
from pytensor_fuse._linalg.structure.matrices import (
    core_of,
    is_real_matrix,
    product_of,
    same,
    sum_of,
    summands_of,
)
from pytensor_fuse._linalg.structure.triangles.masks import EVERYWHERE
from pytensor_fuse._linalg.structure.triangles.reads import diagonals_read
from pytensor_fuse._linalg.structure.triangles.triangular import Triangle, triangle_of

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._linalg.structure.triangles.masks import Span


def product_that_cancels_inverse(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Replace ``(c (L L')^-1 + H) L`` by ``c diag(L)^-1 + H L`` if no other elements are read."""
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
                parts.append(product_of([diagonal, *found[0]]))
        if rest:
            others = sum_of(rest)
            parts.append(pt.dot(others, other) if is_first else pt.dot(other, others))
        return [sum_of(parts)]
    return None


def _summands(variable: Any) -> list[Any]:
    found = list(summands_of(variable))
    return found if all(is_real_matrix(one) for one in found) else [variable]


def _cancelled(
    fgraph: FunctionGraph, term: Any, other: Any, is_first: bool
) -> tuple[list[Any], Any] | None:
    """Return numbers and ``T``, if the product of two matrices is their product with ``T^-1``."""
    known = inverse_in(fgraph, term)
    if known is None or len(known[1]) != 2 or term.type.dtype != other.type.dtype:
        return None
    numbers, (first, second) = known
    gone, left = (first, second) if is_first else (second, first)
    plain = without_pairs_of_transposes
    return (numbers, left) if same(plain(gone), plain(other)) else None


def _read_part(fgraph: FunctionGraph, matrix: Any, read: Span) -> Any:
    """Return the diagonal of an inverse as a matrix, if all other elements that are read are 0.

    Parameters
    ----------
    fgraph, matrix
        The graph, and the triangular matrix that is inverted.
    read
        The range of diagonals of the inverse that are read.
    """
    triangle = triangle_of(fgraph, matrix)
    if not (
        (triangle & Triangle.LOWER and read.first >= 0)
        or (triangle & Triangle.UPPER and read.last <= 0)
    ):
        return None
    return pt.diag(1 / diagonal_of_square_triangle(matrix))


def diagonal_of_triangular_inverse(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Replace the inverse of a triangular matrix by its diagonal, if no other elements count."""
    if type(core_of(node)) is not MatrixInverse or not is_real_matrix(node.outputs[0]):
        return None
    [matrix] = node.inputs
    read = diagonals_read(fgraph, node.outputs[0])
    if read == EVERYWHERE or matrix.type.dtype != node.outputs[0].type.dtype:
        return None
    diagonal = _read_part(fgraph, matrix, read)
    return None if diagonal is None else [diagonal]
