"""Quadratic forms with ``A^-1`` by one triangular solve: ``A = L L'``, ``Z = L^-1 C``.

The diagonal of ``C' A^-1 C`` is the sums of squares of the columns of ``Z``, and ``C' A^-1 y`` is
``Z' L^-1 y``. Without other uses of ``A^-1 C = L'^-1 Z``, the second solve is omitted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytensor.tensor as pt
from pytensor.scalar.basic import Mul
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.solvers.psd import CholeskySolve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.math import Dot, Sum

from pytensor_fuse._linalg.structure.clients import clients_of, is_output, views_of
from pytensor_fuse._linalg.structure.diagonal import whose_diagonal
from pytensor_fuse._linalg.structure.matrices import (
    core_of,
    is_real_matrix,
    same,
    scalar_op,
    transpose_of,
    without_transposes,
)

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph


class Solution(NamedTuple):
    """The solution ``A^-1 C``, with ``A = L L'``, and ``L^-1 C`` if the graph has it."""

    factor: Any
    columns: Any
    known_half: Any

    @property
    def half(self) -> Any:
        """The solution ``L^-1 C``."""
        if self.known_half is not None:
            return self.known_half
        solve: Any = Blockwise(SolveTriangular(lower=True, b_ndim=2))
        return solve(self.factor, self.columns)


def quadratic_forms_from_half_solve(
    fgraph: FunctionGraph, node: Apply[Any]
) -> dict[Any, Any] | None:
    """Compute the quadratic forms of a solution from ``Z``, if it has no other use."""
    known = _solution(node)
    if known is None:
        return None
    found = _forms(fgraph, node, known)
    if found is None:
        return None
    # Equal nodes are merged only later.
    for twin in fgraph.toposort():
        if twin is not node and _is_twin(twin, known):
            more = _forms(fgraph, twin, known)
            if more is None:
                return None
            found |= more
    # Each product with a vector takes a solve of its own.
    vectors = sum(isinstance(core_of(old.owner), Dot) for old in found)
    if vectors > (known.columns.type.shape[1] or 1):
        return None
    return found


def _forms(fgraph: FunctionGraph, node: Apply[Any], known: Solution) -> dict[Any, Any] | None:
    """Return the replacements of all forms with a solution; None if it has other uses."""
    found: dict[Any, Any] = {}
    [solution] = node.outputs
    for view in views_of(fgraph, solution):
        if is_output(fgraph, view):
            return None
        is_turned = without_transposes(view)[1] != without_transposes(solution)[1]
        for client, _ in clients_of(fgraph, view):
            if transpose_of(client.outputs[0]) is view:
                continue
            new = _sums_of_form(fgraph, client, view, known, is_turned)
            if new is None:
                new = _diagonal_of_form(fgraph, client, view, known, is_turned)
            if new is None:
                new = _product_with_vector(client, view, known, is_turned)
            if new is None:
                return None
            found |= new
    return found


def _solution(node: Apply[Any]) -> Solution | None:
    """Return the solution of one solve, or of the second of two; None for other nodes."""
    core: Any = core_of(node)
    if type(core) not in (CholeskySolve, SolveTriangular) or core.b_ndim != 2:
        return None
    [solution], (matrix, right) = node.outputs, node.inputs
    if not (is_real_matrix(solution) and is_real_matrix(right) and is_real_matrix(matrix)):
        return None
    if type(core) is CholeskySolve:
        return Solution(matrix, right, None) if core.lower else None
    forward, factor = core_of(right.owner), transpose_of(matrix)
    if core.lower or core.unit_diagonal or type(forward) is not SolveTriangular or factor is None:
        return None
    if not forward.lower or forward.unit_diagonal or forward.b_ndim != 2:
        return None
    if not same(right.owner.inputs[0], factor):
        return None
    return Solution(factor, right.owner.inputs[1], right)


def _is_twin(node: Apply[Any], known: Solution) -> bool:
    other = _solution(node)
    return (
        other is not None
        and same(other.factor, known.factor)
        and same(other.columns, known.columns)
    )


def _diagonal_of_form(
    fgraph: FunctionGraph, client: Apply[Any], view: Any, known: Solution, is_turned: bool
) -> dict[Any, Any] | None:
    """Return the replacements of the diagonal of ``C' A^-1 C``: sums of squares."""
    if not isinstance(core_of(client), Dot):
        return None
    left, right = client.inputs
    if (left is view) != is_turned:
        return None
    other = right if left is view else transpose_of(left)
    if other is None or not same(other, known.columns):
        return None
    [product] = client.outputs
    found = {}
    for use, _ in fgraph.clients[product]:
        if not use.outputs or whose_diagonal(use.outputs[0]) is not product:
            return None
        found[use.outputs[0]] = pt.sqr(known.half).sum(axis=0)
    return found


def _sums_of_form(
    fgraph: FunctionGraph, client: Apply[Any], view: Any, known: Solution, is_turned: bool
) -> dict[Any, Any] | None:
    """Return the replacements of the sums of ``C * A^-1 C`` over rows: sums of squares."""
    if not isinstance(scalar_op(client.outputs[0]), Mul):
        return None
    [product] = client.outputs
    others = [one for one in client.inputs if one is not view]
    if len(client.inputs) != 2 or len(others) != 1:
        return None
    [other] = others
    inner = transpose_of(other) if is_turned else other
    if inner is None or not same(inner, known.columns):
        return None
    axis = 1 if is_turned else 0
    found = {}
    for use, _ in fgraph.clients[product]:
        if not isinstance(use.op, Sum) or use.op.axis != (axis,):
            return None
        [total] = use.outputs
        found[total] = pt.sqr(known.half).sum(axis=0, dtype=total.type.dtype)
    return found


def _product_with_vector(
    client: Apply[Any], view: Any, known: Solution, is_turned: bool
) -> dict[Any, Any] | None:
    """Return ``Z' L^-1 y`` for ``(A^-1 C)' y``, or the transpose of that."""
    if not isinstance(core_of(client), Dot):
        return None
    left: Any
    right: Any
    left, right = client.inputs
    is_left = left is view
    vector = right if is_left else left
    if is_left != is_turned or vector.type.ndim != 2:
        return None
    column = vector if is_left else vector.T
    if column.type.broadcastable != (False, True):
        return None
    solve: Any = Blockwise(SolveTriangular(lower=True, b_ndim=2))
    result = known.half.T @ solve(known.factor, column)
    [old] = client.outputs
    return {old: result if is_left else result.T}
