"""Numba's implementations of the ops. Import this module only after Numba's dispatch."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core.extending import overload
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key

from pytensor_fuse._linalg.ops.banded_lu import (
    WRONG_BAND,
    WRONG_FACTORS,
    WRONG_PIVOTS_OF_BAND,
    LUFactorBanded,
    SolveLUFactorBanded,
    rows_of_storage,
)
from pytensor_fuse._linalg.ops.cholesky_inverse import CholeskyInverse
from pytensor_fuse._linalg.ops.lapack import NOT_SQUARE
from pytensor_fuse._linalg.ops.lu_inverse import WRONG_PIVOTS, LUInverse
from pytensor_fuse._linalg.ops.symmetric_lu import BLOCK, LEAST_ROWS_COMPILED
from pytensor_fuse._linalg.ops.toeplitz import (
    FEWEST_ROWS_COMPILED,
    LARGEST_FALL,
    NOT_AS_LONG,
    ToeplitzSolve,
)
from pytensor_fuse._pytensor.linking import numba_lapack as lapack

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor.graph.basic import Apply

# Part of the cache keys: raise it when the generated code changes.
_VERSION = 4

_BLOCK = 32


def _by_types(implementation: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that Numba implements by what this one returns for types of arguments."""

    @wraps(implementation)
    def compiled_only(*arguments: Any) -> Any:
        raise NotImplementedError("only code that Numba compiles can call this")

    overload(compiled_only)(implementation)
    return compiled_only


@register_funcify_default_op_cache_key(CholeskyInverse)  # type: ignore[untyped-decorator]
def _cholesky_inverse(op: CholeskyInverse, node: Apply[Any], **kwargs: Any) -> Any:
    lower, overwrite = op.lower, op.overwrite_a

    @numba_njit
    def cholesky_inverse(factor: Any) -> Any:
        return _from_cholesky(factor, lower, overwrite)

    @numba_njit
    def checked_cholesky_inverse(factor: Any, matrix: Any) -> Any:
        if not _has_finite_diagonal(factor):
            return np.linalg.inv(matrix)
        return _from_cholesky(factor, lower, overwrite)

    return checked_cholesky_inverse if op.checked else cholesky_inverse, _VERSION


@register_funcify_default_op_cache_key(LUInverse)  # type: ignore[untyped-decorator]
def _lu_inverse(op: LUInverse, node: Apply[Any], **kwargs: Any) -> Any:
    overwrite = op.overwrite_a
    # A function that is not called is not compiled.
    invert = _invert_symmetric if op.symmetric else _invert

    @numba_njit
    def lu_inverse(packed: Any, pivots: Any) -> Any:
        inverse = _own_factors(packed, pivots, overwrite)
        invert(inverse, pivots)
        return inverse

    @numba_njit
    def checked_lu_inverse(packed: Any, pivots: Any, matrix: Any) -> Any:
        # Numba's inverse rejects matrices that are not finite.
        if not _is_finite(packed):
            return np.linalg.inv(matrix)
        inverse = _own_factors(packed, pivots, overwrite)
        invert(inverse, pivots)
        return inverse

    return checked_lu_inverse if op.checked else lu_inverse, _VERSION


@register_funcify_default_op_cache_key(LUFactorBanded)  # type: ignore[untyped-decorator]
def _lu_factor_banded(op: LUFactorBanded, node: Apply[Any], **kwargs: Any) -> Any:
    below, above = op.below, op.above
    rows = rows_of_storage(below, above)

    @numba_njit
    def lu_factor_banded(band: Any) -> Any:
        n = band.shape[1]
        if band.shape[0] != rows:
            raise ValueError(WRONG_BAND)
        packed = np.empty((n, rows), band.dtype).T
        pivots = np.arange(n).astype(np.int32)
        n_nan = 0
        for i in range(rows):
            for j in range(n):
                packed[i, j] = band[i, j]
                n_nan += np.isnan(band[i, j])
        if n_nan:
            packed[:, :] = np.nan
        elif n:
            _factorize_band(below, above, packed, pivots)
            for j in range(n):
                pivots[j] -= 1
        return packed, pivots

    return lu_factor_banded, _VERSION


@register_funcify_default_op_cache_key(SolveLUFactorBanded)  # type: ignore[untyped-decorator]
def _solve_lu_factor_banded(op: SolveLUFactorBanded, node: Apply[Any], **kwargs: Any) -> Any:
    below, above = op.below, op.above
    rows = rows_of_storage(below, above)
    trans = np.int32(ord("T" if op.transposed else "N"))

    @numba_njit
    def solve_columns(packed: Any, pivots: Any, right: Any) -> Any:
        n, columns = right.shape
        if packed.shape[0] != rows:
            raise ValueError(WRONG_BAND)
        if not (packed.shape[1] == n and pivots.size == n):
            raise ValueError(WRONG_FACTORS)
        # LAPACK's pivots count from 1.
        swapped = np.empty(n, np.int32)
        is_regular = True
        for j in range(n):
            # LAPACK would write out of bounds.
            if not 0 <= pivots[j] < n:
                raise ValueError(WRONG_PIVOTS_OF_BAND)
            swapped[j] = pivots[j] + 1
            is_regular &= abs(packed[below + above, j]) > 0
        solution = np.empty((columns, n), right.dtype).T
        if not is_regular:
            solution[:, :] = np.nan
        elif solution.size:
            solution[:, :] = right
            factors = np.empty((n, rows), packed.dtype).T
            factors[:, :] = packed
            _solve_with_band(trans, below, above, factors, swapped, solution)
        return solution

    @numba_njit
    def solve_vector(packed: Any, pivots: Any, right: Any) -> Any:
        return solve_columns(packed, pivots, right[:, None])[:, 0]

    return solve_vector if op.b_ndim == 1 else solve_columns, _VERSION


@register_funcify_default_op_cache_key(ToeplitzSolve)  # type: ignore[untyped-decorator]
def _toeplitz_solve(op: ToeplitzSolve, node: Apply[Any], **kwargs: Any) -> Any:
    @numba_njit
    def toeplitz_solve(row: Any, right: Any) -> Any:
        n, columns = right.shape
        if row.shape[0] != n:
            raise ValueError(NOT_AS_LONG)
        solution, pivots = np.empty((n, columns)), np.empty(n)
        if n < FEWEST_ROWS_COMPILED or not _recursion(row, right, solution, pivots):
            factor = _factor_of_row(row)
            for i in range(n):
                pivots[i] = factor[i, i] ** 2
            solution[:, :] = right
            _solve_with_factor(factor, solution)
            return solution, pivots
        if columns == 0:
            return solution, pivots
        residual, correction = right.copy(), np.empty((n, columns))
        for c in range(columns):
            for i in range(n):
                for j in range(n):
                    residual[i, c] -= row[abs(i - j)] * solution[j, c]
        _recursion(row, residual, correction, pivots)
        return solution + correction, pivots

    return toeplitz_solve, _VERSION


@numba_njit
def _recursion(row: Any, right: Any, solution: Any, pivots: Any) -> bool:
    """Solve by Levinson's recursion, and return whether it is stable."""
    n, columns = right.shape
    predictor = np.empty(n)
    error = row[0]
    if not 0 < error < np.inf:
        return False
    least = error / LARGEST_FALL
    pivots[0] = error
    for c in range(columns):
        solution[0, c] = right[0, c] / error
    for m in range(1, n):
        reflection = row[m]
        for j in range(m - 1):
            reflection += row[m - 1 - j] * predictor[j]
        reflection /= -error
        for j in range(m // 2):
            first, last = predictor[j], predictor[m - 2 - j]
            predictor[j] = first + reflection * last
            predictor[m - 2 - j] = last + reflection * first
        predictor[m - 1] = reflection
        error *= (1 - reflection) * (1 + reflection)
        if not error >= least:
            return False
        pivots[m] = error
        for c in range(columns):
            last = right[m, c]
            for j in range(m):
                last -= row[m - j] * solution[j, c]
            last /= error
            for j in range(m):
                solution[j, c] += predictor[m - 1 - j] * last
            solution[m, c] = last
    return True


@numba_njit
def _factor_of_row(row: Any) -> Any:
    """Return the lower Cholesky factor of a Toeplitz matrix, NaN if there is none."""
    n = row.shape[0]
    # A symmetric matrix has the same rows and columns.
    factor = np.empty((n, n)).T
    for j in range(n):
        for i in range(n):
            factor[i, j] = row[abs(i - j)]
    if n and _factorize(factor):
        factor[:, :] = np.nan
    return factor


@numba_njit
def _solve_with_factor(factor: Any, solution: Any) -> None:
    n, columns = solution.shape
    for c in range(columns):
        for j in range(n):
            solution[j, c] /= factor[j, j]
            for i in range(j + 1, n):
                solution[i, c] -= factor[i, j] * solution[j, c]
        for j in range(n - 1, -1, -1):
            for i in range(j + 1, n):
                solution[j, c] -= factor[i, j] * solution[i, c]
            solution[j, c] /= factor[j, j]


@_by_types
def _factorize(matrix: Any) -> Any:
    factorize = lapack.potrf(matrix.dtype)

    def of_lower(matrix: Any) -> Any:
        return factorize(np.int32(ord("L")), matrix)

    return of_lower


@_by_types
def _factorize_band(below: Any, above: Any, band: Any, pivots: Any) -> Any:
    factorize = lapack.gbtrf(band.dtype)

    def factorize_band(below: Any, above: Any, band: Any, pivots: Any) -> Any:
        return factorize(below, above, band, pivots)

    return factorize_band


@_by_types
def _solve_with_band(trans: Any, below: Any, above: Any, band: Any, pivots: Any, right: Any) -> Any:
    solve = lapack.gbtrs(band.dtype)

    def solve_with_band(
        trans: Any, below: Any, above: Any, band: Any, pivots: Any, right: Any
    ) -> None:
        solve(trans, below, above, band, pivots, right)

    return solve_with_band


@_by_types
def _from_cholesky(factor: Any, lower: Any, overwrite: Any) -> Any:
    # A row-major factor is the transposed factor in column-major order, which belongs to the same
    # matrix.
    def by_rows(factor: Any, lower: Any, overwrite: Any) -> Any:
        return _from_columns(factor.T, not lower, overwrite).T

    def by_columns(factor: Any, lower: Any, overwrite: Any) -> Any:
        return _from_columns(factor, lower, overwrite)

    def seen_when_run(factor: Any, lower: Any, overwrite: Any) -> Any:
        if factor.flags.c_contiguous:
            return _from_columns(factor.T, not lower, overwrite).T
        return _from_columns(factor, lower, overwrite)

    return {"C": by_rows, "F": by_columns}.get(factor.layout, seen_when_run)


@_by_types
def _from_columns(columns: Any, lower: Any, overwrite: Any) -> Any:
    invert = lapack.potri(columns.dtype)
    # A read-only array and a writable one have different Numba types, so one variable cannot hold
    # both.
    mutable = columns.mutable

    def from_columns(columns: Any, lower: Any, overwrite: Any) -> Any:
        n = columns.shape[0]
        if columns.shape[1] != n:
            raise np.linalg.LinAlgError(NOT_SQUARE)
        if mutable and overwrite and columns.flags.f_contiguous:
            inverse = columns
        else:
            inverse = np.empty((n, n), columns.dtype).T
            for j in range(n):
                for i in range(j if lower else 0, n if lower else j + 1):
                    inverse[i, j] = columns[i, j]
        if n == 0:
            return inverse
        if invert(np.int32(ord("L") if lower else ord("U")), inverse) != 0:
            inverse[:, :] = np.nan
        _mirror_lower(inverse if lower else inverse.T)
        return inverse

    return from_columns


@_by_types
def _own_factors(packed: Any, pivots: Any, overwrite: Any) -> Any:
    mutable = packed.mutable

    def own_factors(packed: Any, pivots: Any, overwrite: Any) -> Any:
        """Check packed factors and pivots, and return writable factors in column-major order."""
        n = packed.shape[0]
        if packed.shape[1] != n:
            raise np.linalg.LinAlgError(NOT_SQUARE)
        if pivots.size != n:
            raise ValueError(WRONG_PIVOTS)
        for i in range(n):
            # LAPACK would write out of bounds.
            if not 0 <= pivots[i] < n:
                raise ValueError(WRONG_PIVOTS)
        if mutable and overwrite and packed.flags.f_contiguous:
            factors = packed
        else:
            factors = np.empty((n, n), packed.dtype).T
            for j in range(n):
                for i in range(n):
                    factors[i, j] = packed[i, j]
        return factors

    return own_factors


@_by_types
def _invert(factors: Any, pivots: Any) -> Any:
    call = lapack.getri(factors.dtype)

    def invert(factors: Any, pivots: Any) -> None:
        if factors.size and call(factors, (pivots + 1).astype(np.int32)) != 0:
            factors[:, :] = np.nan

    return invert


@_by_types
def _invert_symmetric(factors: Any, pivots: Any) -> Any:
    invert_upper, add_product, solve = (
        make(factors.dtype) for make in (lapack.trtri, lapack.gemm, lapack.trsm)
    )

    def invert_symmetric(factors: Any, pivots: Any) -> None:
        """Do the same as `symmetric_lu.inverse_of_symmetric`, in place."""
        n = factors.shape[0]
        if n < LEAST_ROWS_COMPILED:
            _invert(factors, pivots)
            return
        if invert_upper(np.int32(ord("U")), factors) != 0:
            factors[:, :] = np.nan
            return
        order = np.arange(n)
        for i in range(n):
            order[i], order[pivots[i]] = order[pivots[i]], order[i]
        solved = np.empty((n, n), factors.dtype).T
        for j in range(n):
            for i in range(n):
                solved[i, j] = factors[order[i], j] if order[i] <= j else 0
        minus_one = np.full(1, -1, factors.dtype)
        for start in range((n - 1) // BLOCK * BLOCK, -1, -BLOCK):
            stop = min(start + BLOCK, n)
            columns = solved[:stop, start:stop]
            if stop < n:
                add_product(minus_one, solved[:stop, stop:], factors[stop:, start:stop], columns)
            solve(factors[start:stop, start:stop], columns)
        _mirror_lower(solved.T)
        places = np.empty(n, np.int64)
        for i in range(n):
            places[order[i]] = i
        for j in range(n):
            for i in range(n):
                factors[i, j] = solved[places[i], places[j]]

    return invert_symmetric


@numba_njit
def _is_finite(a: Any) -> bool:
    # Counting instead of stopping at the first: a loop without branches is vectorized.
    n_others = 0
    for j in range(a.shape[1]):
        for i in range(a.shape[0]):
            n_others += not abs(a[i, j]) < np.inf
    return n_others == 0


@numba_njit
def _has_finite_diagonal(a: Any) -> bool:
    for i in range(min(a.shape)):  # noqa: SIM110 - Numba has no generators within `all`
        if not abs(a[i, i]) < np.inf:
            return False
    return True


@numba_njit
def _mirror_lower(a: Any) -> None:
    n = a.shape[0]
    for first in range(0, n, _BLOCK):
        for second in range(first, n, _BLOCK):
            for j in range(first, min(first + _BLOCK, n)):
                for i in range(max(j + 1, second), min(second + _BLOCK, n)):
                    a[j, i] = a[i, j]
