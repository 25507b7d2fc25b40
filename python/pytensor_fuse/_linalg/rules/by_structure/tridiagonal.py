"""Work on a tridiagonal matrix by its three diagonals: LU with partial pivoting.

LAPACK's gttrf and gttrs, for which PyTensor has ops, take linear time with the error bounds of the
LU factorization of the whole matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytensor.tensor as pt
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.solvers.tridiagonal import LUFactorTridiagonal, tridiagonal_lu_solve

from pytensor_fuse._linalg.rules.by_structure.factorized import (
    determinant,
    inverse,
    product_with_inverse,
    solution,
)
from pytensor_fuse._linalg.structure.banded import Diagonals, diagonals_of, of_size
from pytensor_fuse._linalg.structure.diagonal import sizes_of
from pytensor_fuse._linalg.structure.lengths import rows_of_length
from pytensor_fuse._linalg.structure.matrices import is_real_matrix, without_transposes
from pytensor_fuse._pytensor.rewriting.assumptions import is_known_tridiagonal

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# SciPy's gttrf requires as many rows: smaller matrices are extended by an identity.
_SHORTEST: Final = 3


class Tridiagonal(NamedTuple):
    """A tridiagonal matrix, or its transpose, by its LU factorization.

    Attributes
    ----------
    factors
        The outputs of `LUFactorTridiagonal` for the matrix, extended if it may be too small.
    size
        The number of rows of the matrix itself.
    turned
        Whether it is the transpose of the factorized matrix.
    is_longer
        Whether the factors are those of an extended matrix.
    """

    factors: tuple[Any, ...]
    size: Any
    turned: bool
    is_longer: bool

    def solved(self, right: Any) -> Any:
        """Return the solution for a vector, or for the columns of a matrix."""
        # Numba's gttrs would read beyond the end.
        right = rows_of_length(right, self.size)
        if self.is_longer:
            below = pt.zeros((_SHORTEST, *tuple(right.shape)[1:]), dtype=right.type.dtype)
            right = pt.concatenate([right, below], axis=0)
        result: Any = tridiagonal_lu_solve(
            self.factors, right, b_ndim=right.type.ndim, transposed=self.turned
        )
        return result[: self.size] if self.is_longer else result

    def transposed(self) -> Tridiagonal:
        """Return the transpose."""
        return self._replace(turned=not self.turned)

    def inverse(self) -> Any:
        """Solve for the identity."""
        return self.solved(pt.eye(self.size, dtype=self.factors[1].type.dtype))

    def diagonal_and_swaps(self) -> tuple[Any, Any]:
        """Return the diagonal of the upper factor, and whether each row was swapped."""
        _, diagonal, _, _, pivots = self.factors
        # LAPACK's pivots count from 1; each row stays or is swapped with the next.
        return diagonal, pt.neq(pivots, pt.arange(pivots.shape[0]) + 1)


def tridiagonal(fgraph: FunctionGraph, matrix: Any) -> Tridiagonal | None:
    """Return the factorization of a matrix; None if it is not known to be tridiagonal."""
    if not is_real_matrix(matrix):
        return None
    matrix, turned = without_transposes(matrix)
    known = _known(fgraph, matrix)
    if known is None or not {-1, 1} & known.at.keys() or not known.at.keys() <= {-1, 0, 1}:
        return None
    lower, main, upper = known.vectors((-1, 0, 1))
    is_longer = not isinstance(known.size, int) or known.size < _SHORTEST
    if is_longer:
        # The other diagonals are zero in the identity.
        main = pt.concatenate([main, pt.ones(_SHORTEST, dtype=main.type.dtype)])
        lower, upper = (_with_zeros(one, main) for one in (lower, upper))
    factorize: Any = Blockwise(LUFactorTridiagonal())
    return Tridiagonal(tuple(factorize(lower, main, upper)), known.size, turned, is_longer)


def _known(fgraph: FunctionGraph, matrix: Any) -> Diagonals | None:
    """Return the diagonals of a matrix, by its form or by an assumption; else None."""
    diagonals = diagonals_of(matrix)
    if diagonals is not None:
        return of_size(diagonals, matrix, sizes_of(matrix))
    if not is_known_tridiagonal(fgraph, matrix):
        return None
    diagonals = {at: pt.diagonal(matrix, offset=at) for at in (-1, 0, 1)}
    return of_size(diagonals, matrix, matrix.shape)


def _with_zeros(diagonal: Any, main: Any) -> Any:
    missing = main.shape[0] - 1 - diagonal.shape[0]
    return pt.concatenate([diagonal, pt.zeros((missing,), dtype=diagonal.type.dtype)])


def tridiagonal_determinant(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Compute a determinant, its sign and its logarithm from the factors of three diagonals."""
    return determinant(tridiagonal, fgraph, node)


def tridiagonal_solve(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Solve with the factors of three diagonals."""
    return solution(tridiagonal, fgraph, node, "tridiagonal")


def product_with_tridiagonal_inverse(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Solve, instead of multiplying with an inverse."""
    return product_with_inverse(tridiagonal, fgraph, node)


def tridiagonal_inverse(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Solve for the identity if the elements of the inverse are used."""
    return inverse(tridiagonal, fgraph, node)
