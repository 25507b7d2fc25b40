"""The work on a positive definite matrix is served by one Cholesky factorization.

That a matrix is definite is proved by its form (`definite`), before PyTensor transposes and
rearranges what it is made of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytensor.tensor as pt
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.tensor.linalg.decomposition.cholesky import cholesky
from pytensor.tensor.linalg.decomposition.lu import LUFactor
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.solvers.psd import cho_solve
from pytensor.tensor.linalg.solvers.triangular import solve_triangular
from pytensor.tensor.linalg.summary import Det
from pytensor.tensor.math import Dot

from pytensor_fuse._linalg.rules.determinants import from_cholesky
from pytensor_fuse._linalg.structure.definite.definiteness import Definiteness, definiteness
from pytensor_fuse._linalg.structure.diagonal import is_diagonal
from pytensor_fuse._linalg.structure.kronecker import kronecker_product, shifted_kronecker_product
from pytensor_fuse._linalg.structure.low_rank import low_rank_update
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
from pytensor_fuse._linalg.structure.symmetry import is_identity
from pytensor_fuse._pytensor.ops.versions_of_ops import computes_on_demand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

_SERVED = (Solve, MatrixInverse, Det)

# What a Solve may be told of its matrix that a symmetric one fulfils.
_KINDS = frozenset({"gen", "sym", "her", "pos"})


def work_on_definite_matrix(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Replace solves, inverses and determinants of a matrix that is definite by its form."""
    if type(core_of(node)) not in _SERVED:
        return None
    matrix, _ = without_transposes(node.inputs[0])
    if is_of_parts(matrix):
        # PyTensor's own rewriters look for these.
        return None
    work = list(_work_on(fgraph, matrix))
    if any(_is_in_the_way(one) for one in work):
        return None
    work = [one for one in work if type(core_of(one)) in _SERVED]
    if any(_is_inverse_at_work(fgraph, one.outputs[0]) for one in work if _inverts(one)):
        return None
    known = definiteness(matrix)
    if known < Definiteness.USUALLY_DEFINITE or _is_served_by_its_parts(fgraph, matrix):
        return None
    if known < Definiteness.DEFINITE and all(type(core_of(one)) is Det for one in work):
        # The determinant of a singular matrix is 0; what has an inverse is definite.
        return None
    if any(type(core_of(one)) is Det for one in work) and computes_on_demand(fgraph):
        # If it is 0, the inverse may be what is not asked for.
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
    if any(old.type.dtype != new.type.dtype for old, new in replacements.items()):
        return None
    copy_stack_trace(list(replacements), list(replacements.values()))
    return _last_first(fgraph, replacements)


def _inverts(node: Apply[Any]) -> bool:
    return type(core_of(node)) is MatrixInverse


def _is_inverse_at_work(fgraph: FunctionGraph, inverse: Any) -> bool:
    """Whether an inverse is itself inverted, or solved with, or multiplied with a batch.

    PyTensor's own rewriters know what to do with an inverse there.
    """
    for view in _transposes(fgraph, inverse):
        for client, at in fgraph.clients[view]:
            if at == 0 and type(core_of(client)) in (*_SERVED, LUFactor):
                return True
            if client.outputs and client.outputs[0].type.ndim > 2:
                return True
    return False


def _is_served_by_its_parts(fgraph: FunctionGraph, matrix: Any) -> bool:
    """Whether rules that come later have smaller matrices to factorize."""
    update = low_rank_update(matrix)
    if update is not None and update.pays():
        return True
    known = kronecker_product(matrix) or shifted_kronecker_product(fgraph, matrix)
    return known is not None


def _transposes(fgraph: FunctionGraph, matrix: Any) -> Iterator[Any]:
    """Find a matrix, and its transposes in a graph, and theirs: of a symmetric one all the same."""
    yield matrix
    for client, _ in fgraph.clients[matrix]:
        if client.outputs and transpose_of(client.outputs[0]) is matrix:
            [turned] = client.outputs
            if turned.type.ndim == 2:
                yield from _transposes(fgraph, turned)


def _work_on(fgraph: FunctionGraph, matrix: Any) -> Iterator[Apply[Any]]:
    for view in _transposes(fgraph, matrix):
        for client, at in fgraph.clients[view]:
            if at == 0 and client.outputs:
                yield client
                # With axes in front it is factorized for a batch.
                expanded = client.outputs[0]
                if expanded.type.ndim > 2 and without_expansion(expanded) is view:
                    yield from (node for node, place in fgraph.clients[expanded] if place == 0)


def _is_in_the_way(node: Apply[Any]) -> bool:
    """Whether it needs an LU factorization of the matrix anyway, which then serves the others."""
    core = core_of(node)
    if node.inputs[0].type.ndim != 2:
        return type(core) in (*_SERVED, LUFactor)
    if type(core) is Solve:
        is_single = node.inputs[1].type.ndim == core.b_ndim
        return not is_single or core.assume_a not in _KINDS
    return type(core) is LUFactor


def _solved(factor: Any, right: Any, b_ndim: int) -> Any:
    """Solve as PyTensor does it where it is told that a matrix is positive definite."""
    solve: Any = solve_triangular
    half = solve(factor, right, lower=True, b_ndim=b_ndim)
    return solve(factor.mT, half, lower=False, b_ndim=b_ndim)


def _without_inverse(
    fgraph: FunctionGraph, inverse: Any, matrix: Any, factor: Any
) -> dict[Any, Any]:
    """Make products with an inverse solves, and what else needs it comes from the factor."""
    found: dict[Any, Any] = {}
    views = list(_transposes(fgraph, inverse))
    for view in views:
        others = False
        for client, at in fgraph.clients[view]:
            if not client.outputs:
                others = True
            elif isinstance(core_of(client), Dot) and client.outputs[0].type.ndim == 2:
                other: Any = client.inputs[1 - at]
                [old] = client.outputs
                if is_diagonal(other) or is_zero(other):
                    # PyTensor multiplies rows or columns, and leaves zeros out.
                    others = True
                    continue
                others |= other in views
                solved = _solved(factor, other if at == 0 else other.mT, 2)
                found[old] = solved if at == 0 else solved.mT
            elif transpose_of(client.outputs[0]) is not view or client.outputs[0].type.ndim != 2:
                others = True
        if others:
            solve: Any = cho_solve
            identity = _identity_in(matrix)
            if identity is None:
                identity = pt.eye(rows_of(fgraph, matrix), dtype=matrix.type.dtype)
            found[view] = solve((factor, True), identity)
    return found


def _identity_in(matrix: Any, depth: int = 4) -> Any:
    """Return the identity, of the same size, that is a term or factor of a matrix; None if none."""
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


def _last_first(fgraph: FunctionGraph, replacements: dict[Any, Any]) -> dict[Any, Any]:
    """Sort replacements such that none brings back what another has removed."""
    place = {node: i for i, node in enumerate(fgraph.toposort())}
    return dict(sorted(replacements.items(), key=lambda pair: -place[pair[0].owner]))
