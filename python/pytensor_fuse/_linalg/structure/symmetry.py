"""Symmetric matrices, and pairs of transposes, recognized by their expressions.

The expression of a covariance shows its symmetry: a column and its transpose go through the same
elementwise operations, and products are those of a matrix with its own transpose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.scalar.basic import Abs, Add, Cos, Cosh, Mul, Neg, Pow, Sqr, Sub, TrueDiv
from pytensor.tensor.basic import AllocDiag, Eye
from pytensor.tensor.math import Dot

from pytensor_fuse._linalg.ops.cholesky_inverse import CholeskyInverse
from pytensor_fuse._linalg.ops.lu_inverse import LUInverse
from pytensor_fuse._linalg.structure.diagonal import is_identity
from pytensor_fuse._linalg.structure.matrices import (
    are_paired,
    core_of,
    same,
    scalar_op,
    scaled_parts,
    transpose_of,
    vector_of,
)
from pytensor_fuse._linalg.structure.signs import number_of
from pytensor_fuse._pytensor.rewriting.assumptions import is_known_symmetric

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph


def is_symmetric(fgraph: FunctionGraph, matrix: Any) -> bool:
    """Whether a matrix is symmetric by its expression or by an assumption of PyTensor."""
    return Symmetry().of(matrix) or is_known_symmetric(fgraph, matrix)


def are_mirrored(first: Any, second: Any) -> bool:
    """Whether two matrices are each other's transposes by their expressions."""
    return Symmetry().are_mirrored(first, second)


class Symmetry:
    """Answers for one graph in its present state; results are memoized."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, Any], bool] = {}

    def of(self, matrix: Any) -> bool:
        """Whether a matrix is its own transpose for all values of the inputs."""
        return matrix.type.ndim == 2 and self.are_mirrored(matrix, matrix)

    def are_mirrored(self, first: Any, second: Any) -> bool:
        """Whether two matrices are each other's transposes."""
        pair = (first, second)
        known = self._known.get(pair)
        if known is None:
            known = self._known[pair] = self._find(first, second)
            self._known[second, first] = known
        return known

    def _find(self, first: Any, second: Any) -> bool:
        if first.type.broadcastable != second.type.broadcastable[::-1]:
            return False
        if all(first.type.broadcastable):
            return same(first, second)
        if isinstance(first, Constant) and isinstance(second, Constant):
            return np.array_equal(first.data, second.data.T)
        turned = [transpose_of(one) for one in (first, second)]
        if any(
            one is not None and same(one, b) for one, b in zip(turned, (second, first), strict=True)
        ):
            return True
        if None not in turned:
            return self.are_mirrored(*turned)
        column, row = vector_of(first), vector_of(second)
        if column is not None and row is not None and same(column, row):
            return True
        core, other_core = core_of(first.owner), core_of(second.owner)
        if isinstance(core, Dot) and isinstance(other_core, Dot):
            return self._are_mirrored_products(first, second)
        if isinstance(core, AllocDiag) and isinstance(other_core, AllocDiag):
            return (
                core.offset == -other_core.offset
                and (core.axis1, core.axis2) == (other_core.axis1, other_core.axis2) == (0, 1)
                and same(first.owner.inputs[0], second.owner.inputs[0])
            )
        if _is_symmetric_by_itself(core, first):
            return same(first, second)
        op = scalar_op(first)
        if op is None or scalar_op(second) != op or len(first.owner.outputs) > 1:
            return False
        one, *rest = first.owner.inputs
        other, *others = second.owner.inputs
        if _is_even(op, rest) and all(map(same, rest, others)) and self._are_opposite(one, other):
            return True
        return self._match(op, _operands(op, first), _operands(op, second))

    def _are_opposite(self, first: Any, second: Any) -> bool:
        """Whether a matrix is minus the transpose of another.

        The differences of floating-point numbers ``a - b`` and ``b - a``, and their multiples, are
        exact opposites.
        """
        # Differences of unsigned integers wrap.
        if first.type.numpy_dtype.kind != "f" or second.type.numpy_dtype.kind != "f":
            return False
        if first.type.broadcastable != second.type.broadcastable[::-1]:
            return False
        if isinstance(first, Constant) and isinstance(second, Constant):
            return np.array_equal(first.data, -second.data.T)
        op = scalar_op(first)
        if op is None or scalar_op(second) != op:
            return False
        mine, theirs = first.owner.inputs, second.owner.inputs
        if isinstance(op, Neg):
            return self._are_opposite(mine[0], theirs[0])
        if isinstance(op, Sub):
            return self.are_mirrored(mine[0], theirs[1]) and self.are_mirrored(mine[1], theirs[0])
        if isinstance(op, Mul | TrueDiv) and len(mine) == len(theirs):
            # The numbers, and the one matrix that is not.
            matrices = [i for i, one in enumerate(mine) if not all(one.type.broadcastable)]
            return len(matrices) == 1 and all(
                self._are_opposite(a, b) if i in matrices else same(a, b)
                for i, (a, b) in enumerate(zip(mine, theirs, strict=True))
            )
        return False

    def _match(self, op: Any, mine: list[Any], theirs: list[Any]) -> bool:
        if len(mine) != len(theirs):
            return False
        if not isinstance(op, Add | Mul):
            return all(self.are_mirrored(a, b) for a, b in zip(mine, theirs, strict=True))
        return are_paired(mine, theirs, self.are_mirrored)

    def _are_mirrored_products(self, first: Any, second: Any) -> bool:
        """Whether ``A B`` is the transpose of ``C D``, up to equal scalar factors."""
        left, right = first.owner.inputs
        other_left, other_right = second.owner.inputs
        if {one.type.ndim for one in (left, right, other_left, other_right)} != {2}:
            return False
        left, numbers = _without_numbers(left)
        right, more = _without_numbers(right)
        other_left, other_numbers = _without_numbers(other_left)
        other_right, other_more = _without_numbers(other_right)
        numbers, other_numbers = numbers + more, other_numbers + other_more
        return (
            are_paired(numbers, other_numbers, same)
            and self.are_mirrored(left, other_right)
            and self.are_mirrored(right, other_left)
        )


def _operands(op: Any, variable: Any) -> list[Any]:
    """Return the operands of an elementwise op; nested sums and products are flattened."""
    parts: list[Any] = []
    for one in variable.owner.inputs:
        # Integers of a smaller type overflow before they are cast.
        is_same = isinstance(op, Add | Mul) and one.type.dtype == variable.type.dtype
        parts.extend(_operands(op, one) if is_same and scalar_op(one) == op else [one])
    return parts


def _is_even(op: Any, rest: list[Any]) -> bool:
    """Whether an elementwise function is even in its first operand.

    Parameters
    ----------
    op
        The function.
    rest
        The other operands.
    """
    if isinstance(op, Pow):
        exponent = number_of(rest[0])
        return exponent is not None and exponent % 2 == 0
    return isinstance(op, Abs | Cos | Cosh | Sqr)


def _is_symmetric_by_itself(op: Any, matrix: Any) -> bool:
    if isinstance(op, CholeskyInverse):
        return True
    if isinstance(op, LUInverse):
        return bool(op.symmetric)
    return isinstance(op, Eye) and is_identity(matrix)


def _without_numbers(matrix: Any) -> tuple[Any, list[Any]]:
    """Return the matrix in a product with scalars, and these."""
    parts = scaled_parts(matrix) if isinstance(scalar_op(matrix), Mul) else None
    return (matrix, []) if parts is None else (parts.whole, parts.numbers)
