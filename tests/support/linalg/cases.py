"""For each rule of the feature `linalg`, a graph to which it is applied.

Sizes are known or not, and numbers have any type: a rule may leave graphs of the wrong type or of
unknown sizes alone, but must not change their results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.tensor.linalg import (
    block_diag,
    cho_solve,
    cholesky,
    det,
    inv,
    kron,
    slogdet,
    solve,
    solve_triangular,
)

from pytensor_fuse.linalg import structured
from support.linalg.rules import positive_definite

if TYPE_CHECKING:
    from collections.abc import Callable

# The size of the factors of Kronecker products, for which the rule for a multiple of the identity
# pays.
FACTOR = 5
N = FACTOR**2
RANK = 3


class Given(NamedTuple):
    """The parts of the graphs.

    Attributes
    ----------
    a, b
        Square matrices.
    left, right
        Square matrices whose Kronecker product is as large as the others.
    u, v, y
        Vectors.
    thin
        A matrix with few columns.
    number
        A number.
    """

    a: Any
    b: Any
    left: Any
    right: Any
    u: Any
    v: Any
    y: Any
    thin: Any
    number: Any


def given(
    dtype: str = "float64",
    *,
    is_static: bool = True,
    batch: tuple[int, ...] = (),
    factor: int = FACTOR,
) -> Given:
    """Return inputs; the square matrices may be batches."""
    n = factor**2

    def make(name: str, *shape: int) -> Any:
        return pt.tensor(name, shape=shape if is_static else (None,) * len(shape), dtype=dtype)

    return Given(
        *(make(name, *batch, n, n) for name in "ab"),
        *(make(name, factor, factor) for name in ("left", "right")),
        *(make(name, n) for name in "uvy"),
        make("thin", n, RANK),
        make("number"),
    )


def values_of(
    dtype: str = "float64", n: int = N, *, batch: tuple[int, ...] = (), seed: int = 0
) -> Given:
    """Return values for the inputs: the first matrix is positive definite."""
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> Any:
        drawn = rng.normal(size=shape)
        if dtype.startswith("complex"):
            drawn = drawn + 1j * rng.normal(size=shape)
        # Integers have more than one digit, so that the matrices are invertible.
        return np.asarray(10 * drawn if dtype.startswith("int") else drawn).astype(dtype)

    definite = positive_definite(n) * (100 if dtype.startswith("int") else 1)
    return Given(
        np.broadcast_to(definite, (*batch, n, n)).astype(dtype),
        draw(*batch, n, n) + (2 * np.eye(n)).astype(dtype),
        draw(FACTOR, FACTOR) + (2 * np.eye(FACTOR)).astype(dtype),
        draw(FACTOR, FACTOR) + (2 * np.eye(FACTOR)).astype(dtype),
        *(draw(n) for _ in range(3)),
        draw(n, RANK),
        np.asarray(0.3 if dtype.startswith("float") else 1).astype(dtype),
    )


def _identity(g: Given) -> Any:
    rows = g.u.type.shape[0]
    return pt.eye(g.u.shape[0] if rows is None else rows, dtype=g.u.type.dtype)


def _definite(g: Given) -> Any:
    return g.b @ g.b.mT + pt.exp(g.number) * _identity(g)


def _low_rank(g: Given) -> Any:
    return pt.diag(pt.exp(g.u)) + g.thin @ g.thin.T


def _shifted(g: Given) -> Any:
    left = g.left.type.shape[0] or FACTOR
    identity = pt.eye(left**2, dtype=g.u.type.dtype)
    return kron(g.left @ g.left.T, g.right @ g.right.T) + pt.exp(g.number) * identity


def _blocks(g: Given) -> Any:
    return block_diag(*[g.left] * (g.left.type.shape[0] or FACTOR))


def _tridiagonal(g: Given) -> Any:
    return pt.diag(g.u + 4) + pt.diag(g.v[1:], 1) + pt.diag(g.y[1:], -1)


def _banded(g: Given) -> Any:
    return pt.diag(g.u + 4) + pt.diag(g.v[2:], 2) + pt.diag(g.y[1:], -1)


def _toeplitz(g: Given) -> Any:
    """Return the covariance of points on a line, which are closer for a smaller number."""
    n = g.u.type.shape[0]
    places = pt.arange(g.u.shape[0] if n is None else n)
    row = pt.exp(-places * pt.exp(g.number)).astype(g.u.type.dtype)
    covariance = row[pt.abs(places[:, None] - places[None, :])]
    return structured(covariance, toeplitz=True, positive_definite=True)


def _rows(g: Given) -> Any:
    """Return a function of the solutions with a factor for each row of data."""
    solve_rows: Any = solve_triangular
    white = solve_rows(cholesky(g.a), g.thin.T, lower=True, b_ndim=1)
    return (white**2).sum()


def _density(factor: Any, g: Given) -> Any:
    white = solve_triangular(factor, g.y, lower=True)
    return -0.5 * (white**2).sum() - pt.log(pt.diagonal(factor, axis1=-2, axis2=-1)).sum()


def _kernel(g: Given) -> Any:
    squares = (g.thin**2).sum(axis=1)
    distances = squares[:, None] + squares[None, :] - 2 * g.thin @ g.thin.T
    return pt.exp(-distances / g.number**2) + 0.5 * _identity(g)


def _gradient(cost: Any, by: Any) -> Any:
    # Complex numbers have no gradient here.
    return pytensor.grad(cost, by) if by.type.numpy_dtype.kind == "f" else cost


CASES: dict[str, Callable[[Given], list[Any]]] = {
    "gradient_of_log_determinant": lambda g: [_gradient(slogdet(g.a)[1], g.a)],
    "work_on_definite_matrix": lambda g: [solve(_definite(g), g.y), inv(_definite(g))],
    "undone_inverse": lambda g: [inv(inv(g.b)), solve(inv(g.b), g.y), det(inv(g.a))],
    "kronecker_determinant": lambda g: list(slogdet(kron(g.left, g.right))),
    "product_with_structured_sum": lambda g: [inv(_low_rank(g)) @ g.thin],
    "diagonal_of_structured_sum": lambda g: [pt.diagonal(inv(_low_rank(g)))],
    "sum_of_structured_product": lambda g: [(inv(_low_rank(g)) * _identity(g)).sum()],
    "woodbury_solve": lambda g: [solve(_low_rank(g), g.y)],
    "woodbury_inverse": lambda g: [inv(_low_rank(g))],
    "determinant_lemma": lambda g: list(slogdet(_low_rank(g))),
    "kronecker_solve": lambda g: [solve(kron(g.left, g.right), g.y)],
    "kronecker_times_matrix": lambda g: [
        kron(g.left, g.right) @ g.y,
        kron(g.left, g.right) @ g.thin,
    ],
    "kronecker_inverse": lambda g: [inv(_shifted(g))],
    "kronecker_gradient": lambda g: [
        _gradient(
            slogdet(kron(g.left, g.right))[1] + g.y @ solve(kron(g.left, g.right), g.y), g.left
        )
    ],
    "block_of_gradient": lambda g: [_gradient(slogdet(_blocks(g))[1], g.left)],
    "product_with_block_diagonal_inverse": lambda g: [inv(_blocks(g)) @ g.thin],
    "block_diagonal_inverse": lambda g: [inv(_blocks(g))],
    "block_diagonal_determinant": lambda g: [slogdet(_blocks(g))[1]],
    "block_diagonal_solve": lambda g: [solve(_blocks(g), g.y)],
    "diagonal_of_gradient": lambda g: [
        _gradient(g.thin[:, 0] @ solve(_tridiagonal(g), g.thin[:, 0]), g.u)
    ],
    "gradient_of_diagonal_matrix": lambda g: [
        _gradient(_density(cholesky(g.a + pt.diag(g.v**2)), g), g.v)
    ],
    "product_with_tridiagonal_inverse": lambda g: [inv(_tridiagonal(g)) @ g.thin],
    "tridiagonal_inverse": lambda g: [inv(_tridiagonal(g))],
    "tridiagonal_determinant": lambda g: list(slogdet(_tridiagonal(g))),
    "tridiagonal_solve": lambda g: [solve(_tridiagonal(g), g.y)],
    "product_with_banded_inverse": lambda g: [inv(_banded(g)) @ g.thin],
    "banded_inverse": lambda g: [inv(_banded(g))],
    "banded_determinant": lambda g: list(slogdet(_banded(g))),
    "banded_solve": lambda g: [solve(_banded(g), g.y)],
    "upper_cholesky": lambda g: [cholesky(g.a, lower=False)],
    "upper_cholesky_solve": lambda g: [cho_solve((pt.triu(g.b), False), g.y)],
    "cholesky_of_triangular_product": lambda g: [cholesky(pt.tril(g.b) @ pt.tril(g.b).mT)],
    "product_that_cancels_inverse": lambda g: [
        pt.tril(inv(pt.tril(g.b) @ pt.tril(g.b).mT) @ pt.tril(g.b))
    ],
    "product_with_triangular_inverse": lambda g: [inv(pt.tril(g.b)) @ g.thin],
    "diagonal_of_triangular_inverse": lambda g: [pt.triu(inv(pt.tril(g.b)))],
    "triangular_inverse": lambda g: [inv(pt.tril(g.b))],
    "triangular_determinant": lambda g: list(slogdet(pt.tril(g.b))),
    "triangular_solve": lambda g: [solve(pt.tril(g.b), g.y)],
    "work_on_toeplitz_matrix": lambda g: [solve(_toeplitz(g), g.y), slogdet(_toeplitz(g))[1]],
    "work_on_multiple": lambda g: [solve(3 * g.a, g.y), det(g.a)],
    "determinant_of_factorized_matrix": lambda g: [solve(g.a, g.y), det(g.a)],
    "sum_of_outer_products": lambda g: [_gradient(_rows(g), g.a)],
    "note_why_unserved": lambda g: [solve(kron(g.left, g.right) + pt.diag(pt.exp(g.u)), g.y)],
    "shifted_kronecker_solve": lambda g: [solve(_shifted(g), g.y)],
    "shifted_kronecker_determinant": lambda g: list(slogdet(_shifted(g))),
    "solve_of_outer_product": lambda g: [solve(g.a, pt.outer(g.u, g.v))],
    "solve_of_thin_product": lambda g: [solve(g.a, g.thin @ (2 * g.thin).T)],
    "cholesky_gradient": lambda g: [_gradient(_density(cholesky(g.a), g), g.a)],
    "product_with_outer_product": lambda g: [g.a @ pt.outer(g.u, g.v), pt.outer(g.u, g.v) @ g.b],
    "quadratic_forms_from_half_solve": lambda g: [
        pt.diagonal(g.thin.T @ cho_solve((cholesky(g.a), True), g.thin)),
        cho_solve((cholesky(g.a), True), g.thin).T @ g.y,
    ],
    "diagonal_of_product": lambda g: [pt.diagonal(g.a @ g.b)],
    "inverse_from_cholesky": lambda g: [cho_solve((cholesky(g.a), True), _identity(g))],
    "inverse_of_factorized_matrix": lambda g: [inv(g.a), det(g.a)],
    "triangle_of_symmetric_matrix": lambda g: [_gradient(_density(cholesky(g.a), g), g.a)],
    "sum_of_diagonal_matrix": lambda g: [(g.a * _identity(g)).sum(), (g.a * pt.diag(g.u)).sum()],
    "solve_from_forward_solve": lambda g: [
        solve_triangular(cholesky(g.a), g.y, lower=True),
        cho_solve((cholesky(g.a), True), g.y),
    ],
    "diagonal_added_in_place": lambda g: [pt.exp(g.a) + g.number * _identity(g)],
}

# Rules that need known sizes.
OF_KNOWN_SIZES = frozenset(
    {
        "kronecker_determinant",
        "product_with_structured_sum",
        "diagonal_of_structured_sum",
        "sum_of_structured_product",
        "woodbury_solve",
        "woodbury_inverse",
        "determinant_lemma",
        "kronecker_solve",
        "kronecker_times_matrix",
        "kronecker_inverse",
        "kronecker_gradient",
        "block_of_gradient",
        "product_with_block_diagonal_inverse",
        "block_diagonal_inverse",
        "block_diagonal_determinant",
        "block_diagonal_solve",
        "cholesky_of_triangular_product",
        "product_that_cancels_inverse",
        "note_why_unserved",
        "shifted_kronecker_solve",
        "shifted_kronecker_determinant",
        "solve_of_thin_product",
    }
)
# Rules that apply to an identity only if it is not a constant.
OF_UNKNOWN_SIZES = frozenset({"diagonal_added_in_place"})
# Rules that change nothing.
OF_NOTES = frozenset({"note_why_unserved"})
