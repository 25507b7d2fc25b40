"""Triangular matrices by their expressions: masks, writes, products, factors.

Only structural zeros count, which hold for all values of the inputs. As in PyTensor, such a zero
times a number that is not finite counts as zero.
"""

from __future__ import annotations

from enum import Flag
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar import basic as ps
from pytensor.tensor.basic import Alloc, AllocDiag, Eye
from pytensor.tensor.linalg.constructors import BlockDiagonal
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.products import KroneckerProduct
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.subtensor import AdvancedIncSubtensor, IncSubtensor, Subtensor

from pytensor_fuse._linalg.structure.matrices import (
    core_of,
    is_zero,
    same,
    scalar_op,
    transpose_of,
    without_expansion,
)
from pytensor_fuse._linalg.structure.triangles.masks import Span, nonzeros_of_mask, others
from pytensor_fuse._linalg.structure.triangles.writes import places_written
from pytensor_fuse._pytensor.rewriting.assumptions import is_known_triangular, without_assumptions

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# The depth of nested matrices, and the number of writes that are searched.
_DEPTH: Final = 12
_WRITES: Final = 4096

# These map 0 to 0.
_KEEPING_ZEROS: Final = (
    *(ps.Abs, ps.Cast, ps.Identity, ps.Neg, ps.Sign, ps.Sqr, ps.Sqrt),
    *(ps.Expm1, ps.Log1p, ps.Tanh),
)


class Triangle(Flag):
    """The triangles that hold all nonzero elements of a matrix; both: the diagonal holds them."""

    NONE = 0
    LOWER = 1
    UPPER = 2
    BOTH = 3

    def turned(self) -> Triangle:
        """Return the triangles of the transpose."""
        return _TURNED.get(self, self)


_TURNED: Final = {Triangle.LOWER: Triangle.UPPER, Triangle.UPPER: Triangle.LOWER}


def triangle_of(fgraph: FunctionGraph | None, matrix: Any) -> Triangle:
    """Return the triangles that hold all nonzero elements of a matrix, or of each of a stack.

    Parameters
    ----------
    fgraph
        The graph, whose assumptions count; None if only expressions count.
    matrix
        The matrix, not necessarily square.
    """
    return _triangle(_Search(fgraph, {}), matrix, _DEPTH)


class _Search(NamedTuple):
    """The graph, and memoized results: an expression may occur many times."""

    fgraph: FunctionGraph | None
    known: dict[Any, Triangle]


def _triangle(search: _Search, matrix: Any, depth: int) -> Triangle:
    if matrix.type.ndim < 2 or any(matrix.type.broadcastable[-2:]) or depth == 0:
        return Triangle.NONE
    if isinstance(matrix, Constant):
        return triangle_of_constant(matrix)
    if matrix.owner is None:
        return _said(search, matrix)
    found = search.known.get(matrix)
    if found is None:
        found = _by_form(search, matrix, depth - 1) or _said(search, matrix)
        search.known[matrix] = found
    return found


def _said(search: _Search, matrix: Any) -> Triangle:
    if search.fgraph is None:
        return Triangle.NONE
    return _of_both(*is_known_triangular(search.fgraph, matrix))


def _of_both(lower: bool, upper: bool) -> Triangle:
    return (Triangle.LOWER if lower else Triangle.NONE) | (
        Triangle.UPPER if upper else Triangle.NONE
    )


def triangle_of_constant(constant: Any) -> Triangle:
    """Return the triangles that hold all nonzero elements of a constant matrix, or stack."""
    data = constant.data
    found = Triangle.NONE
    # The first row and column rule out most matrices without a pass over the rest.
    if data.dtype.kind in "biufc" and data.size:
        if not data[..., 0, 1:].any() and not np.triu(data, 1).any():
            found |= Triangle.LOWER
        if not data[..., 1:, 0].any() and not np.tril(data, -1).any():
            found |= Triangle.UPPER
    return found


def _by_form(search: _Search, matrix: Any, depth: int) -> Triangle:
    node = matrix.owner
    if is_zero(matrix):
        return Triangle.BOTH
    unexpanded = without_expansion(matrix)
    if unexpanded is not matrix:
        return _triangle(search, unexpanded, depth)
    turned = transpose_of(matrix, expanded=True)
    if turned is not None:
        return _triangle(search, turned, depth).turned()
    if scalar_op(matrix) is not None:
        return _of_elements(search, matrix, depth)
    inputs, core = node.inputs, core_of(node)
    match core:
        case AllocDiag() if matrix.type.ndim == inputs[0].type.ndim + 1:
            # The other axes are those of a stack.
            ndim = matrix.type.ndim
            is_matrix = (core.axis1 % ndim, core.axis2 % ndim) == (ndim - 2, ndim - 1)
            return _of_span(Span(core.offset, core.offset)) if is_matrix else Triangle.NONE
        case Eye() if isinstance(inputs[2], Constant):
            offset = int(inputs[2].data)
            return _of_span(Span(offset, offset))
        case AdvancedIncSubtensor() | IncSubtensor():
            return _of_writes(search, matrix, depth)
        case Subtensor() if _leaves_matrices(node):
            return _triangle(search, inputs[0], depth)
        case SpecifyShape() | CheckAndRaise() | Alloc() | MatrixInverse():
            return _triangle(search, inputs[0], depth)
        case Cholesky():
            return Triangle.LOWER if core.lower else Triangle.UPPER
        case Dot():
            return _of_all(search, inputs, depth)
        case SolveTriangular(b_ndim=2):
            mine = Triangle.LOWER if core.lower else Triangle.UPPER
            return mine & _triangle(search, inputs[1], depth)
        case KroneckerProduct() if is_square(inputs[1]):
            return _of_all(search, inputs, depth)
        case BlockDiagonal() if all(is_square(one) for one in inputs[:-1]):
            return _of_all(search, inputs, depth)
    inner = without_assumptions(matrix)
    return Triangle.NONE if inner is None else _triangle(search, inner, depth)


def _of_all(search: _Search, matrices: list[Any], depth: int) -> Triangle:
    """Return the triangles that hold the nonzero elements of each matrix."""
    return reduce(and_, (_triangle(search, one, depth) for one in matrices))


def _leaves_matrices(node: Apply[Any]) -> bool:
    """Whether a node selects whole matrices of a stack."""
    indices = node.op.idx_list
    more = len(indices) - (node.inputs[0].type.ndim - 2)
    return more <= 0 or all(one == slice(None) for one in indices[-more:])


def _of_elements(search: _Search, matrix: Any, depth: int) -> Triangle:
    mask = nonzeros_of_mask(matrix)
    if mask is not None:
        return _of_span(mask)
    op, inputs = scalar_op(matrix), matrix.owner.inputs

    def of(one: Any) -> Triangle:
        return Triangle.BOTH if is_zero(one) else _triangle(search, one, depth)

    if isinstance(op, ps.Mul):
        return reduce(or_, map(of, inputs))
    if isinstance(op, ps.Add | ps.Sub):
        found = Triangle.BOTH
        for one in inputs:
            if not found:
                break
            found &= of(one)
        return found
    if isinstance(op, ps.TrueDiv):
        # 0 / 0 is NaN.
        over, under = inputs
        return Triangle.NONE if of(under) else of(over)
    if isinstance(op, ps.Switch):
        condition, then, otherwise = inputs
        mask = nonzeros_of_mask(condition)
        fails = Triangle.NONE if mask is None else _of_span(mask)
        holds = Triangle.NONE if mask is None else _of_span(others(mask))
        return (fails | of(then)) & (holds | of(otherwise))
    return of(inputs[0]) if isinstance(op, _KEEPING_ZEROS) else Triangle.NONE


def _of_span(span: Span) -> Triangle:
    """Return the triangles that hold a range of diagonals."""
    return _of_both(span.last <= 0, span.first >= 0)


def _of_writes(search: _Search, matrix: Any, depth: int) -> Triangle:
    """Return the triangles of a matrix into which numbers have been written."""
    found = Triangle.BOTH
    for _ in range(_WRITES):
        node = matrix.owner
        if node is None or not isinstance(node.op, AdvancedIncSubtensor | IncSubtensor):
            break
        places = places_written(node)
        value = node.inputs[1]
        if places is None or not places.is_whole:
            if places is None or places.span is None:
                return Triangle.NONE
            if not is_zero(value):
                found &= _of_span(places.span)
        elif value.type.ndim >= 2:
            found &= Triangle.BOTH if is_zero(value) else _triangle(search, value, depth)
        else:
            return Triangle.NONE
        if not found:
            return Triangle.NONE
        matrix = node.inputs[0]
    return found & (Triangle.BOTH if is_zero(matrix) else _triangle(search, matrix, depth))


def is_square(matrix: Any) -> bool:
    """Whether a matrix, or each of a stack, is square by its form."""
    return _is_square(matrix, _DEPTH, {})


def _is_square(matrix: Any, depth: int, known: dict[tuple[Any, int], bool]) -> bool:
    found = known.get((matrix, depth))
    if found is None:
        found = known[matrix, depth] = _is_square_by_form(matrix, depth, known)
    return found


def _is_square_by_form(matrix: Any, depth: int, known: dict[tuple[Any, int], bool]) -> bool:
    rows, columns = matrix.type.shape[-2:]
    if rows is not None and columns is not None:
        return bool(rows == columns)
    node = matrix.owner
    if node is None or depth == 0:
        return False
    inner = transpose_of(matrix, expanded=True)
    inner = without_expansion(matrix) if inner is None else inner
    if inner is not matrix:
        return _is_square(inner, depth - 1, known)
    inputs = node.inputs
    if scalar_op(matrix) is not None:
        return any(
            _is_square(one, depth - 1, known)
            for one in inputs
            if one.type.ndim >= 2 and not any(one.type.broadcastable[-2:])
        )
    match core_of(node):
        case Cholesky() | MatrixInverse():
            return True
        case AllocDiag() if inputs[0].type.ndim == 1:
            return True
        case Eye():
            return same(inputs[0], inputs[1])
        case Alloc() if len(inputs) > 2:
            return same(inputs[-2], inputs[-1])
        case AdvancedIncSubtensor() | IncSubtensor() | SpecifyShape() | CheckAndRaise():
            return _is_square(inputs[0], depth - 1, known)
        case Dot() | KroneckerProduct():
            return all(_is_square(one, depth - 1, known) for one in inputs)
    inner = without_assumptions(matrix)
    return inner is not None and _is_square(inner, depth - 1, known)


def triangular_factors(fgraph: FunctionGraph, matrix: Any) -> list[Any]:
    """Return the square triangular factors of a matrix; an empty list if there are none.

    A matrix that is no product is its own factor, whose squareness is not checked.
    """
    found = _factors(matrix, _DEPTH)
    if len(found) > 1:
        is_known = all(is_square(one) and triangle_of(fgraph, one) for one in found)
        found = found if is_known else [matrix]
    if len(found) > 1 or triangle_of(fgraph, matrix):
        return found
    return []


def _factors(matrix: Any, depth: int) -> list[Any]:
    """Return the factors of a matrix product, or of the transpose of one."""
    node = matrix.owner
    if node is None or depth == 0:
        return [matrix]
    inner = transpose_of(matrix)
    if inner is not None:
        parts = _factors(inner, depth - 1)
        return [matrix] if len(parts) == 1 else [one.mT for one in reversed(parts)]
    if not isinstance(core_of(node), Dot):
        return [matrix]
    if any(one.type.ndim != matrix.type.ndim for one in node.inputs):
        return [matrix]
    if any(one.type.broadcastable[:-2] != matrix.type.broadcastable[:-2] for one in node.inputs):
        # Leave a stack of products with one matrix alone.
        return [matrix]
    return [part for one in node.inputs for part in _factors(one, depth - 1)]


def are_transposes(first: Any, second: Any) -> bool:
    """Whether one factor is the transpose of the other."""
    for one, other in ((first, second), (second, first)):
        inner = transpose_of(one)
        if inner is not None and same(inner, other):
            return True
    return False


def is_gram(factors: list[Any]) -> bool:
    """Whether the factors are a palindrome up to transposition: ``A A'``, ``A B B' A'``."""
    return len(factors) % 2 == 0 and all(
        are_transposes(one, other) for one, other in zip(factors, reversed(factors), strict=True)
    )
