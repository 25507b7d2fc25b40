"""Block-diagonal matrices, and the parts of others that belong to their blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytensor.tensor as pt
from pytensor.tensor.linalg.constructors import BlockDiagonal
from pytensor.tensor.linalg.inverse import MatrixInverse

from pytensor_fuse._linalg.structure.matrices import (
    core_of,
    is_real_matrix,
    same,
    transpose_of,
    turned,
)
from pytensor_fuse._pytensor.rewriting.assumptions import (
    is_known_positive_definite,
    said_positive_definite,
    without_assumptions,
)

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph


def blocks_of(matrix: Any) -> list[Any] | None:
    """Return the blocks of a square matrix; None if it is not known to be block-diagonal.

    No block is known not to be square.
    """
    if not is_real_matrix(matrix):
        return None
    inner = transpose_of(matrix)
    if inner is not None:
        found = blocks_of(inner)
        return None if found is None else [turned(one) for one in found]
    node = matrix.owner
    if node is None or not isinstance(core_of(node), BlockDiagonal):
        return None
    blocks: list[Any] = []
    for one in node.inputs:
        rows, columns = one.type.shape
        if None not in (rows, columns) and rows != columns:
            return None
        blocks.extend(blocks_of(one) or [one])
    # A block of another dtype would be computed with in another precision.
    if any(one.type.dtype != matrix.type.dtype for one in blocks):
        return None
    return blocks


def known_blocks(fgraph: FunctionGraph, matrix: Any) -> list[Any] | None:
    """Return the blocks of a matrix; if it is positive definite, they are assumed to be."""
    blocks = blocks_of(matrix)
    if blocks is None or not is_known_positive_definite(fgraph, matrix):
        return blocks
    return [said_positive_definite(one) for one in blocks]


def inverses_of(fgraph: FunctionGraph, matrix: Any) -> list[Any] | None:
    """Return the blocks of the inverse of a block-diagonal matrix; None for other matrices."""
    if not is_real_matrix(matrix):
        return None
    inner = transpose_of(matrix)
    if inner is not None:
        found = inverses_of(fgraph, inner)
        return None if found is None else [turned(one) for one in found]
    if type(core_of(matrix.owner)) is not MatrixInverse:
        return None
    blocks = known_blocks(fgraph, matrix.owner.inputs[0])
    invert: Any = matrix.owner.op
    return None if blocks is None else [invert(one) for one in blocks]


def has_shape_of(part: Any, matrix: Any) -> bool:
    """Whether a square matrix is known to have the shape of another."""
    known = part.type.shape
    if None not in known and known == matrix.type.shape:
        return True
    return same(made_of(part), made_of(matrix))


def made_of(matrix: Any) -> Any:
    """Return the matrix behind inverses and transposes; a square one has the same shape."""
    while True:
        inner, unsaid = transpose_of(matrix), without_assumptions(matrix)
        if inner is not None:
            matrix = inner
        elif type(core_of(matrix.owner)) is MatrixInverse:
            matrix = matrix.owner.inputs[0]
        elif unsaid is not None:
            matrix = unsaid
        else:
            return matrix


def split_by(right: Any, blocks: list[Any]) -> list[Any]:
    """Return the parts of a vector or matrix, each with as many rows as a block has."""
    known = [one.type.shape[0] for one in blocks]
    if None in known:
        sizes: Any = pt.stack([one.shape[0] for one in blocks])
    else:
        sizes = pt.constant(known, dtype="int64")
    parts: list[Any] = pt.split(right, sizes, n_splits=len(blocks), axis=0)
    return parts
