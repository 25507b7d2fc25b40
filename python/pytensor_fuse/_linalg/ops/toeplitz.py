"""`ToeplitzPivots` and `ToeplitzSolve`: work on a symmetric Toeplitz matrix by its first row.

Durbin's and Levinson's recursions take ``O(n^2)`` operations. For positive definite matrices they
are stable as Cholesky's factorization is only where the prediction errors do not fall too far
(Cybenko 1980); where they do, and where the matrix is small, it is factorized as a whole.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.basic import as_tensor_variable
from pytensor.tensor.type import tensor

from pytensor_fuse._linalg.ops.lapack import lapack_functions
from pytensor_fuse._pytensor.ops import shape_inference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Variable

# By how much the prediction error may fall, from the first to the last. Up to here the errors have
# been measured to be those of Cholesky's factorization; beyond, they grow faster.
LARGEST_FALL: Final = 1e3

# How many rows a matrix has at least that is not factorized as a whole, which is faster below.
FEWEST_ROWS: Final = 256

NOT_AS_LONG: Final = "the right-hand sides must have as many rows as the matrix"


def durbin(row: Any) -> Any:
    """Return the prediction errors, which are the pivots of ``L D L'``; None if it is not stable.

    Parameters
    ----------
    row
        The first row of a symmetric Toeplitz matrix.
    """
    pivots, _ = _recursion(row, np.empty((len(row), 0)))
    return pivots


def levinson(row: Any, right: Any) -> Any:
    """Return the solution, refined once; None if it is not stable.

    Parameters
    ----------
    row
        The first row of a symmetric Toeplitz matrix.
    right
        The right-hand sides, as columns.
    """
    pivots, solution = _recursion(row, right)
    if pivots is None:
        return None
    n = len(row)
    both = np.concatenate([row[:0:-1], row])
    rows = np.lib.stride_tricks.sliding_window_view(both, n)[::-1]
    residual = right - np.stack([one @ solution for one in rows])
    _, correction = _recursion(row, residual)
    return solution + correction


def _recursion(row: Any, right: Any) -> tuple[Any, Any]:
    n = len(row)
    solution, predictor, pivots = np.empty_like(right), np.empty(n), np.empty(n)
    error = row[0]
    if not 0 < error < np.inf:
        return None, None
    least = error / LARGEST_FALL
    pivots[0] = error
    solution[0] = right[0] / error
    for m in range(1, n):
        known = predictor[: m - 1]
        reflection = -(row[m] + row[m - 1 : 0 : -1] @ known) / error
        known += reflection * known[::-1]
        predictor[m - 1] = reflection
        error *= (1 - reflection) * (1 + reflection)
        if not error >= least:
            return None, None
        pivots[m] = error
        last = (right[m] - row[m:0:-1] @ solution[:m]) / error
        solution[:m] += predictor[m - 1 :: -1, None] * last
        solution[m] = last
    return pivots, solution


def _factor(row: Any) -> Any:
    """Return the Cholesky factor of the whole matrix, NaN if there is none."""
    [potrf] = lapack_functions(row.dtype, "potrf")
    matrix = import_module("scipy.linalg").toeplitz(row)
    factor, info = potrf(matrix, lower=True, clean=True)
    return np.full_like(matrix, np.nan) if info else factor


class _OfRow(Op):
    """Work on a positive definite Toeplitz matrix, the first row of which is the first input."""

    __props__ = ()

    def _checked(self, inputs: Sequence[Variable[Any, Any]], *ranks: int) -> list[Any]:
        variables: list[Any] = [as_tensor_variable(one) for one in inputs]
        kinds = [(one.type.ndim, one.type.dtype) for one in variables]
        if kinds != [(rank, "float64") for rank in ranks]:
            raise TypeError(f"the inputs must be of float64 and of {ranks} axes, not {kinds}")
        return variables


class ToeplitzPivots(_OfRow):
    """The squares of the diagonal of the Cholesky factor, whose product is the determinant.

    They are NaN if the matrix is not positive definite.
    """

    gufunc_signature = "(n)->(n)"

    def make_node(self, *inputs: Variable[Any, Any]) -> Apply[Any]:
        """Return the node for a first row.

        Raises
        ------
        TypeError
            If it is no vector of float64.
        """
        [row] = self._checked(inputs, 1)
        return Apply(self, [row], [tensor(shape=row.type.shape, dtype="float64")])

    @shape_inference
    def infer_shape(self, node: Apply[Any], shapes: list[Any]) -> list[Any]:
        """Return the shape of the row."""
        return [shapes[0]]

    def perform(
        self, node: Apply[Any], inputs: Sequence[Any], output_storage: Sequence[list[Any]]
    ) -> None:
        """Compute them by Durbin's recursion, or from the whole matrix."""
        [row] = inputs
        pivots = durbin(row) if len(row) >= FEWEST_ROWS else None
        if pivots is None:
            pivots = np.square(_factor(row).diagonal()) if len(row) else row.copy()
        output_storage[0][0] = pivots


class ToeplitzSolve(_OfRow):
    """The solution for the columns of a matrix, NaN if the Toeplitz matrix is not definite."""

    gufunc_signature = "(n),(n,k)->(n,k)"

    def make_node(self, *inputs: Variable[Any, Any]) -> Apply[Any]:
        """Return the node for a first row and right-hand sides.

        Raises
        ------
        TypeError
            If they are no vector and matrix of float64.
        """
        row, right = self._checked(inputs, 1, 2)
        return Apply(self, [row, right], [tensor(shape=right.type.shape, dtype="float64")])

    @shape_inference
    def infer_shape(self, node: Apply[Any], shapes: list[Any]) -> list[Any]:
        """Return the shape of the right-hand sides."""
        return [shapes[1]]

    def perform(
        self, node: Apply[Any], inputs: Sequence[Any], output_storage: Sequence[list[Any]]
    ) -> None:
        """Solve by Levinson's recursion, or with the whole matrix.

        Raises
        ------
        ValueError
            If there are not as many rows.
        """
        row, right = inputs
        if len(row) != len(right):
            raise ValueError(NOT_AS_LONG)
        solution = levinson(row, right) if len(row) >= FEWEST_ROWS else None
        if solution is None:
            solution = right.copy()
            if right.size:
                [potrs] = lapack_functions(row.dtype, "potrs")
                solution, _ = potrs(_factor(row), right, lower=True)
        output_storage[0][0] = solution
