"""Banded matrices by their form: the diagonals that may be nonzero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable
from pytensor.scalar.basic import Add, Neg, Sub, TrueDiv
from pytensor.tensor.basic import AllocDiag, Eye

from pytensor_fuse._linalg.structure.diagonal import diagonal_of
from pytensor_fuse._linalg.structure.lengths import if_equal, rows_of_length
from pytensor_fuse._linalg.structure.matrices import (
    as_scalar,
    same,
    scalar_op,
    scaled_parts,
    transpose_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

# The depth of sums and products that is searched.
_DEPTH: Final = 8

# Constants with fewer rows are not searched; of others at least as many diagonals are allowed.
_FEWEST_ROWS: Final = 3


class Diagonals(NamedTuple):
    """The diagonals of a square matrix that is 0 elsewhere.

    Attributes
    ----------
    at
        Vectors by their offsets; a number stands for a constant diagonal.
    size
        The number of rows: an integer, if it is known.
    others
        The numbers of rows by other parts of the matrix that are not known to be the same.
    """

    at: dict[int, Any]
    size: Any
    others: tuple[Any, ...]

    def length(self, offset: int) -> Any:
        """Return the length of a diagonal, which may lie outside the matrix."""
        if isinstance(self.size, int):
            return max(self.size - abs(offset), 0)
        return pt.maximum(self.size - abs(offset), 0) if offset else self.size

    def vectors(self, offsets: Iterable[int]) -> list[Any]:
        """Return diagonals, checked to fit, as all parts of the matrix are.

        LAPACK would read beyond shorter ones. The expression of a diagonal does not show the
        lengths of vectors that PyTensor fills, or of identities.
        """
        first, *rest = (self._vector(at) for at in offsets)
        if self.others:
            first = if_equal(first, self.size, *self.others)
        return [first, *rest]

    def _vector(self, offset: int) -> Any:
        diagonal = self.at.get(offset)
        if diagonal is None:
            diagonal = pt.zeros((), dtype=next(iter(self.at.values())).type.dtype)
        length = self.length(offset)
        if not diagonal.type.ndim:
            return pt.full((length,), diagonal)
        return rows_of_length(diagonal, length)


def diagonals_of(matrix: Any) -> dict[int, Any] | None:
    """Return the diagonals of a matrix that is 0 elsewhere, by their offsets; None if not known.

    Each is a vector, or a number for a constant diagonal.
    """
    return _diagonals(matrix, _DEPTH)


def of_size(diagonals: dict[int, Any], matrix: Any, sizes: Iterable[Any]) -> Diagonals | None:
    """Return diagonals with the size of their matrix; None if they are not of its type.

    Parameters
    ----------
    diagonals, matrix
        The diagonals that may be nonzero, and the matrix.
    sizes
        The numbers of rows by each part of the matrix: integers, or variables.
    """
    if any(one.type.dtype != matrix.type.dtype for one in diagonals.values()):
        return None
    sizes = [*matrix.type.shape, *sizes]
    known = {one for one in sizes if isinstance(one, int)}
    others = [one for one in sizes if isinstance(one, Variable)]
    if len(known) > 1:
        return None
    size = known.pop() if known else others.pop(0)
    return Diagonals(diagonals, size, tuple(others))


def _diagonals(variable: Any, depth: int) -> dict[int, Any] | None:
    if depth == 0 or variable.type.ndim != 2 or any(variable.type.broadcastable):
        return None
    main = diagonal_of(variable)
    if main is not None:
        return {0: main}
    if isinstance(variable, Constant):
        return _diagonals_of_constant(variable)
    node = variable.owner
    if node is None:
        return None
    inner = transpose_of(variable)
    if inner is not None:
        found = _diagonals(inner, depth - 1)
        return None if found is None else {-at: one for at, one in found.items()}
    if isinstance(node.op, AllocDiag):
        return {node.op.offset: node.inputs[0]} if node.inputs[0].type.ndim == 1 else None
    if isinstance(node.op, Eye):
        rows, columns, offset = node.inputs
        if not (same(rows, columns) and isinstance(offset, Constant)):
            return None
        return {int(offset.data): pt.ones((), dtype=variable.type.dtype)}
    return _diagonals_of_elements(variable, depth)


def _diagonals_of_constant(constant: Any) -> dict[int, Any] | None:
    data = constant.data
    n, columns = data.shape
    # More diagonals are of no use to any rule.
    most = max(_FEWEST_ROWS, n // 4)
    if n != columns or n < _FEWEST_ROWS or np.count_nonzero(data) > most * n:
        return None
    down, across = np.nonzero(data)
    offsets = np.flatnonzero(np.bincount(across - down + n)) - n
    if len(offsets) > most:
        return None
    return {int(at): pt.constant(np.diagonal(data, at).copy()) for at in offsets}


def _diagonals_of_elements(variable: Any, depth: int) -> dict[int, Any] | None:
    op, inputs = scalar_op(variable), variable.owner.inputs
    if isinstance(op, Neg):
        return _each(_diagonals(inputs[0], depth - 1), lambda one: -one)
    scaled = scaled_parts(variable)
    if scaled is not None:
        numbers = [as_scalar(part) for part in scaled.numbers]

        def change(one: Any) -> Any:
            return one / numbers[0] if isinstance(op, TrueDiv) else pt.mul(one, *numbers)

        return _each(_diagonals(scaled.whole, depth - 1), change)
    if not isinstance(op, Add | Sub):
        return None
    total: dict[int, Any] = {}
    for i, part in enumerate(inputs):
        found = _diagonals(part, depth - 1)
        if found is None:
            return None
        for at, one in found.items():
            term = -one if i and isinstance(op, Sub) else one
            total[at] = total[at] + term if at in total else term
    return total


def _each(diagonals: dict[int, Any] | None, change: Any) -> dict[int, Any] | None:
    return None if diagonals is None else {at: change(one) for at, one in diagonals.items()}
