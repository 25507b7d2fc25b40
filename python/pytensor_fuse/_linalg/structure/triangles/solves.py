"""Solves and inverses by the form of a matrix: one triangular solve if it is a triangle."""

from __future__ import annotations

from typing import Any

import pytensor.tensor as pt
from pytensor.tensor.linalg.inverse import inv
from pytensor.tensor.linalg.solvers.general import solve
from pytensor.tensor.linalg.solvers.triangular import solve_triangular

from pytensor_fuse._linalg.structure.triangles.triangular import Triangle, triangle_of

_solve: Any = solve_triangular
_inv: Any = inv
_general_solve: Any = solve


def solved_by_form(matrix: Any, right: Any) -> Any:
    """Return the solution for a vector or for columns, by a general solve if no form is known."""
    triangle = triangle_of(None, matrix)
    if not triangle:
        return _general_solve(matrix, right)
    return _solve(matrix, right, lower=bool(triangle & Triangle.LOWER))


def inverse_by_form(matrix: Any) -> Any:
    """Return the inverse of a matrix of known size, triangular or not."""
    if not triangle_of(None, matrix):
        return _inv(matrix)
    return solved_by_form(matrix, pt.eye(matrix.type.shape[0], dtype=matrix.type.dtype))
