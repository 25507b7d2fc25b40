"""The error of each rule against extended precision.

It is at most 10 times that of the stable form as a numerical analyst writes it, and of what stock
PyTensor computes, whichever is less; or some units in the last place.
"""

from functools import cache

import numpy as np
import pytest
import scipy.linalg

from _linalg.by_hand import (
    Row,
    banded,
    blocks,
    by_diagonal,
    by_eigenvectors,
    cho,
    cholesky,
    definite,
    density_gradient,
    density_gradient_by_hand,
    exact,
    extended_log_kronecker,
    extended_solve,
    forward,
    getri,
    inverse,
    kronecker_gradient,
    kronecker_solved,
    low_rank,
    lower_gradient,
    lu,
    potri,
    rows_gradient,
    shifted,
    shifted_by_hand,
    shifted_inverse_by_hand,
    toeplitz,
    tridiagonal,
    values_of,
    with_diagonal,
    with_positive_diagonal,
    woodbury,
)
from pytensor_fuse._activation.passes.linalg.table import _RULES
from support import extended
from support.effort import IS_DEEP
from support.extended import exponential, log_determinant
from support.linalg.cases import CASES, FACTOR, OF_KNOWN_SIZES, given
from support.linalg.rules import PYTHON, compile_both

EXACT = PYTHON.excluding("inplace", "fusion", "linalg_work_on_definite_matrix")
WITH_DEFINITE = PYTHON.excluding("inplace", "fusion")

CONDITIONS = [10.0**e for e in range(2, 13, 2)] if IS_DEEP else [1e2, 1e7, 1e12]
# Those that are made of two factors are squares.
SIZES = [5, 20, 50, 100, 200] if IS_DEEP else [5, 20]
FACTORS = [FACTOR, 7, 10, 14] if IS_DEEP else [FACTOR]


exp = np.exp
ROWS = {
    "gradient_of_log_determinant": Row(lambda g: [inverse(g.a).T], lambda g: [getri(g.a).T]),
    "work_on_definite_matrix": Row(
        lambda g: [inverse(definite(g, exponential)) @ g.y, inverse(definite(g, exponential))],
        lambda g: [cho(definite(g, exp), g.y), potri(definite(g, exp))],
    ),
    "upper_cholesky": Row(lambda g: [cholesky(g.a).T], lambda g: [np.linalg.cholesky(g.a).T]),
    "upper_cholesky_solve": Row(
        lambda g: [extended_solve(np.triu(g.b), extended_solve(np.triu(g.b).T, g.y))],
        lambda g: [scipy.linalg.cho_solve((np.triu(g.b), False), g.y)],
    ),
    "cholesky_of_triangular_product": Row(
        lambda g: [with_positive_diagonal(np.tril(g.b))],
        lambda g: [with_positive_diagonal(np.tril(g.b))],
    ),
    "product_that_cancels_inverse": Row(
        lambda g: [np.diag(1 / np.diagonal(g.b))], lambda g: [np.diag(1 / np.diagonal(g.b))]
    ),
    "product_with_triangular_inverse": Row(
        lambda g: [extended_solve(np.tril(g.b), g.thin)],
        lambda g: [scipy.linalg.solve_triangular(np.tril(g.b), g.thin, lower=True)],
    ),
    "diagonal_of_triangular_inverse": Row(
        lambda g: [np.diag(1 / np.diagonal(g.b))], lambda g: [np.diag(1 / np.diagonal(g.b))]
    ),
    "triangular_inverse": Row(
        lambda g: [inverse(np.tril(g.b))],
        lambda g: [scipy.linalg.solve_triangular(np.tril(g.b), np.eye(len(g.b)), lower=True)],
    ),
    "triangular_determinant": Row(
        lambda g: [
            np.sign(np.diagonal(g.b).astype(float)).prod(),
            log_determinant(np.tril(g.b)),
        ],
        lambda g: list(np.linalg.slogdet(np.tril(g.b))),
    ),
    "triangular_solve": Row(
        lambda g: [extended_solve(np.tril(g.b), g.y)],
        lambda g: [scipy.linalg.solve_triangular(np.tril(g.b), g.y, lower=True)],
    ),
    "undone_inverse": Row(
        lambda g: [g.b, g.b @ g.y, 1 / exponential(log_determinant(g.a))],
        lambda g: [g.b, g.b @ g.y, 1 / np.linalg.det(g.a)],
    ),
    "kronecker_determinant": Row(
        extended_log_kronecker,
        lambda g: [
            np.linalg.slogdet(g.left)[0] ** len(g.right)
            * np.linalg.slogdet(g.right)[0] ** len(g.left),
            len(g.right) * np.linalg.slogdet(g.left)[1]
            + len(g.left) * np.linalg.slogdet(g.right)[1],
        ],
    ),
    "product_with_structured_sum": Row(
        lambda g: [inverse(low_rank(g, exponential)) @ g.thin],
        lambda g: [woodbury(g)[0](g.thin)],
    ),
    "diagonal_of_structured_sum": Row(
        lambda g: [np.diagonal(inverse(low_rank(g, exponential)))],
        lambda g: [np.diagonal(woodbury(g)[1])],
    ),
    "sum_of_structured_product": Row(
        lambda g: [np.trace(inverse(low_rank(g, exponential)))],
        lambda g: [np.trace(woodbury(g)[1])],
    ),
    "woodbury_solve": Row(
        lambda g: [inverse(low_rank(g, exponential)) @ g.y], lambda g: [woodbury(g)[0](g.y)]
    ),
    "woodbury_inverse": Row(
        lambda g: [inverse(low_rank(g, exponential))], lambda g: [woodbury(g)[1]]
    ),
    "determinant_lemma": Row(
        lambda g: [1, log_determinant(low_rank(g, exponential))], lambda g: [1.0, woodbury(g)[2]]
    ),
    "kronecker_solve": Row(
        lambda g: [kronecker_solved(g, extended_solve)], lambda g: [kronecker_solved(g, lu)]
    ),
    "kronecker_times_matrix": Row(
        lambda g: [np.kron(g.left, g.right) @ one for one in (g.y, g.thin)],
        lambda g: [np.kron(g.left, g.right) @ one for one in (g.y, g.thin)],
    ),
    "kronecker_inverse": Row(
        lambda g: [inverse(shifted(g, exponential))],
        lambda g: [shifted_inverse_by_hand(g)],
    ),
    "kronecker_gradient": Row(
        lambda g: [kronecker_gradient(g, inverse)], lambda g: [kronecker_gradient(g, getri)]
    ),
    "block_of_gradient": Row(
        lambda g: [len(g.left) * inverse(g.left).T], lambda g: [len(g.left) * getri(g.left).T]
    ),
    "product_with_block_diagonal_inverse": Row(
        lambda g: [blocks(extended_solve, g.left, g.thin)], lambda g: [blocks(lu, g.left, g.thin)]
    ),
    "block_diagonal_inverse": Row(
        lambda g: [np.kron(np.eye(len(g.left)), inverse(g.left))],
        lambda g: [np.kron(np.eye(len(g.left)), getri(g.left))],
    ),
    "block_diagonal_determinant": Row(
        lambda g: [len(g.left) * log_determinant(g.left)],
        lambda g: [len(g.left) * np.linalg.slogdet(g.left)[1]],
    ),
    "block_diagonal_solve": Row(
        lambda g: [blocks(extended_solve, g.left, g.y)], lambda g: [blocks(lu, g.left, g.y)]
    ),
    "diagonal_of_gradient": Row(
        lambda g: [by_diagonal(g, extended_solve)], lambda g: [by_diagonal(g, lu)]
    ),
    "gradient_of_diagonal_matrix": Row(
        lambda g: [2 * g.v * np.diagonal(density_gradient(with_diagonal(g), g.y))],
        lambda g: [2 * g.v * np.diagonal(density_gradient_by_hand(with_diagonal(g), g.y))],
    ),
    "product_with_tridiagonal_inverse": Row(
        lambda g: [extended_solve(tridiagonal(g), g.thin)], lambda g: [lu(tridiagonal(g), g.thin)]
    ),
    "tridiagonal_inverse": Row(
        lambda g: [inverse(tridiagonal(g))], lambda g: [getri(tridiagonal(g))]
    ),
    "tridiagonal_determinant": Row(
        lambda g: [
            np.linalg.slogdet(tridiagonal(g).astype(float))[0],
            log_determinant(tridiagonal(g)),
        ],
        lambda g: list(np.linalg.slogdet(tridiagonal(g))),
    ),
    "tridiagonal_solve": Row(
        lambda g: [extended_solve(tridiagonal(g), g.y)], lambda g: [lu(tridiagonal(g), g.y)]
    ),
    "product_with_banded_inverse": Row(
        lambda g: [extended_solve(banded(g), g.thin)], lambda g: [lu(banded(g), g.thin)]
    ),
    "banded_inverse": Row(lambda g: [inverse(banded(g))], lambda g: [getri(banded(g))]),
    "banded_determinant": Row(
        lambda g: [
            np.linalg.slogdet(banded(g).astype(float))[0],
            log_determinant(banded(g)),
        ],
        lambda g: list(np.linalg.slogdet(banded(g))),
    ),
    "banded_solve": Row(lambda g: [extended_solve(banded(g), g.y)], lambda g: [lu(banded(g), g.y)]),
    "work_on_toeplitz_matrix": Row(
        lambda g: [
            extended_solve(toeplitz(g, exponential), g.y),
            log_determinant(toeplitz(g, exponential)),
        ],
        lambda g: [cho(toeplitz(g, exp), g.y), np.linalg.slogdet(toeplitz(g, exp))[1]],
    ),
    "work_on_multiple": Row(
        lambda g: [extended_solve(3 * g.a, g.y), exponential(log_determinant(g.a))],
        lambda g: [lu(3 * g.a, g.y), np.linalg.det(g.a)],
    ),
    "determinant_of_factorized_matrix": Row(
        lambda g: [extended_solve(g.a, g.y), exponential(log_determinant(g.a))],
        lambda g: [lu(g.a, g.y), np.linalg.det(g.a)],
    ),
    "sum_of_outer_products": Row(
        lambda g: [rows_gradient(extended_solve(g.a, g.thin))],
        lambda g: [rows_gradient(cho(g.a, g.thin))],
    ),
    "note_why_unserved": Row(
        lambda g: [extended_solve(np.kron(g.left, g.right) + np.diag(exponential(g.u)), g.y)],
        lambda g: [lu(np.kron(g.left, g.right) + np.diag(np.exp(g.u)), g.y)],
    ),
    "shifted_kronecker_solve": Row(
        lambda g: [extended_solve(shifted(g, exponential), g.y)], lambda g: [shifted_by_hand(g)]
    ),
    "shifted_kronecker_determinant": Row(
        lambda g: [1, log_determinant(shifted(g, exponential))],
        lambda g: [1.0, np.log(by_eigenvectors(g)[0]).sum()],
    ),
    "solve_of_outer_product": Row(
        lambda g: [np.outer(extended_solve(g.a, g.u), g.v)],
        lambda g: [np.outer(lu(g.a, g.u), g.v)],
    ),
    "solve_of_thin_product": Row(
        lambda g: [extended_solve(g.a, g.thin) @ (2 * g.thin).T],
        lambda g: [lu(g.a, g.thin) @ (2 * g.thin).T],
    ),
    "cholesky_gradient": Row(
        lambda g: [lower_gradient(density_gradient(g.a, g.y))],
        lambda g: [lower_gradient(density_gradient_by_hand(g.a, g.y))],
    ),
    "product_with_outer_product": Row(
        lambda g: [np.outer(g.a @ g.u, g.v), np.outer(g.u, g.v @ g.b)],
        lambda g: [np.outer(g.a @ g.u, g.v), np.outer(g.u, g.v @ g.b)],
    ),
    "quadratic_forms_from_half_solve": Row(
        lambda g: [
            (g.thin * extended_solve(g.a, g.thin)).sum(axis=0),
            g.thin.T @ extended_solve(g.a, g.y),
        ],
        lambda g: [np.einsum("ij,ij->j", g.thin, cho(g.a, g.thin)), g.thin.T @ cho(g.a, g.y)],
    ),
    "diagonal_of_product": Row(
        lambda g: [(g.a * g.b.T).sum(axis=1)], lambda g: [np.einsum("ij,ji->i", g.a, g.b)]
    ),
    "inverse_from_cholesky": Row(lambda g: [inverse(g.a)], lambda g: [potri(g.a)]),
    "inverse_of_factorized_matrix": Row(
        lambda g: [inverse(g.a), exponential(log_determinant(g.a))],
        lambda g: [getri(g.a), np.linalg.det(g.a)],
    ),
    "triangle_of_symmetric_matrix": Row(
        lambda g: [lower_gradient(density_gradient(g.a, g.y))],
        lambda g: [lower_gradient(density_gradient_by_hand(g.a, g.y))],
    ),
    "sum_of_diagonal_matrix": Row(
        lambda g: [np.trace(g.a), np.diagonal(g.a) @ g.u],
        lambda g: [np.trace(g.a), np.diagonal(g.a) @ g.u],
    ),
    "solve_from_forward_solve": Row(
        lambda g: [forward(g.a, g.y), extended_solve(g.a, g.y)],
        lambda g: [
            scipy.linalg.solve_triangular(np.linalg.cholesky(g.a), g.y, lower=True),
            cho(g.a, g.y),
        ],
    ),
    "diagonal_added_in_place": Row(
        lambda g: [exponential(g.a) + g.number * np.eye(len(g.a))],
        lambda g: [np.exp(g.a) + g.number * np.eye(len(g.a))],
    ),
}


def test_each_rule_has_a_row():
    assert sorted({rule.rule for _, rule in _RULES}) == sorted(ROWS)


@cache
def compiled(rule, factor):
    """Return the function of a case and stock's, for one size that is known, or for any."""
    inputs = given() if factor is None else given(factor=factor)
    inputs = given(is_static=False) if factor is None else inputs
    mode = WITH_DEFINITE if rule == "work_on_definite_matrix" else EXACT
    return compile_both(list(inputs), CASES[rule](inputs), mode)


def errors(found, wanted):
    return [extended.error(np.asarray(a), b) for a, b in zip(found, wanted, strict=True)]


def sizes(rule):
    """Return which sizes a case is run for, and what makes them up if they are to be known."""
    if rule in OF_KNOWN_SIZES:
        return [(factor**2, factor) for factor in FACTORS]
    return [(n, None) for n in SIZES]


@pytest.mark.parametrize(
    ("rule", "n", "factor"), [(rule, *size) for rule in ROWS for size in sizes(rule)]
)
def test_error(rule, n, factor):
    ours, stock = compiled(rule, factor)
    for condition in CONDITIONS:
        found = []
        # What one small matrix happens to round to says little.
        for seed in range(1 if n > 50 else max(2, 30 // n)):
            values = values_of(n, condition, seed)
            wanted = ROWS[rule].exact(exact(values))
            results = ours(*values), stock(*values), ROWS[rule].by_hand(values)
            found.append([errors(one, wanted) for one in results])
        mine, theirs, hand = np.max(found, axis=0)
        bound = 10 * np.maximum(np.minimum(theirs, hand), max(4e-15, n * 2e-17))
        assert (mine <= bound).all(), (condition, mine, theirs, hand)
