"""Factors by which PyTensor multiplies without a matrix product.

PyTensor scales rows for a product with a diagonal matrix, takes rows for one with a selection, and
turns one with an inverse into a solve without computing the inverse. A product computed by parts
would need the other matrix itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytensor.tensor as pt
from pytensor.tensor.linalg.inverse import MatrixInverse

from pytensor_fuse._linalg.structure.diagonal import diagonal_of, is_diagonal
from pytensor_fuse._linalg.structure.matrices import core_of, is_product_to_make, without_transposes
from pytensor_fuse._pytensor.rewriting.assumptions import (
    is_known_diagonal,
    is_known_to_scale_or_select,
)

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph


def is_work_to_do(fgraph: FunctionGraph, node: Apply[Any], other: Any) -> bool:
    """Whether a node multiplies matrices by a product that PyTensor does not avoid.

    Parameters
    ----------
    fgraph, node
        The graph, and the node.
    other
        The factor without known parts, or its transpose.
    """
    if not is_product_to_make(node):
        return False
    return not (is_inverse(other) or is_free_factor(fgraph, other))


def is_inverse(matrix: Any) -> bool:
    """Whether a matrix is the inverse of another, or the transpose of that."""
    inner, _ = without_transposes(matrix)
    return type(core_of(inner.owner)) is MatrixInverse


def is_free_factor(fgraph: FunctionGraph, matrix: Any) -> bool:
    """Whether PyTensor multiplies with a matrix, or solves with it, without a product or a solve.

    Such are diagonal matrices, and those that select rows or columns.
    """
    inner, _ = without_transposes(matrix)
    return is_diagonal(inner) or is_known_to_scale_or_select(fgraph, inner)


def scales_of(fgraph: FunctionGraph, matrix: Any) -> Any:
    """Return the diagonal of a matrix that is known to be diagonal, as a vector or a number."""
    inner, _ = without_transposes(matrix)
    entries = diagonal_of(inner)
    if entries is None and is_known_diagonal(fgraph, inner):
        entries = pt.diagonal(inner)
    return entries
