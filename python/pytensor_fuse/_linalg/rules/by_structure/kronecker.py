"""Work on a Kronecker product, with or without a multiple of the identity, by its factors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytensor.tensor as pt
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.products import kron
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.math import Dot

from pytensor_fuse._linalg.rules.by_structure.triangular import determinant_by_form
from pytensor_fuse._linalg.rules.determinants import is_single_determinant, of_uses
from pytensor_fuse._linalg.structure.free_factors import is_work_to_do
from pytensor_fuse._linalg.structure.kronecker import (
    Kronecker,
    Shifted,
    kronecker_product,
    shifted_kronecker_product,
)
from pytensor_fuse._linalg.structure.matrices import core_of, without_transposes

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph


# PyTensor's annotation is wider than the results.
_kron: Any = kron


def kronecker_determinant(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Compute a determinant from those of the factors, and its logarithm from theirs."""
    known = kronecker_product(node.inputs[0]) if is_single_determinant(node) else None
    if known is None:
        return None
    n_left, n_right = known.sizes
    (left, left_sign, left_log), (right, right_sign, right_log) = map(determinant_by_form, known)
    return of_uses(
        fgraph,
        node.outputs[0],
        lambda: left**n_right * right**n_left,
        lambda: left_sign**n_right * right_sign**n_left,
        lambda: n_right * left_log + n_left * right_log,
    )


def kronecker_solve(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Solve with each factor: ``A^-1 Y B^-T``."""
    right = _right_hand_side(node)
    known = None if right is None else kronecker_product(node.inputs[0])
    return None if known is None else [known.solved(right)]


def _right_hand_side(node: Apply[Any]) -> Any:
    """Return the right-hand side of a solve that is no batch; None for other nodes."""
    core = core_of(node)
    if type(core) is not Solve or node.inputs[1].type.ndim != core.b_ndim:
        return None
    return node.inputs[1] if node.inputs[1].type.numpy_dtype.kind == "f" else None


def kronecker_times_matrix(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Multiply by each factor, ``A Y B'``, or solve with it if the matrix is an inverse."""
    if not isinstance(core_of(node), Dot):
        return None
    left: Any
    right: Any
    left, right = node.inputs
    if any(one.type.numpy_dtype.kind != "f" or one.type.ndim != 2 for one in (left, right)):
        return None
    new = _applied(fgraph, left, right)
    if new is not None:
        return [new] if is_work_to_do(fgraph, node, right) else None
    new = _applied(fgraph, right.T, left.T)
    if new is None or not is_work_to_do(fgraph, node, left):
        return None
    return [new.T]


def _applied(fgraph: FunctionGraph, matrix: Any, right: Any) -> Any:
    """Return the product with a Kronecker product, or with the inverse of one; else None."""
    if right.type.broadcastable[1]:
        new = _applied_to(fgraph, matrix, right.flatten())
        return None if new is None else new[:, None]
    return _applied_to(fgraph, matrix, right)


def _applied_to(fgraph: FunctionGraph, matrix: Any, right: Any) -> Any:
    inner, is_turned = without_transposes(matrix)
    if type(core_of(inner.owner)) is not MatrixInverse:
        known = kronecker_product(matrix)
        return None if known is None else known.times(right)
    of = inner.owner.inputs[0].T if is_turned else inner.owner.inputs[0]
    whole = kronecker_product(of) or shifted_kronecker_product(fgraph, of)
    return None if whole is None else whole.solved(right)


def kronecker_inverse(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Compute an inverse whose elements are used from those of the factors."""
    if type(core_of(node)) is not MatrixInverse:
        return None
    known: Kronecker | Shifted | None = kronecker_product(node.inputs[0])
    if known is not None:
        return [_kron(*known.inverse())]
    known = shifted_kronecker_product(fgraph, node.inputs[0])
    return None if known is None else [known.inverse()]


def shifted_kronecker_solve(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Solve with ``kron(A, B) + c I`` by the eigenvectors of the factors."""
    right = _right_hand_side(node)
    known = None if right is None else shifted_kronecker_product(fgraph, node.inputs[0])
    return None if known is None else [known.solved(right)]


def shifted_kronecker_determinant(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Compute the determinant of ``kron(A, B) + c I`` from the eigenvalues of the factors."""
    is_determinant = is_single_determinant(node)
    known = shifted_kronecker_product(fgraph, node.inputs[0]) if is_determinant else None
    if known is None:
        return None
    values = known.eigenvalues()
    return of_uses(
        fgraph,
        node.outputs[0],
        lambda: pt.prod(values),
        lambda: pt.prod(pt.sign(values)),
        lambda: pt.log(pt.abs(values)).sum(),
    )
