"""Triangles of symmetric matrices, and sums over all elements of a diagonal matrix.

The derivative of a function of a matrix ``K`` by a number ``t`` is the sum of all elements of
``G * dK/dt``, with ``G`` the gradient by ``K``. If ``t`` is on the diagonal of ``K`` only, so is
``dK/dt``. A ``G`` from a Cholesky factorization is a triangle, which needs one mask if the matrix
behind it is symmetric.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant
from pytensor.scalar.basic import Add, Cast, Mul, Neg, Sub, TrueDiv
from pytensor.tensor.math import Sum

from pytensor_fuse._linalg.structure.clients import clients_of
from pytensor_fuse._linalg.structure.diagonal import is_identity, placed_diagonal, whose_diagonal
from pytensor_fuse._linalg.structure.lengths import diagonal_of_square, is_length_of
from pytensor_fuse._linalg.structure.matrices import (
    along_long_axis,
    is_real_matrix,
    scalar_op,
    transpose_of,
    with_axes,
)
from pytensor_fuse._linalg.structure.symmetry import Symmetry
from pytensor_fuse._linalg.structure.triangles.masks import is_triangle, places_compared

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph


def triangle_of_symmetric_matrix(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Mask ``S`` once for a triangle of ``S + S'`` less its diagonal, with ``S`` symmetric.

    ``node`` makes the diagonal that is subtracted. The diagonal of the triangle becomes that of
    ``S``.
    """
    replacements: dict[Any, Any] = {}
    for client, _ in clients_of(fgraph, node.outputs[0]):
        triangle = client.outputs[0]
        if not isinstance(scalar_op(triangle), Sub):
            continue
        symmetric = _symmetrized(triangle)
        if symmetric is None or not Symmetry().of(symmetric):
            continue
        times = _with_and_without_diagonal(client.inputs[0], triangle.type.dtype)
        for one, _ in clients_of(fgraph, triangle):
            if whose_diagonal(one.outputs[0]) is triangle:
                replacements[one.outputs[0]] = _diagonal(symmetric)
        replacements[triangle] = symmetric * times
    return replacements


def sum_of_diagonal_matrix(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Sum the diagonal of a matrix that is zero elsewhere."""
    if not _sums_all(node):
        return None
    [matrix] = node.inputs
    return _total(node, _diagonal(matrix)) if _is_diagonal(matrix) else None


def _sums_all(node: Apply[Any]) -> bool:
    if not isinstance(node.op, Sum) or not is_real_matrix(node.inputs[0]):
        return False
    return node.op.axis is None or set(node.op.axis) == {0, 1}


def _symmetrized(term: Any) -> Any:
    """Return ``S``, of a triangle of ``S + S'`` less its diagonal; None for other matrices."""
    if not is_real_matrix(term) or not isinstance(scalar_op(term), Sub):
        return None
    masked, diagonal = term.owner.inputs
    if not isinstance(scalar_op(masked), Mul) or len(masked.owner.inputs) != 2:
        return None
    whole, mask = masked.owner.inputs
    if _is_mask(whole):
        whole, mask = mask, whole
    if not isinstance(scalar_op(whole), Add) or len(whole.owner.inputs) != 2:
        return None
    one, other = whole.owner.inputs
    if transpose_of(other) is not one:
        one, other = other, one
    entries = placed_diagonal(diagonal)
    of = None if entries is None else whose_diagonal(entries)
    is_it = transpose_of(other) is one and of is one and _is_mask(mask)
    return one if is_it and is_real_matrix(one) else None


def _with_and_without_diagonal(masked: Any, dtype: str) -> Any:
    """Return the mask of a triangle plus the mask without the diagonal."""
    mask = next(one for one in masked.owner.inputs if _is_mask(one))
    is_lower = is_triangle(mask, lower=True)
    while isinstance(scalar_op(mask), Cast):
        [mask] = mask.owner.inputs
    if isinstance(mask, Constant):
        # The sum of two booleans is one.
        whole = mask.data.astype(dtype)
        return pt.constant(whole + (np.tril(whole, -1) if is_lower else np.triu(whole, 1)))
    down, across = places_compared(mask)
    if not is_lower:
        down, across = across, down
    return pt.ge(down, across).astype(dtype) + pt.gt(down, across).astype(dtype)


def _is_mask(variable: Any) -> bool:
    return any(is_triangle(variable, lower=lower) for lower in (True, False))


def _is_diagonal(term: Any) -> bool:
    """Whether all elements off the diagonal are zero, if the operands are finite."""
    if not is_real_matrix(term):
        return False
    if is_identity(term) or placed_diagonal(term) is not None:
        return True
    op = scalar_op(term)
    if isinstance(op, Add | Sub | Neg):
        return all(_is_diagonal(one) for one in term.owner.inputs)
    if isinstance(op, Mul):
        return any(_is_diagonal(one) for one in term.owner.inputs)
    return isinstance(op, TrueDiv) and _is_diagonal(term.owner.inputs[0])


def _diagonal(term: Any) -> Any:
    """Return the diagonal of a square matrix, pushed into its expression as far as possible.

    For a column, a row or a number it is the diagonal of the matrix after broadcasting.
    """
    broadcastable = term.type.broadcastable
    if term.type.ndim == 0 or all(broadcastable):
        return with_axes(term, ("x",))
    if any(broadcastable):
        return along_long_axis(term)
    node = term.owner
    if is_identity(term):
        return pt.ones(node.inputs[0], dtype=term.type.dtype)
    entries = placed_diagonal(term)
    if entries is not None:
        return entries
    inner = transpose_of(term)
    if inner is not None:
        return _diagonal(inner)
    if scalar_op(term) is not None and len(node.outputs) == 1:
        factors = [_diagonal(one) for one in _without_identities(term)]
        return node.op(*factors) if len(factors) > 1 or len(node.inputs) == 1 else factors[0]
    return diagonal_of_square(term)


def _without_identities(term: Any) -> list[Any]:
    """Return the operands of an elementwise op, without identities that are factors."""
    inputs = list(term.owner.inputs)
    if not isinstance(scalar_op(term), Mul):
        return inputs
    whole = [one for one in inputs if is_real_matrix(one) and not is_identity(one)]
    # Another factor must have the dtype of the product and the size of the identity.
    if not any(one.type.dtype == term.type.dtype for one in whole):
        return inputs
    return [
        one
        for one in inputs
        if not is_identity(one)
        or not any(is_length_of(one.owner.inputs[0], other) for other in whole)
    ]


def _total(node: Apply[Any], summand: Any) -> list[Any]:
    [old] = node.outputs
    return [summand.sum(dtype=old.type.dtype, acc_dtype=node.op.acc_dtype)]
