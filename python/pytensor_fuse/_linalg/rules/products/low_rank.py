"""Solves and products whose operands are outer or thin products.

``A^-1 (u v')`` is ``(A^-1 u) v'``, and ``A (u v')`` is ``(A u) v'``: one column instead of all, and
an elementwise product. The diagonal of a product needs only its own elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.tensor.basic import ExtractDiag
from pytensor.tensor.linalg.solvers.core import SolveBase
from pytensor.tensor.math import Dot

from pytensor_fuse._linalg.costs import SOLVE_PASSES, length, product_cost, solve_cost, term
from pytensor_fuse._linalg.structure.matrices import (
    are_real_matrices,
    core_of,
    is_real_matrix,
    turned,
)
from pytensor_fuse._linalg.structure.outer_products import outer_product

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

    Replacements = list[Any] | None


def _is_solve(node: Apply[Any]) -> bool:
    core = core_of(node)
    return type(core).__name__ in SOLVE_PASSES and isinstance(core, SolveBase) and core.b_ndim == 2


def solve_of_outer_product(fgraph: FunctionGraph, node: Apply[Any]) -> Replacements:
    """Solve with the column of ``u v'`` alone: ``(A^-1 u) v'``."""
    if not _is_solve(node):
        return None
    matrix, right = node.inputs
    if not (are_real_matrices(matrix) and are_real_matrices(right)):
        return None
    passes = SOLVE_PASSES[type(core_of(node)).__name__]
    n, k = length(matrix, -1, "n"), length(right, -1, "k")
    if not (solve_cost(passes, n, 1) + term(1, n, k)).is_at_most(solve_cost(passes, n, k)):
        return None
    found = outer_product(right)
    if found is None or found.column.type.broadcastable[-2] or found.row.type.broadcastable[-1]:
        return None
    return [node.op(matrix, found.column) * found.row]


def solve_of_thin_product(fgraph: FunctionGraph, node: Apply[Any]) -> Replacements:
    """Solve with the thin factor of ``U V'``: ``(A^-1 U) V'``."""
    if not _is_solve(node):
        return None
    matrix, right = node.inputs
    if not (is_real_matrix(matrix) and is_real_matrix(right)):
        return None
    if not isinstance(core_of(right.owner), Dot):
        return None
    thin, other = right.owner.inputs
    if thin.type.ndim != 2 or other.type.ndim != 2 or len(fgraph.clients[right]) != 1:
        return None
    passes = SOLVE_PASSES[type(core_of(node)).__name__]
    n, r, k = length(matrix, -1, "n"), length(thin, -1, "r"), length(right, -1, "k")
    if n == "n":
        # Only the number of columns counts, as the product is in both forms.
        pays = isinstance(r, int) and isinstance(k, int) and r <= k
    else:
        pays = solve_cost(passes, n, r).is_at_most(solve_cost(passes, n, k))
    if not pays or r == k:
        return None
    return [right.owner.op(node.op(matrix, thin), other)]


def product_with_outer_product(fgraph: FunctionGraph, node: Apply[Any]) -> Replacements:
    """Multiply by the column or the row alone: ``(A u) v'``, ``u (v' B)``."""
    if not isinstance(core_of(node), Dot):
        return None
    left, right = node.inputs
    if not (is_real_matrix(left) and is_real_matrix(right)):
        return None
    m, k, n = length(left, 0, "m"), length(left, 1, "k"), length(right, 1, "n")
    before = product_cost(m, k, n)
    found = outer_product(right)
    if found is not None and not found.column.type.broadcastable[0]:
        after = product_cost(m, k, 1) + term(1, m, n)
        if not found.row.type.broadcastable[1] and after.is_at_most(before):
            return [node.op(left, found.column) * found.row]
    found = outer_product(left)
    if found is not None and not found.row.type.broadcastable[1]:
        after = product_cost(1, k, n) + term(1, m, n)
        if not found.column.type.broadcastable[0] and after.is_at_most(before):
            return [found.column * node.op(found.row, right)]
    return None


def diagonal_of_product(fgraph: FunctionGraph, node: Apply[Any]) -> Replacements:
    """Compute the diagonal of ``A B`` as the sums of the rows of ``A * B'``."""
    op = core_of(node)
    if not isinstance(op, ExtractDiag):
        return None
    [product] = node.inputs
    if op.offset != 0 or {op.axis1, op.axis2} != {0, 1} or not is_real_matrix(product):
        return None
    if not isinstance(core_of(product.owner), Dot) or len(fgraph.clients[product]) != 1:
        return None
    left, right = product.owner.inputs
    if not (is_real_matrix(left) and is_real_matrix(right)):
        return None
    right = turned(right)
    rows, columns = left.type.shape[0], right.type.shape[0]
    if rows is None or rows != columns:
        # The diagonal is as long as the shorter side.
        left, right = left[: right.shape[0]], right[: left.shape[0]]
    return [(left * right).sum(axis=1)]
