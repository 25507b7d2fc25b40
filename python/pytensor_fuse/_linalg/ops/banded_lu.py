"""`LUFactorBanded` and `SolveLUFactorBanded`: banded matrices by LAPACK's gbtrf and gbtrs.

They take time in proportion to the length of the matrix, and choose the same pivots as the LU
factorization of the full matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.basic import as_tensor_variable
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.type import tensor

from pytensor_fuse._linalg.ops.lapack import (
    are_rows,
    check_pivots,
    check_real_matrix,
    lapack_functions,
)
from pytensor_fuse._pytensor.ops.versions_of_ops import shape_inference

if TYPE_CHECKING:
    from pytensor.graph.basic import Variable

WRONG_BAND: Final = "the storage of the band has too few rows for its diagonals"
WRONG_FACTORS: Final = "the factors, the pivots and the right-hand sides differ in length"
WRONG_PIVOTS_OF_BAND: Final = "the pivots do not belong to this matrix"


def rows_of_storage(below: int, above: int) -> int:
    """Return the number of rows that store a band: one for each diagonal, and rows for fill-in."""
    return 2 * below + above + 1


class _OfBand(Op):
    """An op on a matrix with given numbers of diagonals below and above the main one."""

    def __init__(self, below: int, above: int) -> None:
        if below < 0 or above < 0:
            raise ValueError(
                f"numbers of diagonals must not be negative, unlike {below} and {above}"
            )
        self.below = below
        self.above = above

    def check_storage(self, variable: Variable[Any, Any], what: str) -> None:
        """Raise unless a variable may be a band, or its factors, in LAPACK's storage.

        Raises
        ------
        TypeError
            If it is no matrix of float32 or float64.
        ValueError
            If its number of rows is known and wrong.
        """
        check_real_matrix(variable, what)
        kind: Any = variable.type
        if kind.shape[0] not in (None, rows_of_storage(self.below, self.above)):
            raise ValueError(WRONG_BAND)


class LUFactorBanded(_OfBand):
    """The LU factorization, with partial pivoting, of a banded matrix.

    The input is the band in LAPACK's storage: the element ``A[i, j]`` in row
    ``below + above + i - j`` and column ``j`` of ``2 below + above + 1`` rows, the first `below` of
    which are for fill-in, and are not read. The outputs are the factors, stored in the same way
    with the diagonal of the upper factor in row ``below + above``, and the swapped rows, as 32-bit
    integers from 0. NaN anywhere in the input, also outside of the matrix, makes all factors NaN.
    If the matrix is singular, there is a zero on the diagonal.

    There is no gradient: the rules add this op after gradients have been taken.

    Parameters
    ----------
    below, above
        Number of diagonals below and above the main one.
    """

    __props__ = ("below", "above")
    gufunc_signature = "(w,n)->(w,n),(n)"

    def make_node(self, *inputs: Variable[Any, Any]) -> Apply[Any]:
        """Return the node for a band, the only input.

        Raises
        ------
        TypeError
            If it is no matrix of float32 or float64.
        ValueError
            If its number of rows is known and wrong.
        """
        [band] = map(as_tensor_variable, inputs)
        self.check_storage(band, "the band")
        kind: Any = band.type
        rows = rows_of_storage(self.below, self.above)
        return Apply(
            self,
            [band],
            [
                tensor(shape=(rows, kind.shape[1]), dtype=kind.dtype),
                tensor(shape=kind.shape[1:], dtype="int32"),
            ],
        )

    @shape_inference
    def infer_shape(self, node: Apply[Any], shapes: list[Any]) -> list[Any]:
        """Return the shape of the band, and the number of its columns."""
        [shape] = shapes
        return [shape, shape[1:]]

    def perform(self, node: Apply[Any], inputs: Any, output_storage: Any) -> None:
        """Factorize with SciPy.

        Raises
        ------
        ValueError
            If the number of rows is not that of the band.
        """
        [band] = inputs
        if len(band) != rows_of_storage(self.below, self.above):
            raise ValueError(WRONG_BAND)
        if not band.shape[1] or np.isnan(band).any():
            packed = np.full_like(band, np.nan)
            pivots = np.arange(band.shape[1], dtype=np.int32)
        else:
            [gbtrf] = lapack_functions(band.dtype, "gbtrf")
            packed, pivots, _ = gbtrf(band, self.below, self.above)
        output_storage[0][0] = packed
        output_storage[1][0] = pivots


class SolveLUFactorBanded(_OfBand):
    """Solves with a banded matrix, or its transpose, from the outputs of `LUFactorBanded`.

    The inputs are the packed factors, the pivots, and a vector or columns. If the matrix is
    singular, the whole solution is NaN.

    Parameters
    ----------
    below, above
        As for the factorization.
    b_ndim
        1 for a vector, 2 for columns.
    transposed
        Whether to solve with the transpose.
    """

    __props__ = ("below", "above", "b_ndim", "transposed")

    def __init__(self, below: int, above: int, *, b_ndim: int, transposed: bool = False) -> None:
        super().__init__(below, above)
        if b_ndim not in (1, 2):
            raise ValueError(f"the right-hand side has 1 or 2 dimensions, not {b_ndim}")
        self.b_ndim = b_ndim
        self.transposed = transposed
        right = "(n)" if b_ndim == 1 else "(n,k)"
        self.gufunc_signature = f"(w,n),(n),{right}->{right}"

    def make_node(self, *inputs: Variable[Any, Any]) -> Apply[Any]:
        """Return the node for packed factors, pivots, and right-hand sides.

        Raises
        ------
        TypeError
            If they do not have the types of the factorization's outputs, or the right-hand sides do
            not have the dtype of the factors and `b_ndim` dimensions.
        ValueError
            If the factors have a known wrong number of rows.
        """
        packed, pivots, right = variables = [as_tensor_variable(one) for one in inputs]
        self.check_storage(packed, "the packed factors")
        kind, wanted = (one.type for one in (packed, right))
        check_pivots(pivots)
        if (wanted.ndim, wanted.dtype) != (self.b_ndim, kind.dtype):
            raise TypeError(
                f"the right-hand side must have {self.b_ndim} dimensions and dtype {kind.dtype}, "
                f"not {wanted}"
            )
        return Apply(self, variables, [tensor(shape=wanted.shape, dtype=wanted.dtype)])

    @shape_inference
    def infer_shape(self, node: Apply[Any], shapes: list[Any]) -> list[Any]:
        """Return the shape of the right-hand sides."""
        return shapes[2:]

    def perform(self, node: Apply[Any], inputs: Any, output_storage: Any) -> None:
        """Solve with SciPy.

        Raises
        ------
        ValueError
            If lengths differ, or the pivots are no row numbers.
        """
        packed, pivots, right = inputs
        rows, n = packed.shape
        if rows != rows_of_storage(self.below, self.above):
            raise ValueError(WRONG_BAND)
        if not n == len(pivots) == len(right):
            raise ValueError(WRONG_FACTORS)
        if not are_rows(pivots, n):
            raise ValueError(WRONG_PIVOTS_OF_BAND)
        diagonal = packed[self.below + self.above]
        if not right.size or np.isnan(diagonal).any() or not diagonal.all():
            output_storage[0][0] = np.full_like(right, np.nan)
            return
        [gbtrs] = lapack_functions(packed.dtype, "gbtrs")
        columns = right.reshape(n, -1)
        solution, _ = gbtrs(
            packed, self.below, self.above, columns, pivots, trans=int(self.transposed)
        )
        output_storage[0][0] = solution.reshape(right.shape)


def banded_lu_factor(band: Any, below: int, above: int) -> tuple[Any, Any]:
    """Return packed factors and pivots of a banded matrix, or of each matrix of a batch."""
    factorize: Any = Blockwise(LUFactorBanded(below, above))
    packed, pivots = factorize(band)
    return packed, pivots


def banded_lu_solve(
    packed: Any, pivots: Any, right: Any, *, below: int, above: int, transposed: bool
) -> Any:
    """Return the solution for a vector, or for the columns of a matrix."""
    op = SolveLUFactorBanded(below, above, b_ndim=right.type.ndim, transposed=transposed)
    solve: Any = Blockwise(op)
    return solve(packed, pivots, right)
