"""Consequences of PyTensor's assumptions about matrices, in versions that have assumptions."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph


def is_known_positive_definite(fgraph: FunctionGraph, matrix: Any) -> bool:
    """Whether PyTensor assumes that a matrix is positive definite.

    It does so if a user has stated it, and if it follows. Products ``X X'`` count, which are always
    semidefinite, but definite only if the rows of ``X`` are independent.
    """
    return _is_known(fgraph, matrix, "POSITIVE_DEFINITE")


def said_positive_definite(matrix: Any) -> Any:
    """Return a matrix, stated to be positive definite if PyTensor uses this while it rewrites."""
    try:
        assumptions: Any = import_module("pytensor.tensor.rewriting.assumptions")
        takes_it = hasattr(assumptions, "local_drain_specify_assumptions")
    except ImportError:
        return matrix
    if not takes_it:
        return matrix
    return import_module("pytensor.assumptions").assume(matrix, positive_definite=True)


def said(matrix: Any, assumptions: dict[str, bool]) -> Any:
    """Return a matrix with stated assumptions.

    Raises
    ------
    NotImplementedError
        If there are any, and this PyTensor has no assumptions.
    """
    if not assumptions:
        return matrix
    try:
        assume = import_module("pytensor.assumptions").assume
    except ImportError:
        names = ", ".join(assumptions)
        raise NotImplementedError(
            f"this PyTensor has no assumptions, so it cannot use {names}; newer releases of "
            "series 3 can"
        ) from None
    return assume(matrix, **assumptions)


def without_assumptions(variable: Any) -> Any:
    """Return the variable whose assumptions this one states; None if it states none."""
    node = variable.owner
    is_it = node is not None and type(node.op).__name__ == "SpecifyAssumptions"
    return node.inputs[0] if is_it else None


def is_known_symmetric(fgraph: FunctionGraph, matrix: Any) -> bool:
    """Whether PyTensor assumes that a matrix is symmetric, as stated or implied."""
    return _is_known(fgraph, matrix, "SYMMETRIC")


def is_known_tridiagonal(fgraph: FunctionGraph, matrix: Any) -> bool:
    """Whether PyTensor assumes that a matrix is tridiagonal, and not diagonal, which is easier.

    Only in graphs with stated assumptions: otherwise only the forms of ops could imply it.
    """
    if getattr(fgraph, "assumption_feature", None) is None:
        return False
    return _is_known(fgraph, matrix, "TRIDIAGONAL") and not _is_known(fgraph, matrix, "DIAGONAL")


def is_known_triangular(fgraph: FunctionGraph, matrix: Any) -> tuple[bool, bool]:
    """Return whether PyTensor assumes a matrix to be lower triangular, and whether upper.

    Only in graphs with stated assumptions, as for `is_known_tridiagonal`.
    """
    if getattr(fgraph, "assumption_feature", None) is None:
        return False, False
    return (
        _is_known(fgraph, matrix, "LOWER_TRIANGULAR"),
        _is_known(fgraph, matrix, "UPPER_TRIANGULAR"),
    )


def is_taken_for_triangular(fgraph: FunctionGraph, matrix: Any) -> bool:
    """Whether PyTensor takes ``L`` for the Cholesky factor of ``L L'``: a user has stated it."""
    lower, _ = is_known_triangular(fgraph, matrix)
    return lower or bool(getattr(matrix.tag, "lower_triangular", False))


def is_known_diagonal(fgraph: FunctionGraph, matrix: Any) -> bool:
    """Whether PyTensor assumes that a matrix is diagonal, as stated or implied."""
    return _is_known(fgraph, matrix, "DIAGONAL")


def is_known_to_scale_or_select(fgraph: FunctionGraph, matrix: Any) -> bool:
    """Whether PyTensor assumes that a matrix is diagonal, or that it selects rows or columns."""
    return any(_is_known(fgraph, matrix, name) for name in ("DIAGONAL", "SELECTION", "PERMUTATION"))


def _is_known(fgraph: FunctionGraph, matrix: Any, name: str) -> bool:
    try:
        assumptions: Any = import_module("pytensor.assumptions")
        key, check = getattr(assumptions, name), assumptions.check_assumption
    except (ImportError, AttributeError):
        return False
    return bool(check(fgraph, matrix, key))
