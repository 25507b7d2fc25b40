"""The inverse of a symmetric matrix from its LU factorization: one triangle, and its mirror image.

With ``A[p] = L U``, where ``p`` is the order of the rows after pivoting, ``inv(A)[:, p]``
multiplied by ``L`` is ``inv(U)``. LAPACK's getri solves for it from the last columns to the first,
in ``n^3`` operations after the ``n^3 / 3`` for ``inv(U)``. With its rows in the order of its
columns, ``Y = inv(A)[p][:, p]`` is as symmetric as ``A``. Columns ``s`` to ``e`` satisfy ::

    Y[:, s:e] L[s:e, s:e] = inv(U)[p, s:e] - Y[:, e:] L[e:, s:e]

and their first ``e`` rows depend on no other entries of ``Y``: the part above the diagonal can be
computed alone, which takes ``n^3 / 3``. The computation is the same as getri's there, and so is the
error.

Rejected: LAPACK's sytrf and sytri, which take as long, but whose factorization serves neither
PyTensor's determinants nor its solves; and a solve with both factors for the identity, which takes
longer than getri.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from pytensor_fuse._linalg.ops.lapack import blas_functions, lapack_functions
from pytensor_fuse._linalg.ops.triangles import mirror_triangle

# Number of columns in a block.
BLOCK: Final = 64

# For fewer rows, getri is faster, both in Python and compiled.
LEAST_ROWS: Final = 400
LEAST_ROWS_COMPILED: Final = 128


def inverse_of_symmetric(packed: Any, pivots: Any, *, overwrite: bool) -> Any:
    """Return the inverse of a symmetric matrix, n x n with n at least 1.

    Parameters
    ----------
    packed, pivots
        The LU factorization by LAPACK's getrf, the pivots counted from 0.
    overwrite
        Whether the result may use the memory of ``packed``.

    Returns
    -------
    array, n x n, by columns
        All NaN where the upper factor has a zero on its diagonal.

    Notes
    -----
    Takes ``2/3 n^3 + O(n^2)`` operations, and memory for one more matrix.
    """
    n = len(packed)
    [trtri] = lapack_functions(packed.dtype, "trtri")
    [trsm] = blas_functions(packed.dtype, "trsm")
    factors, info = trtri(packed, lower=0, overwrite_c=overwrite)
    if info != 0:
        factors[...] = np.nan
        return factors
    order = _order_of_rows(pivots)
    # Column-major, so that the rows of its transpose are contiguous.
    solved = np.empty((n, n), packed.dtype, order="F")
    for start in range(0, n, BLOCK):
        some = slice(start, start + BLOCK)
        upper = np.tril(factors.T[some, :], start)
        np.take(upper, order, axis=1, out=solved.T[some], mode="clip")
    for start in reversed(range(0, n, BLOCK)):
        stop = min(start + BLOCK, n)
        columns = solved[:stop, start:stop]
        if stop < n:
            columns -= solved[:stop, stop:] @ factors[stop:, start:stop]
        columns[...] = trsm(1.0, factors[start:stop, start:stop], columns, side=1, lower=1, diag=1)
    mirror_triangle(solved, lower=False)
    places = np.empty(n, int)
    places[order] = np.arange(n)
    for start in range(0, n, BLOCK):
        some = slice(start, start + BLOCK)
        np.take(solved.T[places[some]], places, axis=1, out=factors.T[some], mode="clip")
    return factors


def _order_of_rows(pivots: Any) -> Any:
    """Return which row of the matrix each row of the factors is."""
    order = list(range(len(pivots)))
    for row, other in enumerate(pivots.tolist()):
        order[row], order[other] = order[other], order[row]
    return np.array(order)
