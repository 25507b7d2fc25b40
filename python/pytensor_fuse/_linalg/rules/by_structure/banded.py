"""Work on a banded matrix by its diagonals: LU with partial pivoting.

LAPACK's gbtrf and gbtrs omit the operations on zeros of the LU factorization of the whole matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytensor.tensor as pt
from pytensor.tensor.basic import ExtractDiag

from pytensor_fuse._linalg.ops.banded_lu import banded_lu_factor, banded_lu_solve, rows_of_storage
from pytensor_fuse._linalg.ops.lapack import REAL_DTYPES
from pytensor_fuse._linalg.rules.by_structure.factorized import (
    determinant,
    inverse,
    product_with_inverse,
    solution,
)
from pytensor_fuse._linalg.structure.banded import Diagonals, diagonals_of, of_size
from pytensor_fuse._linalg.structure.diagonal import sizes_of
from pytensor_fuse._linalg.structure.lengths import rows_of_length
from pytensor_fuse._linalg.structure.matrices import (
    is_real_matrix,
    long_axes,
    scalar_op,
    without_transposes,
)

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# The least number of rows of the matrix for each row of storage. With fewer, LAPACK inverts the
# whole matrix faster, by matrix products, though with more operations.
_ROWS_FOR_EACH: Final = 5

# Up to so many rows of storage, a matrix of unknown size may have any number of rows: with fewer
# than five times as many, a factorization takes microseconds either way.
_NARROW: Final = 16

# The depth of sums and products that is searched.
_DEPTH: Final = 8


class Banded(NamedTuple):
    """A banded matrix, or its transpose, by its LU factorization.

    Attributes
    ----------
    packed, pivots
        The outputs of `LUFactorBanded`.
    below, above
        The numbers of diagonals below and above the main one.
    size
        The number of rows.
    turned
        Whether it is the transpose of the factorized matrix.
    """

    packed: Any
    pivots: Any
    below: int
    above: int
    size: Any
    turned: bool

    def solved(self, right: Any) -> Any:
        """Return the solution for a vector, or for the columns of a matrix."""
        return banded_lu_solve(
            self.packed,
            self.pivots,
            rows_of_length(right, self.size),
            below=self.below,
            above=self.above,
            transposed=self.turned,
        )

    def transposed(self) -> Banded:
        """Return the transpose."""
        return self._replace(turned=not self.turned)

    def inverse(self) -> Any:
        """Solve with the transpose for the identity, which LAPACK does faster."""
        known = self if self.turned else self.transposed()
        found = known.solved(pt.eye(self.size, dtype=self.packed.type.dtype))
        return found if self.turned else found.T

    def diagonal_and_swaps(self) -> tuple[Any, Any]:
        """Return the diagonal of the upper factor, and whether each row was swapped."""
        places = pt.arange(self.pivots.shape[0])
        return self.packed[self.below + self.above], pt.neq(self.pivots, places)


def banded(_: FunctionGraph, matrix: Any) -> Banded | None:
    """Return the factorization of a matrix; None if it is not known to be banded."""
    if not is_real_matrix(matrix) or matrix.type.dtype not in REAL_DTYPES:
        return None
    matrix, turned = without_transposes(matrix)
    known = _known(matrix)
    if known is None or not _are_few(known):
        return None
    below, above = (max(0, *(sign * at for at in known.at)) for sign in (-1, 1))
    packed, pivots = banded_lu_factor(_stored(known, below, above), below, above)
    return Banded(packed, pivots, below, above, known.size, turned)


def is_too_wide(matrix: Any) -> bool:
    """Whether a matrix is known to be banded, with too many diagonals for its rows."""
    known = _known(matrix)
    return known is not None and not _are_few(known)


def _known(matrix: Any) -> Diagonals | None:
    """Return the diagonals of a banded matrix that is not tridiagonal; None for others."""
    diagonals = diagonals_of(matrix)
    if diagonals is None or diagonals.keys() <= {-1, 0, 1}:
        return None
    return of_size(diagonals, matrix, sizes_of(matrix))


def _are_few(diagonals: Diagonals) -> bool:
    """Whether the diagonals are known to be few for the size of the matrix."""
    first, last = min(0, *diagonals.at), max(0, *diagonals.at)
    rows = rows_of_storage(-first, last)
    if isinstance(diagonals.size, int):
        return _ROWS_FOR_EACH * rows <= diagonals.size
    # A matrix made of diagonals taken of another, as by `structured`, is declared to be banded.
    said = all(_is_taken(diagonals.at[at], _DEPTH) for at in (first, last) if at)
    return said or rows <= _NARROW


def _is_taken(vector: Any, depth: int) -> bool:
    """Whether a vector is computed from diagonals of matrices."""
    if vector.owner is not None and isinstance(vector.owner.op, ExtractDiag):
        return True
    if scalar_op(vector) is None or depth == 0:
        return False
    parts = [one for one in vector.owner.inputs if long_axes(one)]
    return bool(parts) and all(_is_taken(one, depth - 1) for one in parts)


def _stored(diagonals: Diagonals, below: int, above: int) -> Any:
    """Return a band as LAPACK stores it."""
    dtype = next(iter(diagonals.at.values())).type.dtype
    band = pt.zeros((rows_of_storage(below, above), diagonals.size), dtype=dtype)
    offsets = sorted(diagonals.at)
    for offset, vector in zip(offsets, diagonals.vectors(offsets), strict=True):
        start = max(0, offset)
        place = band[below + above - offset, start : start + diagonals.length(offset)]
        band = pt.set_subtensor(place, vector)
    return band


def banded_determinant(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Compute a determinant, its sign and its logarithm from the factors of a band."""
    return determinant(banded, fgraph, node)


def banded_solve(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Solve with the factors of a band."""
    return solution(banded, fgraph, node)


def product_with_banded_inverse(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Solve, instead of multiplying with an inverse."""
    return product_with_inverse(banded, fgraph, node)


def banded_inverse(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Solve for the identity if the elements of the inverse are used."""
    return inverse(banded, fgraph, node)
