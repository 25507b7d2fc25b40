"""Sums over all elements of a matrix that need only some of them, or need them in another form.

The derivative of a function of a matrix ``K`` by a number ``t`` is the sum of all elements of
``G * dK/dt``, with ``G`` the gradient by ``K``. Where ``G`` came through a Cholesky factorization,
it is a triangle, made with masks; as ``dK/dt`` is symmetric, what the triangle was made from serves
as well. Where ``K`` has ``t`` on its diagonal only, so has ``dK/dt``. A triangle that is needed
itself is made with one mask of what is symmetric.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.scalar.basic import Add, Cast, Mul, Neg, Sub, TrueDiv
from pytensor.tensor.basic import AllocDiag, ExtractDiag
from pytensor.tensor.math import Sum

from pytensor_fuse._linalg.structure.lengths import diagonal_of_square, is_length_of
from pytensor_fuse._linalg.structure.matrices import (
    along_long_axis,
    core_of,
    is_real_matrix,
    scalar_op,
    transpose_of,
    with_axes,
)
from pytensor_fuse._linalg.structure.symmetry import Symmetry, is_identity
from pytensor_fuse._linalg.structure.triangles.masks import is_triangle, places_compared

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph


def sum_of_triangle(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Sum ``S * B`` in place of ``F * B``, with ``B`` symmetric.

    ``F``, the lower triangle of ``S + S'`` less the diagonal of ``S``, or for an upper factor the
    upper one, is what PyTensor returns as the gradient by a matrix that has been factorized.
    ``F + F'`` is ``S + S'``, and the sum of ``F * B`` is half of that of ``(F + F') * B``.
    """
    if not _sums_all(node):
        return None
    before = node.inputs[0]
    after = _without_triangles(before, Symmetry())
    return None if after is None else _replaced(node, after)


def triangle_of_symmetric_matrix(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Mask ``S`` once for a triangle of ``S + S'`` less its diagonal, with ``S`` symmetric.

    ``node`` makes the diagonal that is subtracted. What takes the diagonal of the triangle gets
    that of ``S``.
    """
    replacements: dict[Any, Any] = {}
    for client, _ in fgraph.clients[node.outputs[0]]:
        triangle = client.outputs[0] if client.outputs else None
        if triangle is None or not isinstance(scalar_op(triangle), Sub):
            continue
        symmetric = _symmetrized(triangle)
        if symmetric is None or not Symmetry().of(symmetric):
            continue
        times = _with_and_without_diagonal(client.inputs[0], triangle.type.dtype)
        for one, _ in fgraph.clients[triangle]:
            taken = core_of(one)
            if isinstance(taken, ExtractDiag) and _is_main(taken):
                replacements[one.outputs[0]] = _diagonal(symmetric)
        replacements[triangle] = symmetric * times
    if any(old.type.dtype != new.type.dtype for old, new in replacements.items()):
        return None
    copy_stack_trace(list(replacements), list(replacements.values()))
    return replacements or None


def sum_of_diagonal_matrix(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Sum the diagonal of what is zero elsewhere."""
    if not _sums_all(node):
        return None
    [matrix] = node.inputs
    return _replaced(node, _diagonal(matrix)) if _is_diagonal(matrix) else None


def _sums_all(node: Apply[Any]) -> bool:
    if not isinstance(node.op, Sum) or not is_real_matrix(node.inputs[0]):
        return False
    return node.op.axis is None or set(node.op.axis) == {0, 1}


def _without_triangles(term: Any, symmetry: Symmetry) -> Any:
    """Return a matrix whose elements have the same sum; None if there is no triangle to replace.

    Where several are multiplied, none is replaced.
    """
    whole = _symmetrized(term)
    if whole is not None:
        return whole
    op = scalar_op(term)
    parts = [] if op is None else list(term.owner.inputs)
    if isinstance(op, Add | Sub | Neg):
        # A part that is broadcast is not summed over the matrix, but over itself many times.
        found = [
            _without_triangles(one, symmetry) if is_real_matrix(one) else None for one in parts
        ]
    elif isinstance(op, Mul | TrueDiv):
        places = range(len(parts) if isinstance(op, Mul) else 1)
        at = next((i for i in places if _has_triangle(parts[i])), None)
        if at is None or not all(symmetry.of(b) for i, b in enumerate(parts) if i != at):
            return None
        found = [
            _without_triangles(one, symmetry) if i == at else None for i, one in enumerate(parts)
        ]
    else:
        return None
    if all(one is None for one in found):
        return None
    return term.owner.op(
        *(old if new is None else new for old, new in zip(parts, found, strict=True))
    )


def _has_triangle(term: Any) -> bool:
    if _symmetrized(term) is not None:
        return True
    op = scalar_op(term)
    return isinstance(op, Add | Sub | Neg | Mul | TrueDiv) and any(
        _has_triangle(one) for one in term.owner.inputs
    )


def _symmetrized(term: Any) -> Any:
    """Return ``S``, of a triangle of ``S + S'`` less its diagonal, turned or not.

    Against a symmetric matrix, the transpose of anything has the same sum.
    """
    turned = transpose_of(term)
    if turned is not None and turned.type.ndim == 2:
        return _symmetrized(turned)
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
    of = _placed_diagonal(diagonal)
    is_it = transpose_of(other) is one and of is one and _is_mask(mask)
    return one if is_it and is_real_matrix(one) else None


def _with_and_without_diagonal(masked: Any, dtype: str) -> Any:
    """Return the mask of the triangle that is a factor, plus the same less the diagonal."""
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


def _placed_diagonal(variable: Any) -> Any:
    """Return the matrix whose diagonal is that of a matrix which is zero elsewhere."""
    placed = core_of(variable.owner)
    if not isinstance(placed, AllocDiag) or not _is_main(placed):
        return None
    [entries] = variable.owner.inputs
    taken = core_of(entries.owner)
    if not isinstance(taken, ExtractDiag) or not _is_main(taken):
        return None
    return entries.owner.inputs[0]


def _is_main(op: AllocDiag | ExtractDiag) -> bool:
    return bool(op.offset == 0 and (op.axis1, op.axis2) == (0, 1))


def _is_diagonal(term: Any) -> bool:
    """Whether all elements that are not on the diagonal are zero, if the others are finite."""
    if not is_real_matrix(term):
        return False
    if is_identity(term):
        return True
    placed = core_of(term.owner)
    if isinstance(placed, AllocDiag):
        return _is_main(placed)
    op = scalar_op(term)
    if isinstance(op, Add | Sub | Neg):
        return all(_is_diagonal(one) for one in term.owner.inputs)
    if isinstance(op, Mul):
        return any(_is_diagonal(one) for one in term.owner.inputs)
    return isinstance(op, TrueDiv) and _is_diagonal(term.owner.inputs[0])


def _diagonal(term: Any) -> Any:
    """Return the diagonal of a square matrix, taken as far down in its term as it goes.

    Of a column, a row or a number it is that of the matrix to which it is broadcast.
    """
    broadcastable = term.type.broadcastable
    if term.type.ndim == 0 or all(broadcastable):
        return with_axes(term, ("x",))
    if any(broadcastable):
        return along_long_axis(term)
    node = term.owner
    if is_identity(term):
        return pt.ones(node.inputs[0], dtype=term.type.dtype)
    placed = core_of(node)
    if isinstance(placed, AllocDiag) and _is_main(placed):
        return node.inputs[0]
    inner = transpose_of(term)
    if inner is not None and inner.type.ndim == 2:
        return _diagonal(inner)
    if scalar_op(term) is not None and len(node.outputs) == 1:
        factors = [_diagonal(one) for one in _without_identities(term)]
        return node.op(*factors) if len(factors) > 1 or len(node.inputs) == 1 else factors[0]
    return diagonal_of_square(term)


def _without_identities(term: Any) -> list[Any]:
    """Return what an elementwise op is applied to, less factors that are ones on the diagonal."""
    inputs = list(term.owner.inputs)
    if not isinstance(scalar_op(term), Mul):
        return inputs
    whole = [one for one in inputs if is_real_matrix(one) and not is_identity(one)]
    # Something else must have the type of the product, and have been compared with the identity.
    if not any(one.type.dtype == term.type.dtype for one in whole):
        return inputs
    return [
        one
        for one in inputs
        if not is_identity(one)
        or not any(is_length_of(one.owner.inputs[0], other) for other in whole)
    ]


def _replaced(node: Apply[Any], summand: Any) -> list[Any]:
    [old] = node.outputs
    new = summand.sum(dtype=old.type.dtype, acc_dtype=node.op.acc_dtype)
    copy_stack_trace(old, new)
    return [new]
