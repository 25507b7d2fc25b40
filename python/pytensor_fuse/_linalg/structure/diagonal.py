"""Diagonal matrices by their form, and the parts that determine their sizes.

A computation on diagonals alone does not notice matrices of different sizes. PyTensor compares the
lengths of vectors at run time, but not of vectors that it fills, and of an identity only a number
is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant
from pytensor.scalar.basic import Mul, TrueDiv
from pytensor.tensor.basic import Alloc, AllocDiag, ExtractDiag, Eye

from pytensor_fuse._linalg.structure.matrices import (
    as_scalar,
    core_of,
    long_axes,
    same,
    scalar_op,
    transpose_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


def is_diagonal(variable: Any) -> bool:
    """Whether a variable is a diagonal matrix."""
    # A matrix of one element would be broadcast.
    if variable.type.ndim != 2 or any(variable.type.broadcastable):
        return False
    if isinstance(variable, Constant):
        return diagonal_of_constant(variable) is not None
    node = variable.owner
    if node is None:
        return False
    if isinstance(node.op, AllocDiag):
        return bool(node.op.offset == 0)
    if isinstance(node.op, Eye):
        return is_identity(variable)
    inner = transpose_of(variable)
    if inner is not None:
        return is_diagonal(inner)
    op, factors = scalar_op(variable), node.inputs
    if not isinstance(op, Mul | TrueDiv):
        return False
    at = next((i for i, one in enumerate(factors) if is_diagonal(one)), None)
    if at is None or (isinstance(op, TrueDiv) and at):
        return False
    # An infinite element off the diagonal would make NaN: only numbers, rows and columns.
    return all(long_axes(factor) < 2 for i, factor in enumerate(factors) if i != at)


def diagonal_of(variable: Any) -> Any:
    """Return the diagonal of a diagonal matrix, as a vector or a number; None for others.

    A number stands for a multiple of the identity.
    """
    if not is_diagonal(variable):
        return None
    if isinstance(variable, Constant):
        return diagonal_of_constant(variable)
    node = variable.owner
    if isinstance(node.op, AllocDiag):
        return node.inputs[0]
    if isinstance(node.op, Eye):
        return pt.constant(np.ones((), variable.type.dtype))
    inner = transpose_of(variable)
    if inner is not None:
        return diagonal_of(inner)
    op, factors = scalar_op(variable), list(node.inputs)
    at = next(i for i, one in enumerate(factors) if is_diagonal(one))
    result = diagonal_of(factors.pop(at))
    for factor in factors:
        line = as_scalar(factor) if not long_axes(factor) else factor.flatten()
        result = result * line if isinstance(op, Mul) else result / line
    return result


def diagonal_of_constant(constant: Any) -> Any:
    """Return the diagonal of a constant matrix, as `diagonal_of` does."""
    data = constant.data
    if data.shape[0] != data.shape[1] or not data.size:
        return None
    entries = np.diagonal(data)
    if np.count_nonzero(data) != np.count_nonzero(entries):
        return None
    if np.all(entries == entries[0]):
        return pt.constant(entries[0])
    return pt.constant(entries.copy())


def is_identity(matrix: Any) -> bool:
    """Whether a matrix is a square `Eye` with ones on the main diagonal."""
    node = matrix.owner
    if node is None or not isinstance(node.op, Eye):
        return False
    rows, columns, offset = node.inputs
    return same(rows, columns) and isinstance(offset, Constant) and int(offset.data) == 0


def placed_diagonal(matrix: Any) -> Any:
    """Return the vector that `AllocDiag` places on the main diagonal of a matrix; else None."""
    op = core_of(matrix.owner)
    is_it = isinstance(op, AllocDiag) and matrix.type.ndim == 2 and _is_main(op)
    return matrix.owner.inputs[0] if is_it else None


def whose_diagonal(vector: Any) -> Any:
    """Return the matrix of whose main diagonal `ExtractDiag` makes a vector; else None."""
    op = core_of(vector.owner)
    if not isinstance(op, ExtractDiag) or not _is_main(op):
        return None
    [matrix] = vector.owner.inputs
    return matrix if matrix.type.ndim == 2 else None


def _is_main(op: AllocDiag | ExtractDiag) -> bool:
    return bool(op.offset == 0 and (op.axis1, op.axis2) == (0, 1))


def is_of_known_size(matrix: Any) -> bool:
    """Whether a matrix is square by its static shape, so that no check at run time is needed."""
    rows, columns = matrix.type.shape
    return rows is not None and rows == columns


def sizes_of(matrix: Any) -> list[Any]:
    """Return the numbers of rows of a matrix of known diagonals, by each of its parts.

    Returns
    -------
    list
        Known numbers, else variables; each once.
    """
    return _distinct(size for size, _ in _sizes(matrix))


def forgotten_sizes(matrix: Any) -> list[Any]:
    """Return the numbers of rows by those parts of which no vector of this length is left."""
    return _distinct(size for size, is_kept in _sizes(matrix) if not is_kept)


def _distinct(sizes: Iterator[Any]) -> list[Any]:
    found: list[Any] = []
    for size in sizes:
        if isinstance(size, int):
            is_known = any(isinstance(one, int) and one == size for one in found)
        else:
            is_known = any(not isinstance(one, int) and same(one, size) for one in found)
        if not is_known:
            found.append(size)
    return found


def _sizes(variable: Any) -> Iterator[tuple[Any, bool]]:
    """Iterate over the numbers of rows by each part, and whether a vector of the length is left."""
    node = variable.owner
    if isinstance(variable, Constant):
        yield variable.type.shape[0], True
    elif isinstance(node.op, AllocDiag):
        yield _length(node.inputs[0], abs(node.op.offset))
    elif isinstance(node.op, Eye):
        rows: Any = node.inputs[0]
        known = isinstance(rows, Constant)
        yield (int(rows.data) if known else rows.astype("int64")), known
    elif transpose_of(variable) is not None:
        yield from _sizes(transpose_of(variable))
    else:
        for one in node.inputs:
            if all(one.type.broadcastable):
                continue
            if any(one.type.broadcastable):
                yield _length(one.flatten())
            else:
                yield from _sizes(one)


def _length(vector: Any, more: int = 0) -> tuple[Any, bool]:
    known = vector.type.shape[0]
    if known is not None:
        return known + more, True
    return vector.shape[0] + more, _has_a_length(vector)


def _has_a_length(vector: Any) -> bool:
    """Whether PyTensor's rewrites leave a vector of the length of a computed one."""
    if scalar_op(vector) is not None:
        return any(_has_a_length(one) for one in vector.owner.inputs if long_axes(one))
    return not isinstance(core_of(vector.owner), Alloc)
