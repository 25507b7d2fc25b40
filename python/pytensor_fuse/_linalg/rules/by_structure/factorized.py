"""Solves, determinants, inverses and products by the LU factorization that suits a structure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.general import Solve

from pytensor_fuse._linalg.rules.determinants import (
    is_single_determinant,
    of_upper_factor,
    of_uses,
)
from pytensor_fuse._linalg.structure.banded import diagonals_of
from pytensor_fuse._linalg.structure.matrices import core_of, is_product_to_make, without_transposes
from pytensor_fuse._linalg.structure.outer_products import for_columns
from pytensor_fuse._linalg.structure.symmetry import is_symmetric

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

    # Returns the factorization of a matrix of a graph, if it has the structure.
    Find = Callable[[FunctionGraph, Any], "Factorized | None"]


class Factorized(Protocol):
    """A matrix by an LU factorization with partial pivoting."""

    def solved(self, right: Any) -> Any:
        """Return the solution for a vector, or for the columns of a matrix."""

    def transposed(self) -> Factorized:
        """Return the transpose."""

    def inverse(self) -> Any:
        """Return the inverse, entry by entry."""

    def diagonal_and_swaps(self) -> tuple[Any, Any]:
        """Return the diagonal of the upper factor, and for each row whether it was swapped."""


def solution(find: Find, fgraph: FunctionGraph, node: Apply[Any], *others: str) -> list[Any] | None:
    """Solve with the factors.

    Parameters
    ----------
    find
        Finds the factorization.
    fgraph, node
        The graph, and the solve.
    *others
        Further values of ``assume_a`` for which a Solve reads all nonzero elements of a matrix with
        this structure.
    """
    core = core_of(node)
    if type(core) is not Solve or node.inputs[1].type.ndim != core.b_ndim:
        return None
    matrix, right = node.inputs
    if right.type.dtype != matrix.type.dtype or _cannot_fit(matrix, right):
        return None
    if core.assume_a not in others and not _reads_all(fgraph, matrix, core.assume_a):
        return None
    known = find(fgraph, matrix)
    if known is None:
        return None
    new = known.solved(right) if core.b_ndim == 1 else for_columns(right, known.solved)
    return None if new is None else [new]


def _cannot_fit(matrix: Any, right: Any) -> bool:
    """Whether static shapes show that the function will raise an exception."""
    rows = {size for size in (*matrix.type.shape, right.type.shape[0]) if size is not None}
    return len(rows) > 1


def _reads_all(fgraph: FunctionGraph, matrix: Any, assumed: str) -> bool:
    """Whether a Solve has the result of a general one, although it may read one triangle only.

    A user who fills the triangle that a Solve reads does not say that the other is zero. A Solve
    that assumes a positive definite matrix returns NaN for others, unlike an LU factorization.
    """
    if assumed in ("gen", "banded"):
        return True
    diagonals = diagonals_of(without_transposes(matrix)[0]) or {}
    if diagonals.keys() != {-at for at in diagonals}:
        return False
    return assumed in ("sym", "her") and is_symmetric(fgraph, matrix)


def determinant(find: Find, fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Compute a determinant, its sign and its logarithm from the factors."""
    known = find(fgraph, node.inputs[0]) if is_single_determinant(node) else None
    if known is None:
        return None
    number, sign, logarithm = of_upper_factor(*known.diagonal_and_swaps())
    return of_uses(fgraph, node.outputs[0], lambda: number, lambda: sign, lambda: logarithm)


def inverse(find: Find, fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Compute an inverse whose elements are used from the factors."""
    if type(core_of(node)) is not MatrixInverse:
        return None
    known = find(fgraph, node.inputs[0])
    return None if known is None else [known.inverse()]


def product_with_inverse(find: Find, fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Solve, instead of multiplying with an inverse."""
    if not is_product_to_make(node):
        return None
    left: Any
    right: Any
    left, right = node.inputs
    for one, other, turned in ((left, right, False), (right, left, True)):
        known = _inverted(find, fgraph, one)
        if known is None or other.type.dtype != one.type.dtype:
            continue
        if not turned:
            new = for_columns(other, known.solved)
        else:
            new = for_columns(other.T, known.transposed().solved)
        if new is not None:
            return [new.T if turned else new]
    return None


def _inverted(find: Find, fgraph: FunctionGraph, matrix: Any) -> Factorized | None:
    """Return the factorization of the matrix that is inverted; None if it is not known."""
    matrix, turned = without_transposes(matrix)
    if type(core_of(matrix.owner)) is not MatrixInverse:
        return None
    known = find(fgraph, matrix.owner.inputs[0])
    return known if known is None or not turned else known.transposed()
