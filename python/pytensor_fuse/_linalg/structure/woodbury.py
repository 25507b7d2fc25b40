"""Woodbury's identity and the determinant lemma for matrices ``D + U U'``.

With ``V = D^-1/2 U`` and ``M = I + V' V``, which is as small as ``U`` is thin:

- ``A^-1 = D^-1/2 (I - V M^-1 V') D^-1/2`` (Woodbury's identity);
- ``log |A| = log |D| + log |M|`` (the determinant lemma);
- ``A^-1 U = D^-1/2 V M^-1``.

``D`` is positive, so ``A`` and ``M`` are positive definite for every ``U``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.linalg.decomposition.cholesky import cholesky
from pytensor.tensor.linalg.solvers.psd import cho_solve
from pytensor.tensor.linalg.solvers.triangular import solve_triangular
from pytensor.tensor.math import Dot

from pytensor_fuse._linalg.structure.matrices import core_of, same

if TYPE_CHECKING:
    from pytensor_fuse._linalg.structure.low_rank import LowRankUpdate


class Woodbury:
    """Work on a matrix ``D + U U'`` as new variables of a graph.

    Parameters
    ----------
    matrix
        The matrix by its parts.

    Notes
    -----
    With ``V = D^-1/2 U``, ``M = I + V' V = L L'`` and ``Z = V L^-T``, the inverse of ``I + V V'``
    is ``I - Z Z'``, and ``Z' Z = I - N`` with ``N = L^-1 L^-T``. A small ``N`` is a difference of
    nearly equal numbers. So ``Z' x`` of a solution ``x`` for ``y`` is computed as ``N Z' y``, and
    ``x`` is corrected by ``Z`` times the difference.

    If some rows of ``V`` are much longer than others, as for much smaller elements of ``D``,
    ``V' V`` rounds the others away. Then ``M`` is factorized twice, as in CholeskyQR2 with a
    shift (Fukaya and others 2020): with the factor ``L1`` of ``M`` plus a multiple of the identity
    that makes it definite after rounding, ``W = V L1^-T`` has no such rows, and ``L = L1 L2`` with
    ``L2 L2' = W' W + L1^-1 L1^-T``.
    """

    def __init__(self, matrix: LowRankUpdate) -> None:
        self._matrix = matrix
        columns = matrix.columns()
        diagonal = matrix.diagonal
        identity = pt.eye(matrix.rank, dtype=columns.type.dtype)
        self._factor: Any
        if matrix.is_even:
            # U stands for V: the division of smaller arrays is cheaper.
            self._root = None
            self._scaled = columns
            self._factor = cholesky(identity + columns.T @ columns / diagonal)
            return
        self._root = pt.sqrt(diagonal)[:, None]
        self._scaled = columns / self._root
        gram = self._scaled.T @ self._scaled
        rounding = (matrix.size + matrix.rank) * np.finfo(columns.type.dtype).eps
        shift = 1 + np.asarray(rounding, dtype=columns.type.dtype) * pt.diagonal(gram).sum()
        first: Any = cholesky(shift * identity + gram)
        narrowed = _solved_triangle(first, self._scaled.T)
        rest = _solved_triangle(first, identity)
        second: Any = cholesky(narrowed @ narrowed.T + rest @ rest.T)
        self._factors = first, second
        self._factor = first @ second
        self._basis = self._narrowed(self._scaled.T).T

    def log_determinant(self) -> Any:
        """Return the logarithm of the determinant."""
        logarithms = pt.log(self._matrix.diagonal)
        outer = logarithms.sum() if logarithms.type.ndim else self._matrix.size * logarithms
        return outer + 2 * pt.log(pt.diagonal(self._factor)).sum()

    def determinant(self) -> Any:
        """Return the determinant, which overflows if the matrix is large."""
        diagonal = self._matrix.diagonal
        outer = pt.prod(diagonal) if diagonal.type.ndim else diagonal**self._matrix.size
        return outer * pt.prod(pt.diagonal(self._factor)) ** 2

    def solved(self, right: Any) -> Any:
        """Return the solution for the columns of a matrix."""
        thin = self._matrix.thin[0]
        if len(self._matrix.thin) == 1 and thin.inner is None and same(right, thin.base):
            # A^-1 T, without any subtraction, also where the scale is 0.
            return self._times_solved(thin.base, None)
        if len(self._matrix.thin) == 1 and isinstance(core_of(right.owner), Dot):
            left, other = right.owner.inputs
            if thin.inner is None and same(left, thin.base):
                return self._times_solved(thin.base, other)
        turned = right if self._root is None else right / self._root
        return self._divided(self._solved(turned))

    def inverse(self) -> Any:
        """Return the inverse, entry by entry."""
        size, dtype = self._matrix.size, self._scaled.type.dtype
        if self._root is None:
            identity = pt.eye(size, dtype=dtype)
            spanned = self._spanned(_solved_triangle(self._factor, self._scaled.T))
            return (identity - spanned) / self._matrix.diagonal
        roots = self._root[:, 0]
        return self._divided(self._solved(pt.diag(1 / roots), (self._basis / self._root).T))

    def diagonal_of_inverse(self) -> Any:
        """Return the diagonal of the inverse."""
        if self._root is None:
            inner = _solved_triangle(self._factor, self._scaled.T)
            leverages = (inner**2).sum(axis=0) / self._matrix.diagonal
            return (1 - leverages) / self._matrix.diagonal
        return self._left_over() / self._matrix.diagonal

    def trace_of_inverse(self) -> Any:
        """Return the trace of the inverse."""
        if not self._matrix.is_even:
            return self.diagonal_of_inverse().sum()
        # The trace of V M^-1 V' is that of M^-1 (M - I).
        identity = pt.eye(self._matrix.rank, dtype=self._scaled.type.dtype)
        rest = self._matrix.size - self._matrix.rank
        inner = _solved_triangle(self._factor, identity)
        return (rest + (inner**2).sum()) / self._matrix.diagonal

    def _left_over(self) -> Any:
        """Return the diagonal of ``I - Z Z'``.

        Notes
        -----
        The squares of the rows of ``Z`` sum up to less than ``k``, so fewer than ``2 k`` are larger
        than 1/2. For these ``1 - z' z`` would cancel. Since ``z' (I - N) z`` is the sum of the
        squared products of ``z`` with all rows, the result is ``z' N z`` plus the squared products
        with the other rows, divided by ``z' z``.
        """
        basis, most = self._basis, 2 * self._matrix.rank
        leverages = (basis**2).sum(axis=1)
        # Found without sorting, which Numba compiles slowly. All other rows share one place.
        is_large = pt.gt(leverages, 0.5)
        places = pt.switch(is_large, pt.cumsum(is_large.astype("int64")) - 1, most)
        found = pt.zeros(most + 1, dtype="int64")
        rows_in_order = pt.arange(self._matrix.size)
        largest = pt.set_subtensor(found[places], rows_in_order)[:most]
        rows, near = basis[largest], leverages[largest]
        products = rows @ basis.T
        products = pt.set_subtensor(products[pt.arange(most), largest], 0)
        turned = _solved_triangle(self._factor.T, rows.T, lower=False)
        squares = (products**2).sum(axis=1) + (turned**2).sum(axis=0)
        simple = 1 - leverages
        exact = pt.switch(near > 0.5, squares / near, simple[largest])
        return pt.set_subtensor(simple[largest], exact.astype(simple.type.dtype))

    def _solved(self, turned: Any, inner: Any = None) -> Any:
        """Solve with ``I + V V'``; ``inner`` is ``Z' y``, if it is known."""
        if inner is None:
            inner = self._coordinates(turned)
        first = turned - self._spanned(inner)
        wanted = _solved_triangle(self._factor.T, inner, lower=False)
        wanted = _solved_triangle(self._factor, wanted)
        return first + self._spanned(wanted - self._coordinates(first))

    def _coordinates(self, turned: Any) -> Any:
        """Return ``Z' y``, times the root of ``D`` if that is a number."""
        if self._root is None:
            return _solved_triangle(self._factor, self._scaled.T @ turned)
        return self._basis.T @ turned

    def _spanned(self, inner: Any) -> Any:
        """Return ``Z t``, divided by the root of ``D`` if that is a number."""
        if self._root is None:
            back = _solved_triangle(self._factor.T, inner, lower=False)
            return self._scaled @ back / self._matrix.diagonal
        return self._basis @ inner

    def _times_solved(self, base: Any, other: Any) -> Any:
        """Return ``D^-1 T M^-1 B``; None for ``B`` stands for the identity."""
        if self._root is None:
            if other is None:
                return self._divided(self._solved_small(base.T).T)
            return self._divided(base @ self._solved_small(other))
        basis = self._narrowed((base / self._root).T).T
        if other is None:
            return self._divided(_solved_triangle(self._factor.T, basis.T, lower=False).T)
        return self._divided(basis @ _solved_triangle(self._factor, other))

    def _divided(self, turned: Any) -> Any:
        return turned / (self._matrix.diagonal if self._root is None else self._root)

    def _narrowed(self, turned: Any) -> Any:
        """Solve with one factor of ``L`` after the other; ``L`` itself is rounded too much."""
        first, second = self._factors
        return _solved_triangle(second, _solved_triangle(first, turned))

    def _solved_small(self, right: Any) -> Any:
        """Solve with ``M``."""
        solve: Any = cho_solve
        return solve((self._factor, True), right, b_ndim=2)


def _solved_triangle(factor: Any, right: Any, *, lower: bool = True) -> Any:
    solve: Any = solve_triangular
    return solve(factor, right, lower=lower, b_ndim=2)
