"""Work on triangular matrices, and on their products, by triangular solves and diagonals.

``det T`` is the product of the diagonal, ``T^-1 B`` one pass over ``T``, and ``(T U)^-1 B`` is
``U^-1 T^-1 B``. No matrix is factorized, and no product of triangles is computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytensor.tensor as pt
from pytensor.scalar.basic import Mul
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.inverse import MatrixInverse, inv
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.solvers.psd import cho_solve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular, solve_triangular
from pytensor.tensor.linalg.summary import Det, det
from pytensor.tensor.math import Dot

from pytensor_fuse._linalg.costs import length, solve_cost, term
from pytensor_fuse._linalg.rules.determinants import of_uses
from pytensor_fuse._linalg.structure.diagonal import is_diagonal
from pytensor_fuse._linalg.structure.lengths import if_equal
from pytensor_fuse._linalg.structure.matrices import (
    core_of,
    is_of_parts,
    is_zero,
    product_of,
    rows_of,
    same,
    scalar_op,
    sum_of,
    transpose_of,
)
from pytensor_fuse._linalg.structure.triangles.triangular import (
    Triangle,
    are_transposes,
    is_gram,
    is_square,
    triangle_of,
    triangular_factors,
)
from pytensor_fuse._pytensor.rewriting.assumptions import is_taken_for_triangular

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

_solve: Any = solve_triangular
_cho_solve: Any = cho_solve
_inv: Any = inv
_det: Any = det

# Assumptions of a Solve that a matrix ``A A'`` fulfils.
_OF_GRAM: Final = frozenset({"gen", "sym", "her", "pos"})


def determinant_by_form(matrix: Any) -> tuple[Any, Any, Any]:
    """Return a determinant, its sign and the logarithm of its absolute value."""
    if triangle_of(None, matrix):
        return _of_diagonals([matrix])
    number = _det(matrix)
    return number, pt.sign(number), pt.log(pt.abs(number))


def triangular_determinant(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Take a determinant, its sign and its logarithm from diagonals."""
    if type(core_of(node)) is not Det:
        return None
    [matrix], [old] = node.inputs, node.outputs
    factors = _factors(fgraph, matrix)
    if not factors:
        return None
    number, sign, logarithm = _of_diagonals(factors)
    is_positive = is_gram(factors) and len(factors) > 1
    return of_uses(
        fgraph, old, lambda: number, lambda: sign, lambda: logarithm, is_positive=is_positive
    )


def _of_diagonals(factors: list[Any]) -> tuple[Any, Any, Any]:
    """Return the determinant of a product, its sign and the logarithm of its absolute value."""
    squared: list[Any] = []
    once: list[Any] = []
    left = list(factors)
    while left:
        factor = left.pop(0)
        at = next(
            (i for i, one in enumerate(left) if same(one, factor) or are_transposes(one, factor)),
            None,
        )
        if at is not None:
            del left[at]
        (once if at is None else squared).append(diagonal_of_square_triangle(factor))
    numbers = [pt.prod(one, axis=-1) for one in once]
    signs = [pt.prod(pt.sign(one), axis=-1) for one in once]
    logarithms = [pt.log(pt.abs(one)).sum(axis=-1) for one in once]
    numbers += [pt.sqr(pt.prod(one, axis=-1)) for one in squared]
    signs += [pt.sqr(pt.prod(pt.sign(one), axis=-1)) for one in squared]
    logarithms += [2 * pt.log(pt.abs(one)).sum(axis=-1) for one in squared]
    return product_of(numbers), product_of(signs), sum_of(logarithms)


def diagonal_of_square_triangle(matrix: Any) -> Any:
    """Return the diagonal of matrices, after a check that they are square."""
    inner = transpose_of(matrix)
    matrix = matrix if inner is None else inner
    diagonal: Any = pt.diagonal(matrix, axis1=-2, axis2=-1)
    return diagonal if is_square(matrix) else if_equal(diagonal, *matrix.shape[-2:])


def triangular_solve(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Solve with triangular factors, one after the other."""
    core = core_of(node)
    if type(core) is not Solve:
        return None
    matrix, right = node.inputs
    if right.type.dtype != matrix.type.dtype or core.assume_a not in _OF_GRAM:
        return None
    factors = _factors(fgraph, matrix)
    if core.assume_a != "gen" and not (len(factors) > 1 and is_gram(factors)):
        return None
    # A triangular product takes one solve, unless solves with its factors cost less than it.
    if len(factors) > 1 and not _pays(len(factors), matrix, right, core.b_ndim):
        factors = [matrix] if triangle_of(fgraph, matrix) else []
    if not factors:
        return None
    return [_solved(fgraph, factors, right, core.b_ndim)]


def _pays(passes: int, matrix: Any, right: Any, b_ndim: int) -> bool:
    """Whether the triangular solves cost at most a factorization and two solves."""
    n = length(matrix, -1, "n")
    columns = 1 if b_ndim == 1 else length(right, -1, "k")
    # In thirds of an operation: the factorization takes 2/3 n^3.
    ours = solve_cost(3 * passes, n, columns)
    return ours.is_at_most(term(2, n, n, n) + solve_cost(6, n, columns))


def _solved(fgraph: FunctionGraph, factors: list[Any], right: Any, b_ndim: int) -> Any:
    if len(factors) == 2 and are_transposes(*factors):
        # In the form of PyTensor's solves after a Cholesky factorization.
        first = factors[0]
        lower = bool(triangle_of(fgraph, first) & Triangle.LOWER)
        if lower:
            half = _solve(first, right, lower=True, b_ndim=b_ndim)
            return _solve(first.mT, half, lower=False, b_ndim=b_ndim)
    for factor in factors:
        lower = bool(triangle_of(fgraph, factor) & Triangle.LOWER)
        right = _solve(factor, right, lower=lower, b_ndim=b_ndim)
    return right


def product_with_triangular_inverse(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Solve instead of multiplying with an inverse, and cancel equal factors."""
    if not isinstance(core_of(node), Dot):
        return None
    left: Any
    right: Any
    left, right = node.inputs
    for one, other, is_first in ((left, right, True), (right, left, False)):
        known = inverse_in(fgraph, one)
        if known is None or other.type.dtype != one.type.dtype:
            continue
        if other.type.ndim != one.type.ndim:
            continue
        if is_zero(other) or is_diagonal(other):
            # PyTensor removes zeros, and scales rows or columns.
            continue
        numbers, factors = known
        if is_first:
            new = _times_inverse(fgraph, factors, other)
        else:
            new = _times_inverse(fgraph, [one.mT for one in reversed(factors)], other.mT)
            new = None if new is None else new.mT
        if new is None:
            continue
        return [product_of([new, *numbers])]
    return None


def inverse_in(fgraph: FunctionGraph, variable: Any) -> tuple[list[Any], list[Any]] | None:
    """Return numbers and triangular factors, if a variable is numbers times their inverse."""
    if isinstance(scalar_op(variable), Mul):
        parts = variable.owner.inputs
        whole = [one for one in parts if not all(one.type.broadcastable[-2:])]
        if len(whole) != 1 or whole[0].type.ndim != variable.type.ndim:
            return None
        found = inverse_in(fgraph, whole[0])
        if found is None:
            return None
        numbers, factors = found
        return [*numbers, *(one for one in parts if one is not whole[0])], factors
    inner = transpose_of(variable)
    if inner is not None:
        found = inverse_in(fgraph, inner)
        return None if found is None else (found[0], [one.mT for one in reversed(found[1])])
    if type(core_of(variable.owner)) is not MatrixInverse:
        return None
    factors = _factors(fgraph, variable.owner.inputs[0])
    return ([], factors) if factors else None


def _times_inverse(fgraph: FunctionGraph, factors: list[Any], other: Any) -> Any:
    """Return the inverse of a product times a matrix; None if that costs more than before."""
    left, right = list(factors), [other]
    while (
        left
        and right
        and same(without_pairs_of_transposes(left[0]), without_pairs_of_transposes(right[0]))
    ):
        del left[0], right[0]
    if right:
        if len(left) > 2:
            return None
        return _solved(fgraph, left, right[0], 2)
    # Only an inverse is left; a matrix and its transpose share one.
    if len(left) != 1:
        return None
    inner = transpose_of(without_pairs_of_transposes(left[0]))
    return _inv(without_pairs_of_transposes(left[0])) if inner is None else _inv(inner).mT


def without_pairs_of_transposes(matrix: Any) -> Any:
    """Return a matrix without pairs of transpositions."""
    inner = transpose_of(matrix)
    again = None if inner is None else transpose_of(inner)
    return matrix if again is None else without_pairs_of_transposes(again)


def triangular_inverse(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Solve with triangular factors for the identity."""
    if type(core_of(node)) is not MatrixInverse:
        return None
    [matrix] = node.inputs
    if is_diagonal(matrix):
        return None
    factors = _factors(fgraph, matrix)
    if len(factors) > 2 or (len(factors) == 2 and triangle_of(fgraph, matrix)):
        factors = [matrix] if triangle_of(fgraph, matrix) else []
    if not factors:
        return None
    identity = pt.eye(_rows(fgraph, factors[0]), dtype=matrix.type.dtype)
    if len(factors) == 2 and are_transposes(*factors):
        first = factors[0]
        if triangle_of(fgraph, first) & Triangle.LOWER:
            return [_cho_solve((first, True), identity, b_ndim=2)]
    return [_solved(fgraph, factors, identity, 2)]


def _rows(fgraph: FunctionGraph, matrix: Any) -> Any:
    known = matrix.type.shape[-2]
    if known is not None:
        return known
    return rows_of(fgraph, matrix) if matrix.type.ndim == 2 else matrix.shape[-2]


def cholesky_of_triangular_product(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Return the factor of ``L L'``: ``L``, with a positive diagonal.

    The factor of a singular matrix is NaN. If PyTensor itself knows that ``L`` is triangular, it
    assumes a positive diagonal. A factor with a gradient stays for the rule `cholesky_gradient`.
    """
    core = core_of(node)
    if type(core) is not Cholesky:
        return None
    factors = _factors(fgraph, node.inputs[0])
    if len(factors) != 2 or not are_transposes(*factors):
        return None
    factor = factors[0]
    if not triangle_of(fgraph, factor) & Triangle.LOWER:
        return None
    if is_taken_for_triangular(fgraph, factor) or _has_gradient(fgraph, node.outputs[0]):
        return None
    diagonal = pt.diagonal(factor, axis1=-2, axis2=-1)
    nan = pt.constant(float("nan"), dtype=factor.type.dtype)
    is_singular = pt.any(pt.eq(diagonal, 0), axis=-1, keepdims=True)
    signs = pt.where(is_singular, nan, pt.sign(diagonal))
    result = factor * pt.expand_dims(signs, -2)
    return [result if core.lower else result.mT]


def _has_gradient(fgraph: FunctionGraph, factor: Any) -> bool:
    """Whether the graph has the gradient of a factorization: two solves with the transpose."""
    for client, _ in fgraph.clients[factor]:
        if client.outputs and transpose_of(client.outputs[0]) is factor:
            for solve, _ in fgraph.clients[client.outputs[0]]:
                if type(core_of(solve)) is SolveTriangular:
                    inner = transpose_of(solve.inputs[1])
                    if inner is not None and core_of(inner.owner) == core_of(solve):
                        return True
    return False


def _factors(fgraph: FunctionGraph, matrix: Any) -> list[Any]:
    """Return the triangular factors of matrices of floats that are left to no other rule."""
    if matrix.type.ndim < 2 or matrix.type.numpy_dtype.kind != "f" or is_of_parts(matrix):
        return []
    if any(matrix.type.broadcastable[-2:]):
        return []
    inner = transpose_of(matrix)
    if inner is not None and is_of_parts(inner):
        return []
    found = triangular_factors(fgraph, matrix)
    if any(one.type.dtype != matrix.type.dtype for one in found):
        return []
    return found
