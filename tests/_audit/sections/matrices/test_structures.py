"""What is said of matrices whose structure is used, and why that of others is not."""

from __future__ import annotations

from inspect import signature

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.assumptions import assume
from pytensor.tensor.linalg import (
    block_diag,
    cho_solve,
    cholesky,
    inv,
    kron,
    slogdet,
    solve,
    solve_triangular,
)

from pytensor_fuse import explain
from pytensor_fuse._activation.passes.linalg.table import _RULES
from pytensor_fuse._audit.sections.matrices.explain import STRUCTURE_RULES
from pytensor_fuse.linalg import structured
from pytensor_fuse.reports import LinalgReason
from support.linalg.rules import PYTHON
from support.switching import switched

N = 30
A, B = pt.dmatrix("A", shape=(6, 6)), pt.dmatrix("B", shape=(5, 5))
S, T = A @ A.T, B @ B.T
U = pt.dmatrix("U", shape=(N, 2))
Y = pt.dvector("y", shape=(N,))
TABLE = pt.dmatrix("table", shape=(N, 3))
WHOLE, OTHER = pt.dmatrix("whole", shape=(N, N)), pt.dmatrix("other", shape=(N, N))
LETTERS, VECTOR = pt.dmatrix("letters"), pt.dvector("vector")
C = pt.dscalar("c")
INPUTS = [A, B, U, Y, TABLE, WHOLE, OTHER, LETTERS, VECTOR, C]

KRON = kron(A, B)
SHIFTED = kron(S, T) + C * pt.eye(N)
UPDATE = pt.exp(C) * pt.eye(N) + U @ U.T
SPREAD = pt.diag(pt.exp(Y)) + U @ U.T
SQUARES = (LETTERS**2).sum(axis=1)
DISTANCES = SQUARES[:, None] + SQUARES - 2 * LETTERS @ LETTERS.T
PROCESS = pt.exp(-0.5 * DISTANCES / C**2) + C**2 * pt.eye(LETTERS.shape[0])
BLOCKS = block_diag(A, B)
LOWER, ABOVE = pt.tril(WHOLE), pt.triu(OTHER)
BANDED = pt.diag(Y) + pt.diag(VECTOR, 1) + pt.diag(VECTOR, -1)
WIDER = pt.diag(Y) + pt.diag(VECTOR, 2) + pt.diag(VECTOR, -1)
DEFINITE = LETTERS @ LETTERS.T + pt.eye(LETTERS.shape[0])
TOEPLITZ = structured(OTHER, toeplitz=True, positive_definite=True)


@pytest.fixture(autouse=True)
def linalg_on():
    with switched(linalg=True):
        yield


def reports_on(*outputs, mode=PYTHON):
    f = pytensor.function(INPUTS, list(outputs), mode=mode, on_unused_input="ignore")
    return explain(f, "linalg")


def density(matrix, y=Y):
    return -0.5 * (y @ solve(matrix, y) + slogdet(matrix)[1])


def by_factor(matrix):
    factor = cholesky(matrix)
    white = solve_triangular(factor, VECTOR, lower=True)
    return -0.5 * (white @ white) - pt.log(pt.diagonal(factor)).sum()


def forward_and_whole(matrix):
    factor = cholesky(matrix)
    return [solve_triangular(factor, Y, lower=True), cho_solve((factor, True), Y, b_ndim=1)]


def with_gradient(value, *wrt):
    return [value, *pytensor.grad(value, wrt)]


def of_rows(matrix):
    white = solve_triangular(cholesky(matrix), TABLE.T, lower=True, b_ndim=1)
    return (white**2).sum()


# Outputs of a graph, to which the rules are applied.
EXAMPLES = {
    "gradient_of_log_determinant": lambda: with_gradient(slogdet(WHOLE)[1], WHOLE),
    "work_on_multiple": lambda: [solve(3 * WHOLE, Y), slogdet(WHOLE)[1]],
    "block_of_gradient": lambda: with_gradient(density(BLOCKS, VECTOR), A),
    "product_with_block_diagonal_inverse": lambda: [inv(BLOCKS) @ LETTERS],
    "block_diagonal_inverse": lambda: [inv(BLOCKS)],
    "block_diagonal_determinant": lambda: [slogdet(BLOCKS)[1]],
    "block_diagonal_solve": lambda: [solve(BLOCKS, VECTOR)],
    "product_with_tridiagonal_inverse": lambda: [inv(BANDED) @ U],
    "tridiagonal_inverse": lambda: [inv(BANDED)],
    "tridiagonal_determinant": lambda: [slogdet(BANDED)[1]],
    "tridiagonal_solve": lambda: [solve(BANDED, Y)],
    "product_with_banded_inverse": lambda: [inv(WIDER) @ U],
    "banded_inverse": lambda: [inv(WIDER)],
    "banded_determinant": lambda: [slogdet(WIDER)[1]],
    "banded_solve": lambda: [solve(WIDER, Y)],
    "diagonal_of_gradient": lambda: with_gradient(density(BANDED), Y),
    "gradient_of_diagonal_matrix": lambda: with_gradient(by_factor(LETTERS + pt.diag(Y)), Y),
    "work_on_definite_matrix": lambda: [density(DEFINITE, VECTOR)],
    "kronecker_determinant": lambda: [slogdet(KRON)[1]],
    "product_with_structured_sum": lambda: with_gradient(density(UPDATE), U),
    "diagonal_of_structured_sum": lambda: [pt.diagonal(inv(SPREAD))],
    "sum_of_structured_product": lambda: with_gradient(density(UPDATE), C),
    "woodbury_solve": lambda: [solve(UPDATE, Y)],
    "woodbury_inverse": lambda: [inv(UPDATE)],
    "determinant_lemma": lambda: [slogdet(UPDATE)[1]],
    "work_on_toeplitz_matrix": lambda: [density(TOEPLITZ)],
    "kronecker_gradient": lambda: with_gradient(density(KRON), A),
    "kronecker_solve": lambda: [solve(KRON, Y)],
    "kronecker_times_matrix": lambda: [KRON @ Y],
    "kronecker_inverse": lambda: [inv(SHIFTED)],
    "shifted_kronecker_solve": lambda: [solve(SHIFTED, Y)],
    "shifted_kronecker_determinant": lambda: [slogdet(SHIFTED)[1]],
    "sum_of_outer_products": lambda: with_gradient(of_rows(WHOLE), WHOLE),
    "solve_of_outer_product": lambda: with_gradient(VECTOR @ inv(LETTERS) @ VECTOR, LETTERS),
    "solve_of_thin_product": lambda: [solve(WHOLE, U @ U.T)],
    "cholesky_gradient": lambda: with_gradient(by_factor(LETTERS), LETTERS),
    "product_with_outer_product": lambda: [cholesky(WHOLE) @ pt.outer(Y, Y)],
    "quadratic_forms_from_half_solve": lambda: [
        pt.diagonal(OTHER.T @ cho_solve((cholesky(WHOLE), True), OTHER))
    ],
    "diagonal_of_product": lambda: [pt.diagonal(cholesky(WHOLE) @ OTHER)],
    "inverse_from_cholesky": lambda: with_gradient(by_factor(LETTERS), LETTERS),
    "inverse_of_factorized_matrix": lambda: [inv(WHOLE), slogdet(WHOLE)[1]],
    "determinant_of_factorized_matrix": lambda: [solve(WHOLE, Y), slogdet(WHOLE)[1]],
    "triangle_of_symmetric_matrix": lambda: with_gradient(by_factor(PROCESS), LETTERS),
    "sum_of_diagonal_matrix": lambda: with_gradient(by_factor(PROCESS), C),
    "solve_from_forward_solve": lambda: forward_and_whole(WHOLE),
    "diagonal_added_in_place": lambda: with_gradient(by_factor(PROCESS), C),
    "upper_cholesky": lambda: [cholesky(WHOLE, lower=False)],
    "upper_cholesky_solve": lambda: [cho_solve((cholesky(WHOLE, lower=False), False), Y)],
    "undone_inverse": lambda: [slogdet(inv(WHOLE))[1]],
    "triangular_solve": lambda: [solve(LOWER @ ABOVE, Y)],
    "triangular_determinant": lambda: [slogdet(LOWER @ LOWER.T)[1]],
    "triangular_inverse": lambda: [inv(LOWER)],
    "product_with_triangular_inverse": lambda: [inv(LOWER) @ OTHER],
    "cholesky_of_triangular_product": lambda: [cholesky(LOWER @ LOWER.T)],
    "product_that_cancels_inverse": lambda: with_gradient(slogdet(LOWER @ LOWER.T)[1], WHOLE),
    "diagonal_of_triangular_inverse": lambda: with_gradient(slogdet(LOWER)[1], WHOLE),
}

RULES = list(dict.fromkeys(r.rule for _, r in _RULES if r.rule != "note_why_unserved"))


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_that_is_applied_is_reported(rule):
    rules = {one for report in reports_on(*EXAMPLES[rule]()) for one in report.rules}
    assert f"linalg_{rule}" in rules


def test_the_matrix_of_a_cancelled_inverse_is_the_inverted_one():
    reports = reports_on(*EXAMPLES["product_that_cancels_inverse"]())
    [report] = [one for one in reports if "linalg_product_that_cancels_inverse" in one.rules]
    assert report.matrix == "Dot"


def test_rules_of_structure_are_in_the_table():
    assert {f"linalg_{rule}" for rule in RULES} >= STRUCTURE_RULES


def test_a_matrix_that_is_not_made_any_more():
    reports = reports_on(density(KRON))
    [whole] = [one for one in reports if one.rows == N]
    assert whole.matrix == "KroneckerProduct"
    assert set(whole.rules) == {"linalg_kronecker_determinant", "linalg_kronecker_solve"}
    assert (whole.uses, whole.factorizations, whole.not_shared) == ((), (), ())
    assert whole.line.file == __file__
    assert {one.matrix for one in reports} == {"A", "B", "KroneckerProduct"}
    assert str(whole).splitlines()[1:] == [
        "  operations: 0",
        "  rules: linalg_kronecker_determinant, linalg_kronecker_solve",
    ]


@pytest.mark.parametrize(("kind", "matrix"), [("tridiagonal", BANDED), ("banded", WIDER)])
def test_a_matrix_of_diagonals_is_not_made_any_more(kind, matrix):
    [report] = reports_on(*with_gradient(density(matrix), Y, VECTOR))
    assert (report.rows, report.uses, report.not_shared) == (N, (), ())
    assert report.line.file == __file__
    assert set(report.rules) == {
        "linalg_gradient_of_log_determinant",
        f"linalg_{kind}_inverse",
        f"linalg_{kind}_determinant",
        f"linalg_{kind}_solve",
        "linalg_diagonal_of_gradient",
    }


@pytest.mark.skipif(
    "tridiagonal" not in signature(assume).parameters, reason="PyTensor 3.0 cannot be told"
)
def test_a_matrix_that_is_said_to_be_tridiagonal():
    [report] = reports_on(solve(assume(WHOLE, tridiagonal=True), Y))
    assert (report.matrix, report.rules) == ("whole", ("linalg_tridiagonal_solve",))


def test_blocks_take_the_place_of_their_matrix():
    reports = reports_on(solve(BLOCKS, VECTOR))
    assert {one.matrix: len(one.uses) for one in reports} == {"A": 1, "B": 1, "BlockDiagonal": 0}
    assert {one.rules for one in reports} == {("linalg_block_diagonal_solve",)}


@pytest.mark.parametrize("matrix", [UPDATE, BANDED, BLOCKS])
def test_the_other_factor_of_a_product_is_not_replaced(matrix):
    other = LETTERS if matrix is BLOCKS else U
    left_out = {report.matrix for report in reports_on(inv(matrix) @ other, other.T @ inv(matrix))}
    assert left_out
    assert other.name not in left_out


@pytest.mark.parametrize("number", [3.0, pt.exp(C)])
def test_what_is_done_on_a_matrix_instead_of_its_multiple(number):
    turned = WHOLE.T
    [report] = reports_on(solve(number * turned, Y), inv(-WHOLE) @ VECTOR, slogdet(WHOLE)[1])
    assert report.matrix == "whole"
    assert "linalg_work_on_multiple" in report.rules


WIDE, HIGH = pt.dmatrix("wide", shape=(2, 6)), pt.dmatrix("high", shape=(15, 5))
SMALL = pt.dmatrix("small", shape=(2, 2))
FREE = pt.dmatrix("free")
STACK = pt.dmatrix("stack", shape=(4, N))
INPUTS += [WIDE, HIGH, SMALL, FREE, STACK]

LEFT = {
    "letters": (lambda: density(kron(FREE, B), VECTOR), "SIZES_NOT_STATIC"),
    "not square": (
        lambda: density(kron(WIDE, HIGH) + pt.eye(N), Y),
        "FACTORS_NOT_SQUARE",
    ),
    "not symmetric": (lambda: density(KRON + C * pt.eye(N)), "FACTORS_NOT_SYMMETRIC"),
    "diagonal": (lambda: density(kron(S, T) + pt.diag(Y)), "SHIFT_NOT_A_NUMBER"),
    "small": (
        lambda: density(kron(SMALL @ SMALL.T, SMALL @ SMALL.T) - C * pt.eye(4), Y[:4]),
        "NO_WIN_BY_SHAPES",
    ),
    "batch": (lambda: solve(KRON, STACK[:, None, :, None]), "BATCHED_RIGHT_HAND_SIDES"),
    "factor": (lambda: cholesky(SHIFTED), "FACTOR_ASKED_FOR"),
    "low rank, letters": (
        lambda: density(LETTERS @ LETTERS.T + C**2 * pt.eye(LETTERS.shape[0]), VECTOR),
        "SIZES_NOT_STATIC",
    ),
    "low rank, sign": (lambda: density(pt.diag(Y) + U @ U.T), "DIAGONAL_NOT_POSITIVE"),
    "low rank, half": (
        lambda: density(pt.exp(C) * pt.eye(N) + (WHOLE[:, :20]) @ (WHOLE[:, :20]).T),
        "NO_WIN_BY_SHAPES",
    ),
    "wide band": (
        lambda: density(structured(pt.specify_shape(WHOLE[:20, :20], (20, 20)), banded=(2, 2))),
        "NO_WIN_BY_SHAPES",
    ),
    "low rank, factor": (lambda: cholesky(UPDATE), "FACTOR_ASKED_FOR"),
}


@pytest.mark.parametrize("case", LEFT)
def test_why_a_structure_is_not_used(case):
    make, reason = LEFT[case]
    reports = reports_on(make())
    [(report, left)] = [
        (report, one)
        for report in reports
        for one in report.not_shared
        if one.reason is LinalgReason[reason]
    ]
    assert left.nodes
    assert LinalgReason[reason].value in str(report)


def test_nothing_is_said_of_matrices_without_structure():
    structural = {LinalgReason[reason] for _, reason in LEFT.values()}
    for matrix in (WHOLE, pt.exp(WHOLE) + pt.eye(N), WHOLE @ WHOLE.T + pt.eye(N), WHOLE @ OTHER):
        [report] = reports_on(density(matrix))
        assert structural.isdisjoint(one.reason for one in report.not_shared)


def test_what_is_noted_changes_nothing():
    make, _ = LEFT["not symmetric"]
    mode = PYTHON.excluding("linalg_note_why_unserved")
    values = {A: np.eye(6) * 2, B: np.eye(5), Y: np.ones(N), C: np.array(0.5)}
    results = []
    for one in (PYTHON, mode):
        f = pytensor.function(list(values), make(), mode=one)
        results.append(f(*values.values()))
    assert results[0] == results[1]
