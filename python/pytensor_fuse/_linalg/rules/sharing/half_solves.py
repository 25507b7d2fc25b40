"""Forms of ``A^-1`` that need one of the two triangular solves only: ``A = L L'``, ``Z = L^-1 C``.

The diagonal of ``C' A^-1 C`` has the sums of the squares of the columns of ``Z``, and ``C' A^-1 y``
is ``Z' L^-1 y``. So where nothing else is made of ``A^-1 C = L'^-1 Z``, it is not solved for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytensor.tensor as pt
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.scalar.basic import Mul
from pytensor.tensor.basic import ExtractDiag
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.solvers.psd import CholeskySolve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.math import Dot, Sum

from pytensor_fuse._linalg.structure.matrices import (
    core_of,
    is_real_matrix,
    same,
    scalar_op,
    transpose_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph


class Solution(NamedTuple):
    """The solution ``A^-1 C``, with ``A = L L'``, and ``L^-1 C`` if that is solved for anyway."""

    factor: Any
    columns: Any
    known_half: Any

    @property
    def half(self) -> Any:
        """What is solved for with ``L`` alone."""
        if self.known_half is not None:
            return self.known_half
        solve: Any = Blockwise(SolveTriangular(lower=True, b_ndim=2))
        return solve(self.factor, self.columns)


def quadratic_forms_from_half_solve(
    fgraph: FunctionGraph, node: Apply[Any]
) -> dict[Any, Any] | None:
    """Take the forms of which a solution is a part from ``Z``, if it is a part of nothing else."""
    known = _solution(node)
    if known is None:
        return None
    found = _forms(fgraph, node, known)
    if found is None:
        return None
    # Equal nodes are one only after the next merging.
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
    if any(old.type.dtype != new.type.dtype for old, new in found.items()):
        return None
    copy_stack_trace(list(found), list(found.values()))
    return found or None


def _forms(fgraph: FunctionGraph, node: Apply[Any], known: Solution) -> dict[Any, Any] | None:
    """Return what takes the place of all forms of which a solution is a part."""
    found: dict[Any, Any] = {}
    for view, is_turned in _views(fgraph, node.outputs[0]):
        for client, _ in fgraph.clients[view]:
            if _is_turned(client, view):
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


def _is_turned(client: Apply[Any], view: Any) -> bool:
    """Whether a client is the transpose of a matrix, with no axes added."""
    if not client.outputs or transpose_of(client.outputs[0]) is not view:
        return False
    return bool(client.outputs[0].type.ndim == 2)


def _solution(node: Apply[Any]) -> Solution | None:
    """Return of what a node is the solution, by one solve or by the second of two."""
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


def _views(fgraph: FunctionGraph, matrix: Any) -> Iterator[tuple[Any, bool]]:
    """Find a matrix and its transposes, and whether they are turned."""
    views = [(matrix, False)]
    for view, is_turned in views:
        yield view, is_turned
        for client, _ in fgraph.clients[view]:
            if _is_turned(client, view):
                views.append((client.outputs[0], not is_turned))


def _diagonal_of_form(
    fgraph: FunctionGraph, client: Apply[Any], view: Any, known: Solution, is_turned: bool
) -> dict[Any, Any] | None:
    """Return the sums of squares for the diagonal of ``C' A^-1 C``."""
    if not client.outputs or not isinstance(core_of(client), Dot):
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
        op = core_of(use)
        if not isinstance(op, ExtractDiag) or op.offset or {op.axis1, op.axis2} != {0, 1}:
            return None
        found[use.outputs[0]] = pt.sqr(known.half).sum(axis=0)
    return found


def _sums_of_form(
    fgraph: FunctionGraph, client: Apply[Any], view: Any, known: Solution, is_turned: bool
) -> dict[Any, Any] | None:
    """Return the sums of squares for those of ``C * A^-1 C`` along its rows."""
    if not client.outputs or not isinstance(scalar_op(client.outputs[0]), Mul):
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
    if not client.outputs or not isinstance(core_of(client), Dot):
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
