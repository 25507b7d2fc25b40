"""The inverse of a symmetric matrix from its LU factorization: one triangle, and its mirror image.

With ``A[p] = L U``, where ``p`` says how the pivots order the rows, ``inv(A)[:, p]`` is what
multiplied by ``L`` gives ``inv(U)``. LAPACK's getri solves for it from the last columns to the
first, in ``n^3`` operations after the ``n^3 / 3`` for ``inv(U)``. With its rows in the order of
its columns, ``Y = inv(A)[p][:, p]`` is as symmetric as ``A``. Columns ``s`` to ``e`` satisfy ::

    Y[:, s:e] L[s:e, s:e] = inv(U)[p, s:e] - Y[:, e:] L[e:, s:e]

and the first ``e`` rows of them need no others of ``Y``: what is above the diagonal follows from
itself, which takes ``n^3 / 3``. It is what getri computes there, so the error is getri's.

Rejected: LAPACK's sytrf and sytri, which take as long as this, but whose factorization serves
neither determinants nor solves as PyTensor has them; and a solve with both factors for the
identity, which takes longer than getri.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from pytensor_fuse._linalg.ops.lapack import blas_functions, lapack_functions
from pytensor_fuse._linalg.ops.triangles import mirror_triangle

# Columns at a time.
BLOCK: Final = 64

# Of fewer, getri takes less time: in Python, and compiled.
LEAST_ROWS: Final = 400
LEAST_ROWS_COMPILED: Final = 128


def inverse_of_symmetric(packed: Any, pivots: Any, *, overwrite: bool) -> Any:
    """Return the inverse of a symmetric matrix, n x n with n at least 1.

    Parameters
    ----------
    packed, pivots
        What LAPACK's getrf makes of it, the pivots counted from 0.
    overwrite
        Whether the memory of ``packed`` may be taken for the result.

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
    # By columns, so that the rows of its transpose follow each other.
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
