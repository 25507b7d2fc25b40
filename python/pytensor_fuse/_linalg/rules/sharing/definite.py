"""One Cholesky factorization for all work on a positive definite matrix.

The form of the expression proves definiteness, before PyTensor transposes and rearranges its parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytensor.tensor as pt
from pytensor.tensor.linalg.decomposition.cholesky import cholesky
from pytensor.tensor.linalg.decomposition.lu import LUFactor
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.solvers.psd import cho_solve
from pytensor.tensor.linalg.solvers.triangular import solve_triangular
from pytensor.tensor.linalg.summary import Det
from pytensor.tensor.math import Dot

from pytensor_fuse._linalg.rules.determinants import from_cholesky
from pytensor_fuse._linalg.structure.clients import clients_of, is_output, last_first, views_of
from pytensor_fuse._linalg.structure.definite.definiteness import Definiteness, definiteness
from pytensor_fuse._linalg.structure.diagonal import is_diagonal, is_identity
from pytensor_fuse._linalg.structure.matrices import (
    core_of,
    is_of_parts,
    is_real_matrix,
    is_zero,
    rows_of,
    scalar_op,
    transpose_of,
    without_expansion,
    without_transposes,
)
from pytensor_fuse._linalg.structure.summands import structured_inverse
from pytensor_fuse._pytensor.ops.versions_of_ops import computes_on_demand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

_SERVED = (Solve, MatrixInverse, Det)

# Assumptions of a Solve that a symmetric matrix fulfils.
_KINDS = frozenset({"gen", "sym", "her", "pos"})


def work_on_definite_matrix(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Replace solves, inverses and determinants of a matrix that is definite by its form."""
    if type(core_of(node)) not in _SERVED:
        return None
    matrix, _ = without_transposes(node.inputs[0])
    if is_of_parts(matrix):
        # PyTensor's own rewriters match these.
        return None
    work = list(_work_on(fgraph, matrix))
    if any(_is_in_the_way(one) for one in work):
        return None
    work = [one for one in work if type(core_of(one)) in _SERVED]
    inverses = [one.outputs[0] for one in work if type(core_of(one)) is MatrixInverse]
    if any(_is_inverse_at_work(fgraph, one) for one in inverses):
        return None
    known = definiteness(matrix)
    # Later rules have smaller matrices to factorize than a structured one.
    if known < Definiteness.USUALLY_DEFINITE or structured_inverse(fgraph, matrix):
        return None
    if known < Definiteness.DEFINITE and all(type(core_of(one)) is Det for one in work):
        # The determinant of a singular matrix is 0; a matrix with an inverse is definite.
        return None
    if any(type(core_of(one)) is Det for one in work) and computes_on_demand(fgraph):
        # If it is 0, the inverse may not be needed.
        return None
    factor = cholesky(matrix)
    replacements: dict[Any, Any] = {}
    for one in work:
        [old] = one.outputs
        match core_of(one):
            case Solve(b_ndim=b_ndim):
                replacements[old] = _solved(factor, one.inputs[1], b_ndim)
            case Det():
                replacements.update(from_cholesky(fgraph, old, factor))
            case _:
                replacements.update(_without_inverse(fgraph, old, matrix, factor))
    return last_first(fgraph, replacements)


def _is_inverse_at_work(fgraph: FunctionGraph, inverse: Any) -> bool:
    """Whether an inverse is itself inverted, solved with, or multiplied with a batch.

    PyTensor's own rewriters handle these.
    """
    for view in views_of(fgraph, inverse):
        for client, at in clients_of(fgraph, view):
            if at == 0 and type(core_of(client)) in (*_SERVED, LUFactor):
                return True
            if client.outputs[0].type.ndim > 2:
                return True
    return False


def _work_on(fgraph: FunctionGraph, matrix: Any) -> Iterator[Apply[Any]]:
    for view in views_of(fgraph, matrix):
        for client, at in clients_of(fgraph, view):
            if at == 0:
                yield client
                # With axes in front it is factorized for a batch.
                expanded = client.outputs[0]
                if expanded.type.ndim > 2 and without_expansion(expanded) is view:
                    yield from (node for node, place in clients_of(fgraph, expanded) if place == 0)


def _is_in_the_way(node: Apply[Any]) -> bool:
    """Whether a node needs an LU factorization of the matrix, which then serves the others."""
    core = core_of(node)
    if node.inputs[0].type.ndim != 2:
        return type(core) in (*_SERVED, LUFactor)
    if type(core) is Solve:
        is_single = node.inputs[1].type.ndim == core.b_ndim
        return not is_single or core.assume_a not in _KINDS
    return type(core) is LUFactor


def _solved(factor: Any, right: Any, b_ndim: int) -> Any:
    """Solve in the form of PyTensor's solves with a positive definite matrix."""
    solve: Any = solve_triangular
    half = solve(factor, right, lower=True, b_ndim=b_ndim)
    return solve(factor.mT, half, lower=False, b_ndim=b_ndim)


def _without_inverse(
    fgraph: FunctionGraph, inverse: Any, matrix: Any, factor: Any
) -> dict[Any, Any]:
    """Replace products with an inverse by solves, and other uses by the inverse from the factor."""
    found: dict[Any, Any] = {}
    views = views_of(fgraph, inverse)
    for view in views:
        others = is_output(fgraph, view)
        for client, at in clients_of(fgraph, view):
            [old, *_] = client.outputs
            if isinstance(core_of(client), Dot) and old.type.ndim == 2:
                other: Any = client.inputs[1 - at]
                if is_diagonal(other) or is_zero(other):
                    # PyTensor scales rows or columns, and removes zeros.
                    others = True
                    continue
                others |= other in views
                solved = _solved(factor, other if at == 0 else other.mT, 2)
                found[old] = solved if at == 0 else solved.mT
            elif transpose_of(old) is not view:
                others = True
        if others:
            solve: Any = cho_solve
            identity = _identity_in(matrix)
            if identity is None:
                identity = pt.eye(rows_of(fgraph, matrix), dtype=matrix.type.dtype)
            found[view] = solve((factor, True), identity)
    return found


def _identity_in(matrix: Any, depth: int = 4) -> Any:
    """Return an identity of the same size among the terms and factors of a matrix; else None."""
    if is_identity(matrix):
        return matrix
    if depth == 0 or scalar_op(matrix) is None:
        return None
    for part in matrix.owner.inputs:
        if is_real_matrix(part) and part.type.dtype == matrix.type.dtype:
            found = _identity_in(part, depth - 1)
            if found is not None:
                return found
    return None
