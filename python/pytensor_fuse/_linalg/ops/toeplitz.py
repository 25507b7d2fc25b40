"""`ToeplitzSolve`: solutions and determinants of a symmetric Toeplitz matrix from its first row.

Levinson's recursion takes ``O(n^2)`` operations. For positive definite matrices it is as stable as
Cholesky's factorization only if the prediction errors do not fall too far (Cybenko 1980);
otherwise, and for small matrices, the full matrix is factorized.
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
from pytensor_fuse._pytensor.ops.versions_of_ops import shape_inference

if TYPE_CHECKING:
    from pytensor.graph.basic import Variable

# Largest ratio of the first to the last prediction error. Up to this ratio, measured errors are
# those of Cholesky's factorization; beyond it, they grow faster.
LARGEST_FALL: Final = 10.0

# Smallest number of rows for the recursion. Below, the factorization of the full matrix is faster,
# both in Python, where each step of the recursion is a few calls of NumPy, and compiled.
FEWEST_ROWS: Final = 1536
FEWEST_ROWS_COMPILED: Final = 256

NOT_AS_LONG: Final = "the right-hand sides must have as many rows as the matrix"


def levinson(row: Any, right: Any) -> tuple[Any, Any]:
    """Return the solution, refined once, and the prediction errors; None for both if not stable.

    Parameters
    ----------
    row
        The first row of a symmetric Toeplitz matrix.
    right
        The right-hand sides, as columns.

    Notes
    -----
    The prediction errors are the pivots of ``L D L'``, the squares of the diagonal of the Cholesky
    factor.
    """
    pivots, solution = _recursion(row, right)
    if pivots is None or not right.shape[1]:
        return solution, pivots
    both = np.concatenate([row[:0:-1], row])
    rows = np.lib.stride_tricks.sliding_window_view(both, len(row))[::-1]
    residual = right - np.stack([one @ solution for one in rows])
    _, correction = _recursion(row, residual)
    return solution + correction, pivots


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
    """Return the lower Cholesky factor of the full matrix, NaN if there is none.

    The part above its diagonal is undefined.
    """
    [potrf] = lapack_functions(row.dtype, "potrf")
    # Its rows equal its columns, and LAPACK overwrites a column-major matrix in place.
    matrix = import_module("scipy.linalg").toeplitz(row).T
    factor, info = potrf(matrix, lower=True, clean=False, overwrite_a=True)
    return np.full_like(matrix, np.nan) if info else factor


class ToeplitzSolve(Op):
    """Solutions with a positive definite Toeplitz matrix, and the factors of its determinant.

    The inputs are the first row, and right-hand sides as columns, of which there may be none. The
    outputs are the solutions, and the squares of the diagonal of the Cholesky factor. Both are NaN
    if the matrix is not positive definite.
    """

    __props__ = ()
    gufunc_signature = "(n),(n,k)->(n,k),(n)"

    def make_node(self, *inputs: Variable[Any, Any]) -> Apply[Any]:
        """Return the node for a first row and right-hand sides.

        Raises
        ------
        TypeError
            If they are no vector and matrix of float64.
        """
        variables: list[Any] = [as_tensor_variable(one) for one in inputs]
        kinds = [(one.type.ndim, one.type.dtype) for one in variables]
        if kinds != [(1, "float64"), (2, "float64")]:
            raise TypeError(f"the inputs must be a vector and a matrix of float64, not {kinds}")
        return Apply(
            self,
            variables,
            [tensor(shape=one.type.shape, dtype="float64") for one in variables[::-1]],
        )

    @shape_inference
    def infer_shape(self, node: Apply[Any], shapes: list[Any]) -> list[Any]:
        """Return the shapes of the right-hand sides, and of the row."""
        return shapes[::-1]

    def perform(self, node: Apply[Any], inputs: Any, output_storage: Any) -> None:
        """Solve by Levinson's recursion, or with the full matrix.

        Raises
        ------
        ValueError
            If the numbers of rows differ.
        """
        row, right = inputs
        n = len(row)
        if n != len(right):
            raise ValueError(NOT_AS_LONG)
        solution, pivots = levinson(row, right) if n >= FEWEST_ROWS else (None, None)
        if pivots is None:
            solution, pivots = right.copy(), row.copy()
            if n:
                factor = _factor(row)
                pivots = np.square(factor.diagonal())
                if right.size:
                    [potrs] = lapack_functions(row.dtype, "potrs")
                    solution, _ = potrs(factor, right, lower=True)
        output_storage[0][0] = solution
        output_storage[1][0] = pivots
