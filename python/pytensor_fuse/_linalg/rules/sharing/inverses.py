"""Inverses and determinants from a factorization that the graph needs anyway.

The gradient of a log-determinant is an inverse. PyTensor computes it with ``2 n^3`` operations,
beside the factorization for the determinant and the solves. From a Cholesky factor it takes
``2/3 n^3`` (LAPACK's potri), from an LU factorization ``4/3 n^3`` (getri), and for a symmetric
matrix, by one triangle, half of that.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky, cholesky
from pytensor.tensor.linalg.decomposition.lu import LUFactor, lu_factor
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.general import Solve, lu_solve
from pytensor.tensor.linalg.solvers.psd import CholeskySolve, cho_solve
from pytensor.tensor.linalg.summary import Det

from pytensor_fuse._linalg.ops.cholesky_inverse import cholesky_inverse
from pytensor_fuse._linalg.ops.lu_inverse import lu_inverse
from pytensor_fuse._linalg.rules.determinants import from_lu
from pytensor_fuse._linalg.structure.clients import clients_of
from pytensor_fuse._linalg.structure.diagonal import is_identity
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
    return [cholesky_inverse(checked, lower=core.lower)]


def inverse_of_factorized_matrix(
    fgraph: FunctionGraph, node: Apply[Any]
) -> list[Any] | dict[Any, Any] | None:
    """Replace an inverse by that from a factorization of the same matrix.

    That is a Cholesky factorization if the matrix is known to be positive definite and the graph
    has one, or if a solve assumes positive definiteness; else an LU factorization, which then
    serves determinants and solves with the matrix, too.
    """
    if type(core_of(node)) is not MatrixInverse:
        return None
    [matrix] = node.inputs
    [old] = node.outputs
    if not are_real_matrices(matrix) or matrix.type.dtype != old.type.dtype:
        return None
    inner = transpose_of(matrix)
    is_turned = inner is not None
    matrix = inner if is_turned else matrix
    if is_of_parts(matrix):
        return None
    work = list(_work_on(fgraph, matrix))
    factors = [one for one, turned in work if type(core_of(one)) is Cholesky and not turned]
    if factors:
        if not is_known_positive_definite(fgraph, matrix):
            return None
        lower: bool = core_of(factors[0]).lower
        return [cholesky_inverse(factors[0].outputs[0], matrix, lower=lower)]
    if any(_supposes_positive_definite(one) for one, _ in work):
        return _from_new_cholesky(old, matrix, [one for one, _ in work])
    if not any(_is_served_by_lu(one, turned) for one, turned in work):
        return None
    if any(type(core_of(one)) is Det for one, _ in work) and computes_on_demand(fgraph):
        # The determinant of a singular matrix would be NaN, as its factors are. That shows only if
        # the inverse, which fails then, is not computed.
        return None
    packed, pivots = lu_factor(matrix)
    inverse: Any = lu_inverse(packed, pivots, matrix, symmetric=is_symmetric(fgraph, matrix))
    replacements = {old: inverse.mT if is_turned else inverse}
    return _with_work_by_lu(fgraph, replacements, work, (packed, pivots))


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
    matrix = matrix if inner is None else inner
    work = list(_work_on(fgraph, matrix))
    if any(type(core_of(one)) in (Cholesky, MatrixInverse) for one, _ in work):
        return None
    served = [(one, turned) for one, turned in work if _is_served_by_lu(one, turned)]
    if all(type(core_of(one)) is Det for one, _ in served):
        return None
    return _with_work_by_lu(fgraph, {}, served, lu_factor(matrix), matrix)


def _with_work_by_lu(
    fgraph: FunctionGraph,
    replacements: dict[Any, Any],
    work: list[tuple[Apply[Any], bool]],
    factors: tuple[Any, Any],
    matrix: Any = None,
) -> dict[Any, Any]:
    """Add the solves and determinants of the work that an LU factorization serves.

    Parameters
    ----------
    fgraph, replacements
        The graph, and the replacements so far.
    work
        Nodes that work on the matrix, and whether on its transpose.
    factors
        The factorization.
    matrix
        The matrix, if the determinant of a singular one is to be 0.
    """
    solves = {}
    for one, turned in work:
        if type(core_of(one)) is Solve and _is_served_by_lu(one, turned):
            solves[one.outputs[0]] = (one, partial(lu_solve, factors, trans=turned))
        elif type(core_of(one)) is Det:
            replacements.update(from_lu(fgraph, one.outputs[0], *factors, matrix))
    _add_solves(replacements, solves)
    return replacements


def _add_solves(replacements: dict[Any, Any], solves: dict[Any, tuple[Apply[Any], Any]]) -> None:
    """Add solves with factors, first those whose solutions are right-hand sides of others."""

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
    """Replace an inverse, and solves that assume a positive definite matrix, by one factor."""
    factor: Any = cholesky(matrix)
    replacements: dict[Any, Any] = {inverse: cholesky_inverse(factor, matrix)}
    solve = partial(cho_solve, (factor, True))
    supposing = filter(_supposes_positive_definite, work)
    _add_solves(replacements, {one.outputs[0]: (one, solve) for one in supposing})
    return replacements


def _work_on(fgraph: FunctionGraph, matrix: Any) -> Iterator[tuple[Apply[Any], bool]]:
    """Find the nodes whose first input is a matrix, or its transpose, and which of both it is."""
    for client, at in clients_of(fgraph, matrix):
        if transpose_of(client.outputs[0]) is matrix:
            for other, place in clients_of(fgraph, client.outputs[0]):
                if place == 0:
                    yield other, True
        elif at == 0:
            yield client, False


def _supposes_positive_definite(node: Apply[Any]) -> bool:
    core = core_of(node)
    return type(core) is Solve and core.assume_a == "pos" and _is_single(node)


def _is_single(node: Apply[Any]) -> bool:
    """Whether a solve has one right-hand side for each matrix."""
    matrix, right = node.inputs
    n_batch = right.type.ndim - core_of(node).b_ndim
    return bool(
        n_batch == matrix.type.ndim - 2
        and right.type.broadcastable[:n_batch] == matrix.type.broadcastable[:n_batch]
    )


def _is_served_by_lu(node: Apply[Any], turned: bool) -> bool:
    """Whether the LU factorization of a matrix serves a node with it, or with its transpose."""
    core = core_of(node)
    if type(core) is Solve:
        return _is_single(node) and core.assume_a == "gen" and node.inputs[1] is not node.inputs[0]
    return type(core) is Det or (type(core) is LUFactor and not turned)


def _rows_of_identity(variable: Any) -> Any:
    """Return the number of rows of an identity; None for other matrices."""
    if isinstance(variable, Constant):
        data = variable.data
        is_one = data.ndim >= 2 and all(n == 1 for n in data.shape[:-2])
        n = data.shape[-1] if is_one else 0
        is_it = is_one and np.array_equal(data.reshape(data.shape[-2:]), np.eye(n))
        return pt.constant(n) if is_it else None
    return variable.owner.inputs[0] if is_identity(variable) else None
