"""Kronecker products of square matrices, with or without a multiple of the identity.

With the rows of ``Y`` in the order of ``kron(A, B)``, each factor works on its own axis. With
``A = P diag(p) P'`` and ``B = Q diag(q) Q'`` symmetric, the eigenvalues of ``kron(A, B) + c I`` are
``p q' + c``, and its eigenvectors ``kron(P, Q)``.

Let ``G`` have its rows counted by ``(i, k)`` and its columns by ``(j, l)``, where ``i`` and ``j``
count the rows of ``A``, and ``k`` and ``l`` those of ``B``. Its partial traces are the sums of
``G[(i, k), (j, l)] B[k, l]`` over ``k`` and ``l``, and of ``G[(i, k), (j, l)] A[i, j]`` over ``i``
and ``j``. They are the gradients by ``A`` and ``B`` of a function with the gradient ``G`` by
``kron(A, B)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.scalar.basic import Add, Sub, TrueDiv
from pytensor.tensor.linalg.decomposition.eigen import eigh
from pytensor.tensor.linalg.products import KroneckerProduct, kron

from pytensor_fuse._linalg.costs import Cost, Length, term
from pytensor_fuse._linalg.structure.diagonal import diagonal_of, is_of_known_size
from pytensor_fuse._linalg.structure.matrices import (
    as_scalar,
    is_real_matrix,
    scalar_op,
    scaled_parts,
    transpose_of,
    turned,
    without_transposes,
)
from pytensor_fuse._linalg.structure.symmetry import is_symmetric
from pytensor_fuse._linalg.structure.triangles.solves import inverse_by_form, solved_by_form

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor.graph.fg import FunctionGraph

# PyTensor's annotation is wider than the results.
_eigh: Any = eigh


class TracedOut(NamedTuple):
    """The factor by which a matrix is multiplied and summed in a partial trace.

    Attributes
    ----------
    factor
        One of the factors, over whose rows and columns the sum goes.
    sizes
        The numbers of rows of both factors.
    keeps_left
        Whether the rows and columns of the left factor are kept.
    """

    factor: Any
    sizes: tuple[int, int]
    keeps_left: bool


class Kronecker(NamedTuple):
    """A Kronecker product of two square matrices of known sizes larger than 1."""

    left: Any
    right: Any

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of rows of the factors."""
        return self.left.type.shape[0], self.right.type.shape[0]

    @property
    def size(self) -> int:
        """The number of rows of the product."""
        n_left, n_right = self.sizes
        return n_left * n_right

    def pays(self) -> bool:
        """Whether eigendecompositions of the factors cost at most half a Cholesky factorization."""
        return 2 * 3 * eigenvalue_operations(self) <= self.size**3

    def turned(self) -> Kronecker:
        """Return the transpose."""
        return Kronecker(turned(self.left), turned(self.right))

    def cost(self, n: int, columns: Length) -> Cost:
        """Return the cost of a product with some columns."""
        return term(2 * n * sum(self.sizes), columns)

    def times(self, right: Any) -> Any:
        """Return the product with a vector or a matrix."""
        return _on_axes(self.sizes, right, lambda t: self.left @ t, lambda t: self.right @ t)

    def solved(self, right: Any) -> Any:
        """Return the solution for a vector or a matrix.

        Notes
        -----
        Assumptions on the product need not hold for its factors: two may be negative.
        """
        left, other = self
        return _on_axes(
            self.sizes, right, lambda t: solved_by_form(left, t), lambda t: solved_by_form(other, t)
        )

    def inverse(self) -> Kronecker:
        """Return the inverse."""
        return Kronecker(_inverse(self.left), _inverse(self.right))

    def diagonal(self, n: int) -> Any:
        """Return the diagonal."""
        return pt.outer(pt.diagonal(self.left), pt.diagonal(self.right)).flatten()

    def trace(self, n: int) -> Any:
        """Return the trace."""
        return pt.diagonal(self.left).sum() * pt.diagonal(self.right).sum()

    def partial_trace(self, out: TracedOut) -> Any:
        """Return a partial trace; None if the factors have other sizes."""
        if self.sizes != out.sizes:
            return None
        kept, other = self if out.keeps_left else self[::-1]
        return kept * (other * out.factor).sum()


class KroneckerInverse(NamedTuple):
    """The inverse of a Kronecker product."""

    of: Kronecker

    def turned(self) -> KroneckerInverse:
        """Return the transpose."""
        return KroneckerInverse(self.of.turned())

    def cost(self, n: int, columns: Length) -> Cost:
        """Return the cost of a product with some columns."""
        n_left, n_right = self.of.sizes
        return term(n_left**3 + n_right**3) + self.of.cost(n, columns)

    def times(self, right: Any) -> Any:
        """Return the product with a vector or a matrix."""
        return self.of.solved(right)

    def diagonal(self, n: int) -> Any:
        """Return the diagonal."""
        return self.of.inverse().diagonal(n)

    def trace(self, n: int) -> Any:
        """Return the trace."""
        return self.of.inverse().trace(n)

    def partial_trace(self, out: TracedOut) -> Any:
        """Return a partial trace; None if the factors have other sizes."""
        return self.of.inverse().partial_trace(out)


class Shifted(NamedTuple):
    """A matrix ``kron(A, B) + c I``, with symmetric factors."""

    product: Kronecker
    shift: Any

    @property
    def size(self) -> int:
        """The number of rows."""
        return self.product.size

    def inverse(self) -> Any:
        """Return the inverse, entry by entry."""
        left, right = self.eigenvectors()
        values = self.eigenvalues().flatten()
        turned = kron(left.T, right.T) / values[:, None]
        return _on_axes(self.product.sizes, turned, lambda t: left @ t, lambda t: right @ t)

    def eigenvectors(self) -> tuple[Any, Any]:
        """Return those of the factors."""
        left, right = self._decomposed()
        return left[1], right[1]

    def eigenvalues(self) -> Any:
        """Return the eigenvalues as a table, by those of the factors."""
        (p, _), (q, _) = self._decomposed()
        return p[:, None] * q[None, :] + self.shift

    def solved(self, right: Any) -> Any:
        """Return the solution for a vector or a matrix."""
        left, other = self.eigenvectors()
        sizes, values = self.product.sizes, self.eigenvalues().flatten()
        turned = _on_axes(sizes, right, lambda t: left.T @ t, lambda t: other.T @ t)
        turned = turned / (values if right.type.ndim == 1 else values[:, None])
        return _on_axes(sizes, turned, lambda t: left @ t, lambda t: other @ t)

    def _decomposed(self) -> tuple[Any, Any]:
        return _decomposed(self.product.left), _decomposed(self.product.right)


class ShiftedInverse(NamedTuple):
    """The inverse of a matrix ``kron(A, B) + c I``, with symmetric factors."""

    of: Shifted

    def turned(self) -> ShiftedInverse:
        """Return the transpose."""
        return self

    def cost(self, n: int, columns: Length) -> Cost:
        """Return the cost of a product with some columns."""
        product = self.of.product
        return term(eigenvalue_operations(product)) + product.cost(2 * n, columns)

    def times(self, right: Any) -> Any:
        """Return the product with a vector or a matrix."""
        return self.of.solved(right)

    def diagonal(self, n: int) -> Any:
        """Return the diagonal."""
        left, right = self.of.eigenvectors()
        return (left**2 @ self._eigenvalues() @ (right**2).T).flatten()

    def trace(self, n: int) -> Any:
        """Return the trace."""
        return self._eigenvalues().sum()

    def partial_trace(self, out: TracedOut) -> Any:
        """Return a partial trace; None if the factors have other sizes."""
        if self.of.product.sizes != out.sizes:
            return None
        table, vectors = self._eigenvalues(), self.of.eigenvectors()
        kept, other = vectors if out.keeps_left else vectors[::-1]
        # The quadratic forms of the factor in the eigenvectors of the factor that it stands for.
        forms = (other * (out.factor @ other)).sum(axis=0)
        weights = (table if out.keeps_left else table.T) * forms[None, :]
        return (kept * weights.sum(axis=1)) @ kept.T

    def _eigenvalues(self) -> Any:
        return pt.reciprocal(self.of.eigenvalues())


def kronecker_product(matrix: Any) -> Kronecker | None:
    """Return the factors of a Kronecker product; None if it is not known to be one."""
    found = _multiple(matrix)
    if found is None:
        return None
    product, numbers = found
    return _scaled(product, numbers)


def _scaled(product: Kronecker, numbers: list[Any]) -> Kronecker:
    left = product.left
    for number in numbers:
        left = left * number
    return product._replace(left=left)


def _multiple(matrix: Any) -> tuple[Kronecker, list[Any]] | None:
    """Return a Kronecker product and the numbers by which it is multiplied."""
    if not is_real_matrix(matrix) or matrix.owner is None:
        return None
    inner = transpose_of(matrix)
    if inner is not None:
        found = _multiple(inner)
        return None if found is None else (found[0].turned(), found[1])
    inputs, scaled = matrix.owner.inputs, scaled_parts(matrix)
    if scaled is not None:
        found = _multiple(scaled.whole)
        if found is None:
            return None
        # The reciprocal of a small integer has less than double precision.
        numbers = [as_scalar(one).astype(matrix.type.dtype) for one in scaled.numbers]
        if isinstance(scalar_op(matrix), TrueDiv):
            numbers = [pt.reciprocal(one) for one in numbers]
        return found[0], found[1] + numbers
    if not isinstance(matrix.owner.op, KroneckerProduct):
        return None
    # A product may be square where its factors are not.
    for one in inputs:
        if one.type.ndim != 2 or not is_real_matrix(one) or one.type.shape[0] is None:
            return None
        if one.type.shape[0] != one.type.shape[1]:
            return None
        # A factor of another dtype would be computed with in another precision.
        if one.type.dtype != matrix.type.dtype:
            return None
    return Kronecker(*inputs), []


def shifted_kronecker_product(fgraph: FunctionGraph, matrix: Any) -> Shifted | None:
    """Return the parts of ``kron(A, B) + c I``; None for other matrices."""
    if not is_real_matrix(matrix):
        return None
    # It is symmetric if it is of this form.
    matrix, _ = without_transposes(matrix)
    op = scalar_op(matrix)
    if not isinstance(op, Add | Sub) or len(matrix.owner.inputs) != 2:
        return None
    orders = (matrix.owner.inputs, matrix.owner.inputs[::-1])
    for product, identity in orders if isinstance(op, Add) else orders[:1]:
        found = _multiple(product)
        shift = None if found is None else diagonal_of(identity)
        if found is None or shift is None or shift.type.ndim or not is_of_known_size(identity):
            continue
        known, numbers = found
        if all(is_symmetric(fgraph, one) for one in known):
            shift = shift if isinstance(op, Add) else -shift
            return Shifted(_scaled(known, numbers), shift) if known.pays() else None
    return None


def eigenvalue_operations(known: Kronecker) -> int:
    """Return the operations of the eigendecompositions of the factors."""
    n_left, n_right = known.sizes
    return 9 * (n_left**3 + n_right**3)


def partial_trace_of_diagonal(entries: Any, out: TracedOut) -> Any:
    """Return a partial trace of a diagonal matrix: of its diagonal, or of a multiple of ``I``."""
    of_factor = pt.diagonal(out.factor)
    if not entries.type.ndim:
        n = out.sizes[0 if out.keeps_left else 1]
        return pt.eye(n, dtype=entries.type.dtype) * (entries * of_factor.sum())
    table = entries.reshape(out.sizes)
    return pt.diag(((table if out.keeps_left else table.T) * of_factor[None, :]).sum(axis=1))


def partial_trace_of_product(first: Any, second: Any, out: TracedOut) -> Any:
    """Return a partial trace of ``P Q'``, where ``P`` and ``Q`` have as many columns."""
    columns = first.type.shape[1]
    kept, other = out.sizes if out.keeps_left else out.sizes[::-1]
    order = (0, 2, 1) if out.keeps_left else (1, 2, 0)
    first, second = (one.reshape((*out.sizes, columns)).transpose(order) for one in (first, second))
    weighted = first.reshape((kept * columns, other)) @ out.factor
    lengths = (kept, columns * other)
    return weighted.reshape(lengths) @ second.reshape(lengths).T


def _on_axes(
    sizes: tuple[int, int],
    right: Any,
    of_left: Callable[[Any], Any],
    of_right: Callable[[Any], Any],
) -> Any:
    """Apply a linear function to either axis of each column, as the rows of a table.

    Parameters
    ----------
    sizes
        Of the table.
    right
        A vector, or a matrix of columns.
    of_left, of_right
        The functions, of matrices, which apply to the columns of these.
    """
    if right.type.ndim == 1:
        return of_right(of_left(right.reshape(sizes)).T).T.flatten()
    n_left, n_right = sizes
    columns = right.shape[1] if right.type.shape[1] is None else right.type.shape[1]
    table = of_left(right.reshape((n_left, n_right * columns)))
    table = table.reshape((n_left, n_right, columns)).transpose(1, 0, 2)
    table = of_right(table.reshape((n_right, n_left * columns)))
    table = table.reshape((n_right, n_left, columns)).transpose(1, 0, 2)
    return table.reshape((n_left * n_right, columns))


def _decomposed(matrix: Any) -> tuple[Any, Any]:
    """Return eigenvalues, NaN where the matrix is not finite, and eigenvectors.

    There, an eigendecomposition raises an exception; the factorizations that it replaces do not.
    """
    is_finite = pt.isfinite(matrix).all()
    values, vectors = _eigh(pt.switch(is_finite, matrix, np.asarray(0, matrix.type.dtype)))
    nothing = np.asarray(np.nan, matrix.type.dtype)
    return pt.switch(is_finite, values, nothing), vectors


def _inverse(matrix: Any) -> Any:
    """Return an inverse; that of a transpose is made from that of the matrix."""
    inner = transpose_of(matrix)
    return inverse_by_form(matrix) if inner is None else inverse_by_form(inner).T
