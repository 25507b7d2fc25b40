"""Functions and errors of LAPACK and BLAS, as the ops use them in Python.

SciPy's linear algebra takes a quarter of a second to import, and a program that only builds graphs
does not need it, so it is imported at the first call.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Variable

# LAPACK's real dtypes; gradients of complex matrices differ.
REAL_DTYPES: Final = ("float32", "float64")

NOT_SQUARE: Final = "the matrix must be square"


@cache
def lapack_functions(dtype: np.dtype[Any], *names: str) -> tuple[Any, ...]:
    """Return functions of LAPACK for matrices of a dtype, by name without the dtype's letter."""
    return tuple(import_module("scipy.linalg").get_lapack_funcs(names, dtype=dtype))


@cache
def blas_functions(dtype: np.dtype[Any], *names: str) -> tuple[Any, ...]:
    """Return functions of BLAS for matrices of a dtype, by name without the dtype's letter."""
    return tuple(import_module("scipy.linalg").get_blas_funcs(names, dtype=dtype))


def check_square(matrix: Any) -> None:
    """Raise unless a matrix is square.

    Raises
    ------
    numpy.linalg.LinAlgError
        If it is not; this is also a ValueError.
    """
    rows, columns = matrix.shape
    if rows != columns:
        raise np.linalg.LinAlgError(f"{NOT_SQUARE}, not {rows} x {columns}")


def check_real_matrix(variable: Variable[Any, Any], what: str) -> None:
    """Raise unless a variable is a matrix of real numbers of a dtype that LAPACK supports.

    Raises
    ------
    TypeError
    """
    kind: Any = variable.type
    if getattr(kind, "ndim", None) != 2 or kind.dtype not in REAL_DTYPES:
        raise TypeError(f"{what} must be a matrix of float32 or float64, not {kind}")


def check_pivots(variable: Variable[Any, Any]) -> None:
    """Raise unless a variable is a vector of integers, as pivots are.

    Raises
    ------
    TypeError
    """
    kind: Any = variable.type
    if kind.ndim != 1 or np.dtype(kind.dtype).kind not in "iu":
        raise TypeError(f"the pivots must be a vector of integers, not {kind}")


def are_rows(pivots: Any, n: int) -> bool:
    """Whether pivots are row numbers of a matrix of ``n``; else LAPACK writes out of bounds."""
    return not n or bool(pivots.min() >= 0 and pivots.max() < n)


def check_given_matrix(
    given: Sequence[Variable[Any, Any]], factor: Variable[Any, Any], is_wanted: bool
) -> None:
    """Raise unless the matrix of a factor is given if, and only if, it is required.

    Raises
    ------
    TypeError
        Also if it does not have the rank and the dtype of the factor.
    """
    if len(given) != is_wanted:
        raise TypeError(f"the matrix itself is {'' if is_wanted else 'not '}an input")
    kind: Any = factor.type
    for matrix in given:
        its: Any = matrix.type
        if (getattr(its, "ndim", None), getattr(its, "dtype", None)) != (2, kind.dtype):
            raise TypeError(f"the matrix must be one of {kind.dtype} as its factor is, not {its}")
