"""Work on a Kronecker product, with a multiple of the identity or without, is done on its factors.

With ``y`` as the rows of a matrix ``Y``, ``kron(A, B) y`` is ``A Y B'``, and so are solves. With
``A = P diag(p) P'`` and ``B = Q diag(q) Q'`` symmetric, the eigenvalues of ``kron(A, B) + c I`` are
``p q' + c``, and its eigenvectors ``kron(P, Q)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.scalar.basic import Add, Sub
from pytensor.tensor.linalg.decomposition.eigen import eigh
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.products import KroneckerProduct
from pytensor.tensor.linalg.solvers.general import Solve, solve
from pytensor.tensor.linalg.summary import Det, det
from pytensor.tensor.math import Dot

from pytensor_fuse._linalg.determinants import of_uses
from pytensor_fuse._linalg.low_rank_updates import diagonal_of, is_of_known_size
from pytensor_fuse._linalg.matrices import (
    core_of,
    is_real_matrix,
    is_transpose,
    scalar_op,
    transpose_of,
)
from pytensor_fuse._pytensor.assumptions import is_known_symmetric

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph


# PyTensor's annotations allow for what these never return.
_det: Any = det
_eigh: Any = eigh
_solve: Any = solve


class Kronecker(NamedTuple):
    """A Kronecker product of two square matrices of known sizes, of which none is 1."""

    left: Any
    right: Any

    @property
    def sizes(self) -> tuple[int, int]:
        """How many rows each has."""
        return self.left.type.shape[0], self.right.type.shape[0]


def kronecker_product(matrix: Any) -> Kronecker | None:
    """Return the factors of a Kronecker product; None if it is not known to be one."""
    if not is_real_matrix(matrix):
        return None
    inner = transpose_of(matrix)
    if inner is not None and inner.type.ndim == 2:
        found = kronecker_product(inner)
        return None if found is None else Kronecker(found.left.T, found.right.T)
    if matrix.owner is None or not isinstance(matrix.owner.op, KroneckerProduct):
        return None
    factors = matrix.owner.inputs
    # A product may be square where its factors are not.
    for one in factors:
        if one.type.ndim != 2 or not is_real_matrix(one) or one.type.shape[0] is None:
            return None
        if one.type.shape[0] != one.type.shape[1]:
            return None
    return Kronecker(*factors)


def kronecker_determinant(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Compute a determinant from those of the factors, and its logarithm from theirs."""
    if type(core_of(node)) is not Det or node.outputs[0].type.ndim:
        return None
    known = kronecker_product(node.inputs[0])
    if known is None:
        return None
    n_left, n_right = known.sizes
    left, right = (_det(one) for one in known)
    return _uses(
        fgraph,
        node,
        left**n_right * right**n_left,
        pt.sign(left) ** n_right * pt.sign(right) ** n_left,
        n_right * pt.log(pt.abs(left)) + n_left * pt.log(pt.abs(right)),
    )


def kronecker_solve(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Solve with each factor: ``A^-1 Y B^-T``."""
    core = core_of(node)
    matrix, *rights = node.inputs
    if type(core) is not Solve or core.b_ndim != 1 or rights[0].type.ndim != 1:
        return None
    known = kronecker_product(matrix)
    if known is None:
        return None
    return _replaced(node, _solved(known, rights[0]))


def _solved(known: Kronecker, right: Any) -> Any:
    # What is supposed of the product need not hold for its factors: two may be negative.
    table = _solve(known.left, _table(right, known))
    return _solve(known.right, table.T).T.flatten()


def kronecker_times_vector(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Multiply by each factor, ``A Y B'``, or solve with it if the matrix is an inverse."""
    if not isinstance(core_of(node), Dot) or node.outputs[0].type.ndim != 2:
        return None
    left: Any
    right: Any
    left, right = node.inputs
    if right.type.broadcastable == (False, True):
        new = _applied(fgraph, left, right.flatten())
        if new is not None:
            return _replaced(node, new[:, None])
    if left.type.broadcastable == (True, False):
        new = _applied(fgraph, right.T, left.flatten())
        if new is not None:
            return _replaced(node, new[None, :])
    return None


def _applied(fgraph: FunctionGraph, matrix: Any, vector: Any) -> Any:
    """Return the product of a vector with a Kronecker product, or with an inverse; or None."""
    inner = transpose_of(matrix)
    while inner is not None and inner.type.ndim == 2 and transpose_of(inner) is not None:
        matrix = transpose_of(inner)
        inner = transpose_of(matrix)
    turned = inner is not None and inner.type.ndim == 2
    node = inner.owner if turned else matrix.owner
    if type(core_of(node)) is not MatrixInverse:
        known = kronecker_product(matrix)
        if known is None:
            return None
        return (known.left @ _table(vector, known) @ known.right.T).flatten()
    of = node.inputs[0].T if turned else node.inputs[0]
    known = kronecker_product(of)
    if known is not None:
        return _solved(known, vector)
    shifted = shifted_kronecker_product(fgraph, of)
    return None if shifted is None else _solved_shifted(shifted, vector)


class Shifted(NamedTuple):
    """A matrix ``kron(A, B) + c I``, with symmetric factors."""

    product: Kronecker
    shift: Any


def shifted_kronecker_product(fgraph: FunctionGraph, matrix: Any) -> Shifted | None:
    """Return the parts of ``kron(A, B) + c I``; None if it is not known to be that."""
    if not is_real_matrix(matrix):
        return None
    inner = transpose_of(matrix)
    if inner is not None and inner.type.ndim == 2:
        # It is symmetric if it is of this form.
        matrix = inner
    op = scalar_op(matrix)
    if not isinstance(op, Add | Sub) or len(matrix.owner.inputs) != 2:
        return None
    orders = (matrix.owner.inputs, matrix.owner.inputs[::-1])
    for product, identity in orders if isinstance(op, Add) else orders[:1]:
        known = kronecker_product(product)
        shift = None if known is None else diagonal_of(identity)
        if known is None or shift is None or shift.type.ndim or not is_of_known_size(identity):
            continue
        if all(_is_symmetric(fgraph, one) for one in known):
            shift = shift if isinstance(op, Add) else -shift
            return Shifted(known, shift) if _pays(known) else None
    return None


def _pays(known: Kronecker) -> bool:
    """Whether the eigendecompositions of the factors take half of a Cholesky factorization."""
    n_left, n_right = known.sizes
    return bool(2 * 3 * 9 * (n_left**3 + n_right**3) <= (n_left * n_right) ** 3)


def _is_symmetric(fgraph: FunctionGraph, matrix: Any) -> bool:
    if isinstance(core_of(matrix.owner), Dot):
        return is_transpose(*matrix.owner.inputs)
    return is_transpose(matrix, matrix) or is_known_symmetric(fgraph, matrix)


def shifted_kronecker_solve(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Solve with ``kron(A, B) + c I`` by the eigenvectors of the factors."""
    core = core_of(node)
    if type(core) is not Solve or core.b_ndim != 1 or node.inputs[1].type.ndim != 1:
        return None
    known = shifted_kronecker_product(fgraph, node.inputs[0])
    if known is None:
        return None
    return _replaced(node, _solved_shifted(known, node.inputs[1]))


def _solved_shifted(known: Shifted, vector: Any) -> Any:
    (p, left), (q, right) = map(_decomposed, known.product)
    table = left.T @ _table(vector, known.product) @ right
    table = table / (p[:, None] * q[None, :] + known.shift)
    return (left @ table @ right.T).flatten()


def _decomposed(matrix: Any) -> tuple[Any, Any]:
    """Return eigenvalues, NaN where the matrix is not finite, and eigenvectors.

    An eigendecomposition raises an exception there, and the factorizations that it stands for do
    not.
    """
    is_finite = pt.isfinite(matrix).all()
    values, vectors = _eigh(pt.switch(is_finite, matrix, np.asarray(0, matrix.type.dtype)))
    nothing = np.asarray(np.nan, matrix.type.dtype)
    return pt.switch(is_finite, values, nothing), vectors


def shifted_kronecker_determinant(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Compute the determinant of ``kron(A, B) + c I`` from the eigenvalues of the factors."""
    if type(core_of(node)) is not Det or node.outputs[0].type.ndim:
        return None
    known = shifted_kronecker_product(fgraph, node.inputs[0])
    if known is None:
        return None
    (p, _), (q, _) = map(_decomposed, known.product)
    values = p[:, None] * q[None, :] + known.shift
    logarithm = pt.log(pt.abs(values)).sum()
    return _uses(fgraph, node, pt.prod(values), pt.prod(pt.sign(values)), logarithm)


def _table(vector: Any, known: Kronecker) -> Any:
    return vector.reshape(known.sizes)


def _uses(
    fgraph: FunctionGraph, node: Apply[Any], number: Any, sign: Any, logarithm: Any
) -> dict[Any, Any]:
    found = of_uses(fgraph, node.outputs[0], number, sign, logarithm)
    return {old: _as(old, new) for old, new in found.items()}


def _replaced(node: Apply[Any], new: Any) -> list[Any]:
    return [_as(node.outputs[0], new)]


def _as(old: Any, new: Any) -> Any:
    if new.type.dtype != old.type.dtype:
        new = new.astype(old.type.dtype)
    copy_stack_trace(old, new)
    return new
