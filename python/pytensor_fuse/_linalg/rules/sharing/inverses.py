"""Inverses and determinants come from a factorization that is there anyway.

The gradient of a log-determinant is an inverse. PyTensor computes it anew, with ``2 n^3``
operations, beside the factorization that serves the determinant and the solves. From a Cholesky
factor it takes ``2/3 n^3`` (LAPACK's potri), from an LU factorization ``4/3 n^3`` (getri), and half
of that if the matrix is symmetric, of whose inverse one triangle is computed.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.tensor.basic import Eye
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky, cholesky
from pytensor.tensor.linalg.decomposition.lu import LUFactor, lu_factor
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.general import Solve, lu_solve
from pytensor.tensor.linalg.solvers.psd import CholeskySolve, cho_solve
from pytensor.tensor.linalg.summary import Det

from pytensor_fuse._linalg.ops.cholesky_inverse import cholesky_inverse
from pytensor_fuse._linalg.ops.lu_inverse import lu_inverse
from pytensor_fuse._linalg.rules.determinants import from_lu
from pytensor_fuse._linalg.rules.replacements import checked
from pytensor_fuse._linalg.structure.lengths import of_length, with_rows_of
from pytensor_fuse._linalg.structure.matrices import (
    are_real_matrices,
    core_of,
    is_of_parts,
    transpose_of,
    without_expansion,
)
from pytensor_fuse._linalg.structure.symmetry import is_symmetric
from pytensor_fuse._pytensor.ops.versions_of_ops import computes_on_demand
from pytensor_fuse._pytensor.rewriting.assumptions import is_known_positive_definite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph


def inverse_from_cholesky(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Replace a solve of ``L L' X = I`` by the inverse from ``L``."""
    core = core_of(node)
    if type(core) is not CholeskySolve or core.b_ndim != 2:
        return None
    factor, right = node.inputs
    rows = _rows_of_identity(without_expansion(right)) if are_real_matrices(factor) else None
    if rows is None:
        return None
    if factor.type.dtype != node.outputs[0].type.dtype:
        return None
    checked = of_length(factor, rows)
    return _replaced(node, cholesky_inverse(checked, lower=core.lower))


def inverse_of_factorized_matrix(
    fgraph: FunctionGraph, node: Apply[Any]
) -> list[Any] | dict[Any, Any] | None:
    """Replace an inverse by that from a factorization of the same matrix.

    The factorization is the Cholesky factorization that the graph has, of a matrix that is known to
    be positive definite, or one that serves a solve which supposes that. Else it is an LU
    factorization, which the graph has or which then serves determinants and solves with that
    matrix, too.
    """
    if type(core_of(node)) is not MatrixInverse:
        return None
    [matrix] = node.inputs
    [old] = node.outputs
    if not are_real_matrices(matrix) or matrix.type.dtype != old.type.dtype:
        return None
    inner = transpose_of(matrix)
    is_turned = inner is not None and inner.type.ndim == matrix.type.ndim
    if is_turned:
        matrix = inner
    if is_of_parts(matrix):
        return None
    work = list(_work_on(fgraph, matrix))
    factors = [one for one, turned in work if type(core_of(one)) is Cholesky and not turned]
    if factors:
        if not is_known_positive_definite(fgraph, matrix):
            return None
        lower: bool = core_of(factors[0]).lower
        return _replaced(node, cholesky_inverse(factors[0].outputs[0], matrix, lower=lower))
    if any(_supposes_positive_definite(one) for one, _ in work):
        return checked(_from_new_cholesky(old, matrix, [one for one, _ in work]))
    if not any(_is_served_by_lu(one, turned) for one, turned in work):
        return None
    if any(type(core_of(one)) is Det for one, _ in work) and computes_on_demand(fgraph):
        # Of a singular matrix the factors are NaN, and so is the determinant from them. That shows
        # only where the inverse, which fails then, is not asked for.
        return None
    packed, pivots = lu_factor(matrix)
    inverse: Any = lu_inverse(packed, pivots, matrix, symmetric=is_symmetric(fgraph, matrix))
    replacements = {old: inverse.mT if is_turned else inverse}
    solves = {}
    for one, turned in work:
        core = core_of(one)
        if type(core) is Solve and _is_served_by_lu(one, turned):
            solves[one.outputs[0]] = (one, partial(lu_solve, (packed, pivots), trans=turned))
        elif type(core) is Det:
            replacements.update(from_lu(fgraph, one.outputs[0], packed, pivots))
    _add_solves(replacements, solves)
    return checked(replacements)


def determinant_of_factorized_matrix(
    fgraph: FunctionGraph, node: Apply[Any]
) -> dict[Any, Any] | None:
    """Serve a determinant and solves with the same matrix by one LU factorization."""
    if type(core_of(node)) is not Det:
        return None
    [matrix], [old] = node.inputs, node.outputs
    if not are_real_matrices(matrix) or matrix.type.dtype != old.type.dtype:
        return None
    inner = transpose_of(matrix)
    if inner is not None and inner.type.ndim == matrix.type.ndim:
        matrix = inner
    work = list(_work_on(fgraph, matrix))
    if any(type(core_of(one)) in (Cholesky, MatrixInverse) for one, _ in work):
        return None
    served = [(one, turned) for one, turned in work if _is_served_by_lu(one, turned)]
    if all(type(core_of(one)) is Det for one, _ in served):
        return None
    packed, pivots = lu_factor(matrix)
    replacements: dict[Any, Any] = {}
    solves = {}
    for one, turned in served:
        if type(core_of(one)) is Solve:
            solves[one.outputs[0]] = (one, partial(lu_solve, (packed, pivots), trans=turned))
        elif type(core_of(one)) is Det:
            replacements.update(from_lu(fgraph, one.outputs[0], packed, pivots, matrix))
    _add_solves(replacements, solves)
    return checked(replacements)


def _add_solves(replacements: dict[Any, Any], solves: dict[Any, tuple[Apply[Any], Any]]) -> None:
    """Solve what has been replaced where it is the right-hand side of another of the solves."""

    def add(solution: Any) -> None:
        node, solve = solves[solution]
        right = node.inputs[1]
        if right in solves and right not in replacements:
            add(right)
        b_ndim = core_of(node).b_ndim
        solved = replacements.get(right)
        given = with_rows_of(right, node.inputs[0], b_ndim) if solved is None else solved
        replacements[solution] = solve(b=given, b_ndim=b_ndim)

    for solution in solves:
        if solution not in replacements:
            add(solution)


def _from_new_cholesky(inverse: Any, matrix: Any, work: list[Apply[Any]]) -> dict[Any, Any]:
    """Serve solves that suppose a positive definite matrix, where PyTensor has not done so yet."""
    factor: Any = cholesky(matrix)
    replacements: dict[Any, Any] = {inverse: cholesky_inverse(factor, matrix)}
    solve = partial(cho_solve, (factor, True))
    supposing = filter(_supposes_positive_definite, work)
    _add_solves(replacements, {one.outputs[0]: (one, solve) for one in supposing})
    return replacements


def _work_on(fgraph: FunctionGraph, matrix: Any) -> Iterator[tuple[Apply[Any], bool]]:
    """Find the nodes whose first input is a matrix, or its transpose, and whether it is that."""
    for client, at in fgraph.clients[matrix]:
        if not client.outputs:
            continue
        turned = client.outputs[0]
        if transpose_of(turned) is matrix and turned.type.ndim == matrix.type.ndim:
            for other, place in fgraph.clients[turned]:
                if place == 0 and other.outputs:
                    yield other, True
        elif at == 0:
            yield client, False


def _supposes_positive_definite(node: Apply[Any]) -> bool:
    core = core_of(node)
    return type(core) is Solve and core.assume_a == "pos" and _is_single(node)


def _is_single(node: Apply[Any]) -> bool:
    """Whether a matrix, or each of a stack, is solved with for one right-hand side of its own."""
    matrix, right = node.inputs
    n_batch = right.type.ndim - core_of(node).b_ndim
    return bool(
        n_batch == matrix.type.ndim - 2
        and right.type.broadcastable[:n_batch] == matrix.type.broadcastable[:n_batch]
    )


def _is_served_by_lu(node: Apply[Any], turned: bool) -> bool:
    """Whether the LU factorization of a matrix serves a node that has it, or its transpose."""
    core = core_of(node)
    if type(core) is Solve:
        return _is_single(node) and core.assume_a == "gen" and node.inputs[1] is not node.inputs[0]
    return type(core) is Det or (type(core) is LUFactor and not turned)


def _rows_of_identity(variable: Any) -> Any:
    """Return how many rows an identity has; None if it is none."""
    if isinstance(variable, Constant):
        data = variable.data
        is_one = data.ndim >= 2 and all(n == 1 for n in data.shape[:-2])
        n = data.shape[-1] if is_one else 0
        is_it = is_one and np.array_equal(data.reshape(data.shape[-2:]), np.eye(n))
        return pt.constant(n) if is_it else None
    node = variable.owner
    if node is None or not isinstance(node.op, Eye):
        return None
    rows, columns, offset = node.inputs
    is_square = rows is columns or (
        isinstance(rows, Constant) and isinstance(columns, Constant) and rows.equals(columns)
    )
    return rows if is_square and isinstance(offset, Constant) and not int(offset.data) else None


def _replaced(node: Apply[Any], new: Any) -> list[Any]:
    copy_stack_trace(node.outputs[0], new)
    return [new]
