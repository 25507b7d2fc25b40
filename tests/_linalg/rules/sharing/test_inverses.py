"""Inverses come from factorizations that are there."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.assumptions import assume
from pytensor.graph.replace import clone_replace
from pytensor.tensor.linalg import block_diag, cholesky, det, inv, kron, slogdet, solve

from support.linalg.costs import KEEPING, operations
from support.linalg.rules import ORACLE, PYTHON, check, compile_both, positive_definite

N = 6
A = pt.dmatrix("A")
Y = pt.dvector("y")
RNG = np.random.default_rng(11)
VALUES = [positive_definite(N), RNG.normal(size=N)]
GENERAL = [RNG.normal(size=(N, N)), RNG.normal(size=N)]
KNOWN = assume(A, positive_definite=True)


def with_gradient(cost):
    return [cost, *pytensor.grad(cost, [A, Y], disconnected_inputs="ignore")]


def density(matrix, quadratic):
    return -0.5 * (quadratic + slogdet(matrix)[1])


@pytest.mark.parametrize(
    "quadratic",
    [
        Y @ inv(A) @ Y,
        Y @ solve(A, Y),
        Y @ solve(A.T, Y),
        inv(A).T @ Y @ Y + Y @ solve(A, Y),
    ],
)
@pytest.mark.parametrize("values", [VALUES, GENERAL], ids=["symmetric", "general"])
def test_one_lu_factorization(quadratic, values):
    ours, stock = check([A, Y], with_gradient(density(A, quadratic)), values)
    assert ours == {"LUFactor": 1, "LUInverse": 1}
    assert stock["MatrixInverse"] == 1


@pytest.mark.parametrize(
    "quadratic", [Y @ inv(KNOWN) @ Y, Y @ solve(KNOWN, Y), Y @ solve(A, Y, assume_a="pos")]
)
def test_one_cholesky_factorization(quadratic):
    ours, stock = check([A, Y], with_gradient(density(KNOWN, quadratic)), VALUES)
    assert ours == {"Cholesky": 1, "CholeskyInverse": 1}
    assert stock["MatrixInverse"] == 1


@pytest.mark.parametrize(
    "matrix",
    [
        A @ A.T + pt.eye(A.shape[0]),
        pt.diag(Y) + pt.diag(Y[2:], 2),
        pt.diag(Y) + pt.diag(Y[1:], 1),
        block_diag(A, A),
        kron(A, A),
    ],
    ids=["definite", "banded", "tridiagonal", "blocks", "Kronecker"],
)
def test_products_with_zeros_are_left_out(matrix):
    for zeros in (
        pt.zeros((matrix.shape[0], 2)),
        0 * matrix,
        -pt.zeros_like(matrix),
        pt.zeros((matrix.shape[0], 2), dtype="float32").astype("float64"),
        pt.diag(pt.zeros(matrix.shape[0])),
    ):
        for product in inv(matrix) @ zeros, zeros.T @ inv(matrix).T:
            ours, stock = check([A, Y], [product], GENERAL)
            assert not ours
            assert not stock


def test_determinant_and_inverse():
    for outputs in [det(A), inv(A)], [slogdet(A)[1], inv(A).T], [det(A), inv(A.T)]:
        ours, _ = check([A], outputs, GENERAL[:1])
        assert ours == {"LUFactor": 1, "LUInverse": 1}


@pytest.mark.parametrize(
    "outputs",
    [
        [inv(A)],
        [inv(A), pt.exp(A)],
        [inv(A), det(A + 1)],
        # It is not known that the one who wrote this knows of both that they fit.
        [inv(A), cholesky(A)],
    ],
)
def test_inverse_that_stays(outputs):
    ours, stock = check([A], outputs, VALUES[:1])
    assert ours == stock
    assert ours["MatrixInverse"] == 1


def test_factor_of_another_triangle():
    """A matrix that is not symmetric has a Cholesky factor, which is not its own."""
    lopsided = VALUES[0] + np.triu(np.ones((N, N)), 1)
    check([A], [inv(A), cholesky(A)], [lopsided])
    check([A], [inv(A), cholesky(A), det(A.T) + 0 * A.sum()], VALUES[:1])


def test_solve_against_the_identity():
    identity = pt.eye(A.shape[0])
    ours, _ = check([A], [pt.linalg.cho_solve((cholesky(A), True), identity)], VALUES[:1])
    assert ours == {"Cholesky": 1, "CholeskyInverse": 1}
    ours, _ = check(
        [A], [pt.linalg.cho_solve((cholesky(A, lower=False), False), np.eye(N))], VALUES[:1]
    )
    assert ours == {"Cholesky": 1, "CholeskyInverse": 1}
    shifted = pt.eye(A.shape[0], A.shape[0], k=1)
    ours, stock = check([A], [pt.linalg.cho_solve((cholesky(A), True), shifted)], VALUES[:1])
    assert ours == stock


def test_solve_against_part_of_the_identity():
    for part in np.eye(N, 2), np.eye(N)[:, 1:], np.eye(N)[::-1]:
        outputs = [pt.linalg.cho_solve((cholesky(A), True), part)]
        ours, stock = check([A], outputs, VALUES[:1])
        assert ours == stock


def test_factorization_of_the_transpose_alone():
    """It is not that of the matrix, and another would be one more."""
    ours, stock = check([A], [inv(A), pt.linalg.lu_factor(A.T)[0]], GENERAL[:1])
    assert ours == stock
    ours, _ = check([A], [inv(A), pt.linalg.lu_factor(A)[0]], GENERAL[:1])
    assert ours == {"LUFactor": 1, "LUInverse": 1}


@pytest.mark.parametrize(
    ("assumed", "expected"),
    [
        ("gen", {"LUFactor": 1, "LUInverse": 1}),
        ("pos", {"Cholesky": 1, "CholeskyInverse": 1}),
    ],
)
def test_solves_with_solutions(assumed, expected):
    """What one rule replaces together must not come back as the right-hand side of another."""
    for first, second in [(A, A), (A, A.T), (A.T, A)] if assumed == "gen" else [(A, A)]:
        once = solve(second, Y, assume_a=assumed)
        twice = solve(first, once, assume_a=assumed)
        for outputs in [inv(A), twice], [inv(A), once, twice], [inv(A), twice, once]:
            ours, _ = check([A, Y], outputs, VALUES)
            assert ours == expected


def test_solve_with_an_inverse_as_its_right_hand_side():
    outputs = [pt.trace(inv(A) @ (inv(A.T) @ pt.diag(Y)))]
    ours, _ = check([A, Y], outputs, GENERAL)
    assert not ours["MatrixInverse"]
    assert ours["LUInverse"] == 1


def test_each_rule_can_be_excluded():
    outputs = with_gradient(density(A, Y @ inv(A) @ Y))
    # Without the other one PyTensor 3.0, too, has its determinant from the factorization.
    rules = "linalg_inverse_of_factorized_matrix", "linalg_gradient_of_log_determinant"
    mode = PYTHON.excluding(*rules)
    ours, _ = check([A, Y], outputs, VALUES, mode=mode)
    assert ours == {"LUFactor": 1, "MatrixInverse": 1}
    ours, stock = check([A, Y], outputs, VALUES, mode=PYTHON.excluding("linalg"))
    assert ours == stock


def test_against_differences():
    y = pt.constant(VALUES[1])

    def cost(square):
        return clone_replace(density(A, Y @ inv(A) @ Y), {A: square, Y: y})

    pytensor.gradient.verify_grad(cost, [GENERAL[0]], rng=np.random.default_rng(0), mode=PYTHON)


@pytest.mark.parametrize("n", [1, 2])
def test_small_sizes(n):
    values = [positive_definite(n), np.ones(n)]
    check([A, Y], with_gradient(density(A, Y @ inv(A) @ Y)), values)
    check([A, Y], with_gradient(density(KNOWN, Y @ inv(KNOWN) @ Y)), values)


def test_matrix_that_is_not_positive_definite():
    outputs = with_gradient(density(KNOWN, Y @ solve(KNOWN, Y)))
    ours, _ = compile_both([A, Y], outputs)
    value, by_matrix, _ = ours(np.diag([1.0, -1, 1]), np.ones(3))
    assert np.isnan(value)
    assert np.isnan(by_matrix).all()


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_other_kinds_of_numbers(dtype):
    a = pt.matrix("a", dtype=dtype)
    ours, stock = check([a], [inv(a), det(a)], [GENERAL[0].astype(dtype)], rtol=1e-4)
    assert (ours == stock) == (dtype == "complex128")


def test_inverses_that_are_taken_apart():
    """That of a Kronecker product is that of its factors, beside a solve with the whole."""
    small, large = pt.dmatrix("small", shape=(3, 3)), pt.dmatrix("large", shape=(4, 4))
    values = [RNG.normal(size=(k, k)) + 2 * np.eye(k) for k in (3, 4)]
    for whole in (kron(small, large), block_diag(small, large)):
        cost = pt.diagonal(inv(whole)).sum()
        outputs = [cost, *pytensor.grad(cost, [small, large])]
        ours, stock = compile_both([small, large], outputs, KEEPING)
        mine, theirs = ours(*values), stock(*values)
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)
        before = operations(stock, values, theirs)
        assert operations(ours, values, mine) <= before + 100


def inverts_one_triangle(inputs, outputs):
    """Return whether inverses from LU factors are computed as those of symmetric matrices."""
    ours, _ = compile_both(inputs, outputs)
    ops = [getattr(node.op, "core_op", node.op) for node in ours.maker.fgraph.apply_nodes]
    [found] = {op.symmetric for op in ops if type(op).__name__ == "LUInverse"}
    return found


def test_one_triangle_of_the_inverse_of_a_symmetric_matrix():
    x = pt.dvector("x")
    # The cosine of distances is semidefinite; with a matrix that has both signs nothing is known.
    lopsided = pt.cos(x[:, None] - x[None, :]) + pt.diag(pt.sin(x))
    turned = pt.cos(x[:, None] - 2 * x[None, :]) + pt.diag(pt.sin(x))
    for matrix, expected in [(lopsided, True), (lopsided.T, True), (turned, False)]:
        cost = density(matrix, Y @ solve(matrix, Y))
        assert inverts_one_triangle([x, Y], [cost, pytensor.grad(cost, x)]) is expected
    said = density(assume(A, symmetric=True), Y @ inv(assume(A, symmetric=True)) @ Y)
    assert inverts_one_triangle([A, Y], with_gradient(said))
    assert not inverts_one_triangle([A, Y], with_gradient(density(A, Y @ inv(A) @ Y)))


@pytest.mark.parametrize("mode", [ORACLE, "NUMBA"], ids=["Python", "NUMBA"])
def test_values_from_one_triangle(mode):
    x = pt.dvector("x")
    matrix = pt.cos(x[:, None] - x[None, :]) + pt.diag(pt.sin(x))
    cost = density(matrix, Y @ solve(matrix, Y))
    small, large = (
        [RNG.uniform(1, 3, size=n) * RNG.choice([-1, 1], size=n), RNG.normal(size=n)]
        for n in (7, 450)
    )
    outputs = [cost, pytensor.grad(cost, x)]
    ours, _ = check([x, Y], outputs, small, mode=mode, stock_mode=ORACLE, more=[large])
    assert ours == {"LUFactor": 1, "LUInverse": 1}
