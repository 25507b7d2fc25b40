"""What is computed for each column is computed once where the matrix is an outer product."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor_fuse._linalg.structure.matrices import outer_product

if TYPE_CHECKING:
    from collections.abc import Callable


def for_columns(right: Any, apply: Callable[[Any], Any]) -> Any:
    """Return what is computed, linearly, for the columns of a matrix; None if it is not known how.

    Parameters
    ----------
    right
        The matrix.
    apply
        Computes it for all columns of a matrix.

    Notes
    -----
    For an outer product it is computed for the column, and multiplied with the row.
    """
    outer = None if any(right.type.broadcastable) else outer_product(right)
    if outer is None:
        return apply(right)
    if outer.column.type.broadcastable[0]:
        return None
    return apply(outer.column) * outer.row
