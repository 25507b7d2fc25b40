"""Matrices ``D + U U'``: a positive diagonal and a product of a thin matrix with its transpose.

`Woodbury` has the formulas for work on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytensor.tensor as pt
from pytensor.scalar.basic import Add, Mul, TrueDiv
from pytensor.tensor.math import Dot

from pytensor_fuse._linalg.costs import Cost, Length, term
from pytensor_fuse._linalg.structure.diagonal import diagonal_of, forgotten_sizes, is_of_known_size
from pytensor_fuse._linalg.structure.lengths import if_equal
from pytensor_fuse._linalg.structure.matrices import (
    as_scalar,
    core_of,
    is_real_matrix,
    long_axes,
    product_of,
    scalar_op,
    sum_of,
    summands_of,
    turned,
    without_transposes,
)
from pytensor_fuse._linalg.structure.signs import Sign, sign_of
from pytensor_fuse._linalg.structure.symmetry import are_mirrored

if TYPE_CHECKING:
    pass


class Thin(NamedTuple):
    """A summand ``s T C C' T'`` of a matrix.

    Attributes
    ----------
    base
        ``T``, with few columns.
    inner
        ``C``; a vector for a diagonal matrix, or None for the identity.
    scales
        Nonnegative numbers, whose product is ``s``.
    """

    base: Any
    inner: Any
    scales: tuple[Any, ...]

    @property
    def rank(self) -> int:
        """The number of columns."""
        is_matrix = self.inner is not None and self.inner.type.ndim == 2
        rank: int = (self.inner if is_matrix else self.base).type.shape[1]
        return rank

    def columns(self) -> Any:
        """Return ``s^1/2 T C``."""
        result = self.base
        if self.inner is not None:
            result = result @ self.inner if self.inner.type.ndim == 2 else result * self.inner
        return result * pt.sqrt(product_of(self.scales)) if self.scales else result


class LowRankUpdate(NamedTuple):
    """A matrix ``D + U U'``.

    Attributes
    ----------
    size
        The number of rows.
    diagonal
        The diagonal of ``D``: a vector, or a number.
    thin
        The summands of ``U U'``.
    """

    size: int
    diagonal: Any
    thin: tuple[Thin, ...]

    @property
    def rank(self) -> int:
        """The number of columns of ``U``."""
        return sum(one.rank for one in self.thin)

    def columns(self) -> Any:
        """Return ``U``."""
        found = [one.columns() for one in self.thin]
        return found[0] if len(found) == 1 else pt.concatenate(found, axis=1)

    @property
    def is_even(self) -> bool:
        """Whether ``D`` is a multiple of the identity."""
        return not self.diagonal.type.ndim

    def cost(self) -> Cost:
        """Return the cost of ``M`` and its factor."""
        n, k = self.size, self.rank
        if self.is_even:
            return term(2, n, k, k) + term(1, k, k, k)
        return term(6, n, k, k) + term(4, k, k, k)

    def cost_of_solve(self, columns: Length) -> Cost:
        """Return the cost of a solve with the factor of ``M``."""
        return term(8, self.size, self.rank, columns) + term(4, self.rank, self.rank, columns)

    def pays(self) -> bool:
        """Whether the factor of ``M`` costs at most half of a Cholesky factor of the matrix."""
        return bool(2 * 3 * self.cost().at() <= self.size**3)


def low_rank_update(matrix: Any) -> LowRankUpdate | None:
    """Return the parts of a matrix ``D + U U'``; None if it is not known to be one."""
    if not is_real_matrix(matrix):
        return None
    # It is symmetric.
    matrix, _ = without_transposes(matrix)
    size = matrix.type.shape[0] or matrix.type.shape[1]
    if size is None or not isinstance(scalar_op(matrix), Add):
        return None
    diagonals: list[Any] = []
    forgotten: list[Any] = []
    thin: list[Thin] = []
    for part in summands_of(matrix):
        # An axis of length 1 would be broadcast.
        if any(part.type.broadcastable):
            return None
        diagonal = diagonal_of(part)
        if diagonal is not None:
            if not diagonal.type.ndim and not is_of_known_size(part):
                return None
            diagonals.append(diagonal)
            forgotten.extend(forgotten_sizes(part))
            continue
        found = thin_square(part)
        if found is None or not found.base.type.shape[1] or not found.rank:
            return None
        thin.append(found)
    if not thin or not diagonals:
        return None
    diagonal = sum_of(diagonals)
    if sign_of(diagonal) is not Sign.POSITIVE:
        return None
    if forgotten:
        diagonal = if_equal(diagonal, size, *forgotten)
    return LowRankUpdate(size, diagonal, tuple(thin))


def thin_square(variable: Any) -> Thin | None:
    """Return the parts of ``s T C C' T'``; None if a matrix is not of that form."""
    node = variable.owner
    if node is None or variable.type.ndim != 2:
        return None
    if isinstance(core_of(node), Dot):
        return _square_of_product(*node.inputs)
    op = scalar_op(variable)
    if isinstance(op, Mul):
        scales = [part for part in node.inputs if not long_axes(part)]
        rest = [part for part in node.inputs if long_axes(part)]
        if not all(sign_of(one) >= Sign.NONNEGATIVE for one in scales):
            return None
        found = thin_square(rest[0]) if len(rest) == 1 else _square_of_vector(rest)
        return None if found is None else _scaled(found, [as_scalar(one) for one in scales])
    if isinstance(op, TrueDiv):
        whole, divisor = node.inputs
        found = None if long_axes(divisor) else thin_square(whole)
        if found is None or sign_of(divisor) is not Sign.POSITIVE:
            return None
        return _scaled(found, [pt.reciprocal(as_scalar(divisor).astype(variable.type.dtype))])
    return None


def _scaled(thin: Thin, scales: list[Any]) -> Thin:
    return thin._replace(scales=(*thin.scales, *scales))


def _square_of_vector(factors: list[Any]) -> Thin | None:
    """Return ``v`` of a column times the same row."""
    if len(factors) != 2:
        return None
    column, row = factors
    if column.type.broadcastable == (True, False):
        column, row = row, column
    if column.type.broadcastable != (False, True) or not are_mirrored(column, row):
        return None
    return Thin(column, None, ())


def _square_of_product(left: Any, right: Any) -> Thin | None:
    """Return the parts of ``T T'``, ``(T * c) T'``, ``T (C C') T'``."""
    if are_mirrored(left, right):
        return Thin(left, None, ())
    for one, other in ((left, right), (turned(right), turned(left))):
        found = _weighted(one, other)
        if found is not None:
            return found
    return None


def _weighted(left: Any, right: Any) -> Thin | None:
    """Return the parts where the weights are on the left."""
    node = left.owner
    if node is None:
        return None
    if isinstance(scalar_op(left), Mul):
        base = next((one for one in node.inputs if are_mirrored(one, right)), None)
        weights = [one for one in node.inputs if one is not base]
        if base is None or len(weights) != len(node.inputs) - 1:
            return None
        if not all(
            one.type.broadcastable[0] and sign_of(one) >= Sign.NONNEGATIVE for one in weights
        ):
            return None
        lines = [as_scalar(one) if not long_axes(one) else one.flatten() for one in weights]
        scales = [one for one in lines if not one.type.ndim]
        columns = [one for one in lines if one.type.ndim]
        inner = pt.sqrt(product_of(columns)) if columns else None
        return Thin(base, inner, tuple(scales))
    if isinstance(core_of(node), Dot):
        base, middle = node.inputs
        if not are_mirrored(base, right):
            return None
        diagonal = diagonal_of(middle)
        if diagonal is not None:
            if sign_of(diagonal) < Sign.NONNEGATIVE:
                return None
            if not diagonal.type.ndim:
                return Thin(base, None, (diagonal,))
            return Thin(base, pt.sqrt(diagonal), ())
        square = thin_square(middle)
        if square is None:
            return None
        return Thin(base, square._replace(scales=()).columns(), square.scales)
    return None
