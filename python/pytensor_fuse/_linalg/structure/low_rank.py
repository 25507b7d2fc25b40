"""Matrices ``D + U U'``: a positive diagonal and a product of a thin matrix with its transpose.

With ``V = D^-1/2 U`` and ``M = I + V' V``, which is as small as ``U`` is thin:

- ``A^-1 = D^-1/2 (I - V M^-1 V') D^-1/2`` (Woodbury's identity);
- ``log |A| = log |D| + log |M|`` (the determinant lemma);
- ``A^-1 U = D^-1/2 V M^-1``.

``D`` is positive, so that ``A`` and ``M`` are positive definite whatever ``U`` is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.scalar.basic import Add, Mul, TrueDiv
from pytensor.tensor.linalg.decomposition.cholesky import cholesky
from pytensor.tensor.linalg.solvers.psd import cho_solve
from pytensor.tensor.linalg.solvers.triangular import solve_triangular
from pytensor.tensor.math import Dot

from pytensor_fuse._linalg.costs import Cost, Length, term
from pytensor_fuse._linalg.structure.diagonal import (
    diagonal_of,
    forgotten_sizes,
    is_of_known_size,
)
from pytensor_fuse._linalg.structure.lengths import if_equal
from pytensor_fuse._linalg.structure.matrices import (
    as_scalar,
    core_of,
    is_real_matrix,
    is_transpose,
    long_axes,
    same,
    scalar_op,
    transpose_of,
)
from pytensor_fuse._linalg.structure.signs import Sign, sign_of

if TYPE_CHECKING:
    from collections.abc import Iterator

# How deep sums and products are looked through.
_DEPTH: Final = 8


class Thin(NamedTuple):
    """A summand ``s T C C' T'`` of a matrix.

    Attributes
    ----------
    base
        ``T``, with few columns.
    inner
        ``C``, with as many rows; a vector for a diagonal matrix, or None for the identity.
    scales
        Numbers, none of them negative, whose product is ``s``.
    """

    base: Any
    inner: Any
    scales: tuple[Any, ...]

    @property
    def rank(self) -> int:
        """How many columns there are."""
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
        How many rows it has.
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
        """How many columns ``U`` has."""
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
        """Return what ``M`` and its factor cost."""
        n, k = self.size, self.rank
        if self.is_even:
            return term(2, n, k, k) + term(1, k, k, k)
        return term(6, n, k, k) + term(4, k, k, k)

    def cost_of_solve(self, columns: Length) -> Cost:
        """Return what a solve costs, once there is a factor of ``M``."""
        return term(8, self.size, self.rank, columns) + term(4, self.rank, self.rank, columns)

    def pays(self) -> bool:
        """Whether the factor of ``M`` costs at most half of a Cholesky factor of the matrix."""
        return bool(2 * 3 * self.cost().at() <= self.size**3)


class Woodbury:
    """What follows for a matrix ``D + U U'``, as new terms of a graph.

    Parameters
    ----------
    matrix
        The matrix by its parts.

    Notes
    -----
    With ``V = D^-1/2 U``, ``M = I + V' V = L L'`` and ``Z = V L^-T``, the inverse of ``I + V V'``
    is ``I - Z Z'``, and ``Z' Z = I - N`` with ``N = L^-1 L^-T``. Where ``N`` is small, that is a
    difference of what is nearly equal: so ``Z' x`` of a solution ``x`` for ``y``, which is
    ``N Z' y``, is computed as such, and ``x`` corrected by ``Z`` times the difference.

    Where rows of ``V`` are much longer than others, as where elements of ``D`` are much smaller,
    ``V' V`` rounds the others away. So there ``M`` is factorized twice, as in CholeskyQR2 with a
    shift (Fukaya and others 2020): with ``L1`` of ``M`` and a multiple of the identity that makes
    it definite as rounded, ``W = V L1^-T`` has no such rows, and ``L = L1 L2`` with ``L2 L2' =
    W' W + L1^-1 L1^-T``.
    """

    def __init__(self, matrix: LowRankUpdate) -> None:
        self._matrix = matrix
        columns = matrix.columns()
        diagonal = matrix.diagonal
        identity = pt.eye(matrix.rank, dtype=columns.type.dtype)
        self._factor: Any
        if matrix.is_even:
            # U stands for V: dividing what is small is cheaper.
            self._root = None
            self._scaled = columns
            self._factor = cholesky(identity + columns.T @ columns / diagonal)
            return
        self._root = pt.sqrt(diagonal)[:, None]
        self._scaled = columns / self._root
        gram = self._scaled.T @ self._scaled
        rounding = (matrix.size + matrix.rank) * np.finfo(columns.type.dtype).eps
        shift = 1 + np.asarray(rounding, dtype=columns.type.dtype) * pt.diagonal(gram).sum()
        first: Any = cholesky(shift * identity + gram)
        narrowed = _solved_triangle(first, self._scaled.T)
        rest = _solved_triangle(first, identity)
        second: Any = cholesky(narrowed @ narrowed.T + rest @ rest.T)
        self._factors = first, second
        self._factor = first @ second
        self._basis = self._narrowed(self._scaled.T).T

    def log_determinant(self) -> Any:
        """Return the logarithm of the determinant."""
        logarithms = pt.log(self._matrix.diagonal)
        outer = logarithms.sum() if logarithms.type.ndim else self._matrix.size * logarithms
        return outer + 2 * pt.log(pt.diagonal(self._factor)).sum()

    def determinant(self) -> Any:
        """Return the determinant, which overflows if the matrix is large."""
        diagonal = self._matrix.diagonal
        outer = pt.prod(diagonal) if diagonal.type.ndim else diagonal**self._matrix.size
        return outer * pt.prod(pt.diagonal(self._factor)) ** 2

    def solved(self, right: Any) -> Any:
        """Return the solution for the columns of a matrix."""
        thin = self._matrix.thin[0]
        if len(self._matrix.thin) == 1 and thin.inner is None and same(right, thin.base):
            # A^-1 T, without any subtraction, also where the scale is 0.
            return self._times_solved(thin.base, None)
        if len(self._matrix.thin) == 1 and isinstance(core_of(right.owner), Dot):
            left, other = right.owner.inputs
            if thin.inner is None and same(left, thin.base):
                return self._times_solved(thin.base, other)
        turned = right if self._root is None else right / self._root
        return self._divided(self._solved(turned))

    def inverse(self) -> Any:
        """Return the inverse, entry by entry."""
        size, dtype = self._matrix.size, self._scaled.type.dtype
        if self._root is None:
            identity = pt.eye(size, dtype=dtype)
            spanned = self._spanned(_solved_triangle(self._factor, self._scaled.T))
            return (identity - spanned) / self._matrix.diagonal
        roots = self._root[:, 0]
        return self._divided(self._solved(pt.diag(1 / roots), (self._basis / self._root).T))

    def diagonal_of_inverse(self) -> Any:
        """Return the diagonal of the inverse."""
        if self._root is None:
            inner = _solved_triangle(self._factor, self._scaled.T)
            leverages = (inner**2).sum(axis=0) / self._matrix.diagonal
            return (1 - leverages) / self._matrix.diagonal
        return self._left_over() / self._matrix.diagonal

    def trace_of_inverse(self) -> Any:
        """Return the trace of the inverse."""
        if not self._matrix.is_even:
            return self.diagonal_of_inverse().sum()
        # The trace of V M^-1 V' is that of M^-1 (M - I).
        identity = pt.eye(self._matrix.rank, dtype=self._scaled.type.dtype)
        rest = self._matrix.size - self._matrix.rank
        inner = _solved_triangle(self._factor, identity)
        return (rest + (inner**2).sum()) / self._matrix.diagonal

    def _left_over(self) -> Any:
        """Return the diagonal of ``I - Z Z'``.

        Notes
        -----
        The squares of the rows of ``Z`` sum up to less than ``k``, so less than ``2 k`` of them are
        larger than 1/2. For these ``1 - z' z`` would cancel. As ``z' (I - N) z`` is the sum of the
        squares of the products of ``z`` with all rows, it is ``z' N z`` and the products with the
        others, over ``z' z``.
        """
        basis, most = self._basis, 2 * self._matrix.rank
        leverages = (basis**2).sum(axis=1)
        # Found without sorting, which takes Numba long to compile. All others share one place.
        is_large = pt.gt(leverages, 0.5)
        places = pt.switch(is_large, pt.cumsum(is_large.astype("int64")) - 1, most)
        found = pt.zeros(most + 1, dtype="int64")
        rows_in_order = pt.arange(self._matrix.size)
        largest = pt.set_subtensor(found[places], rows_in_order)[:most]
        rows, near = basis[largest], leverages[largest]
        products = rows @ basis.T
        products = pt.set_subtensor(products[pt.arange(most), largest], 0)
        turned = _solved_triangle(self._factor.T, rows.T, lower=False)
        squares = (products**2).sum(axis=1) + (turned**2).sum(axis=0)
        simple = 1 - leverages
        exact = pt.switch(near > 0.5, squares / near, simple[largest])
        return pt.set_subtensor(simple[largest], exact.astype(simple.type.dtype))

    def _solved(self, turned: Any, inner: Any = None) -> Any:
        """Solve with ``I + V V'``; what is in ``Z' y`` may be known."""
        if inner is None:
            inner = self._coordinates(turned)
        first = turned - self._spanned(inner)
        wanted = _solved_triangle(self._factor.T, inner, lower=False)
        wanted = _solved_triangle(self._factor, wanted)
        return first + self._spanned(wanted - self._coordinates(first))

    def _coordinates(self, turned: Any) -> Any:
        """Return ``Z' y``, times the root of ``D`` if that is a number."""
        if self._root is None:
            return _solved_triangle(self._factor, self._scaled.T @ turned)
        return self._basis.T @ turned

    def _spanned(self, inner: Any) -> Any:
        """Return ``Z t``, divided by the root of ``D`` if that is a number."""
        if self._root is None:
            back = _solved_triangle(self._factor.T, inner, lower=False)
            return self._scaled @ back / self._matrix.diagonal
        return self._basis @ inner

    def _times_solved(self, base: Any, other: Any) -> Any:
        """Return ``D^-1 T M^-1 B``, where no ``B`` stands for the identity."""
        if self._root is None:
            if other is None:
                return self._divided(self._solved_small(base.T).T)
            return self._divided(base @ self._solved_small(other))
        basis = self._narrowed((base / self._root).T).T
        if other is None:
            return self._divided(_solved_triangle(self._factor.T, basis.T, lower=False).T)
        return self._divided(basis @ _solved_triangle(self._factor, other))

    def _divided(self, turned: Any) -> Any:
        return turned / (self._matrix.diagonal if self._root is None else self._root)

    def _narrowed(self, turned: Any) -> Any:
        """Solve with one factor of ``L`` after the other, which ``L`` itself is too rounded for."""
        first, second = self._factors
        return _solved_triangle(second, _solved_triangle(first, turned))

    def _solved_small(self, right: Any) -> Any:
        """Solve with ``M``."""
        solve: Any = cho_solve
        return solve((self._factor, True), right, b_ndim=2)


def _solved_triangle(factor: Any, right: Any, *, lower: bool = True) -> Any:
    solve: Any = solve_triangular
    return solve(factor, right, lower=lower, b_ndim=2)


def low_rank_update(matrix: Any) -> LowRankUpdate | None:
    """Return the parts of a matrix ``D + U U'``; None if it is not known to be one."""
    if not is_real_matrix(matrix):
        return None
    inner = transpose_of(matrix)
    if inner is not None and inner.type.ndim == 2:
        # It is symmetric.
        matrix = inner
    size = matrix.type.shape[0] or matrix.type.shape[1]
    if size is None or not isinstance(scalar_op(matrix), Add):
        return None
    diagonals: list[Any] = []
    forgotten: list[Any] = []
    thin: list[Thin] = []
    for part in summands_of(matrix):
        # An axis of length 1 would be repeated.
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
    diagonal = _sum(diagonals)
    if sign_of(diagonal) is not Sign.POSITIVE:
        return None
    if forgotten:
        diagonal = if_equal(diagonal, size, *forgotten)
    return LowRankUpdate(size, diagonal, tuple(thin))


def summands_of(variable: Any, depth: int = _DEPTH) -> Iterator[Any]:
    """Iterate over the summands of a sum, of which some may be sums."""
    if depth and isinstance(scalar_op(variable), Add):
        for part in variable.owner.inputs:
            yield from summands_of(part, depth - 1)
    else:
        yield variable


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
    if column.type.broadcastable != (False, True) or not is_transpose(column, row):
        return None
    return Thin(column, None, ())


def _square_of_product(left: Any, right: Any) -> Thin | None:
    """Return the parts of ``T T'``, ``(T * c) T'``, ``T (C C') T'``."""
    if is_transpose(left, right):
        return Thin(left, None, ())
    for one, other in ((left, right), (_turned(right), _turned(left))):
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
        base = next((one for one in node.inputs if is_transpose(one, right)), None)
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
        if not is_transpose(base, right):
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


def _turned(variable: Any) -> Any:
    inner = transpose_of(variable)
    return inner if inner is not None and inner.type.ndim == 2 else variable.T


def product_of(factors: Any) -> Any:
    """Return the product of one variable or more."""
    first, *others = factors
    for one in others:
        first = first * one
    return first


def _sum(terms: list[Any]) -> Any:
    first, *others = terms
    for one in others:
        first = first + one
    return first
