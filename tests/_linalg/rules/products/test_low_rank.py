"""Low rank goes through solves and products."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.replace import clone_replace
from pytensor.tensor.linalg import cho_solve, solve, solve_triangular

from support.linalg.rules import PYTHON, check, compile_both, positive_definite, solved_columns

N = 6
A, B = pt.dmatrices("A", "B")
U, V = pt.dvectors("u", "v")
RNG = np.random.default_rng(3)
VALUES = [
    positive_definite(N),
    RNG.normal(size=(N, N)),
    RNG.normal(size=N),
    RNG.normal(size=N),
]

SOLVES = {
    "gen": solve,
    "pos": lambda a, b: solve(a, b, assume_a="pos"),
    "lower": lambda a, b: solve_triangular(a, b, lower=True),
    "cho": lambda a, b: cho_solve((a, True), b),
}


def work_of(output):
    return check([A, B, U, V], [output], VALUES)


@pytest.mark.parametrize("kind", SOLVES)
@pytest.mark.parametrize(
    "right",
    [
        pt.outer(U, V),
        -2 * pt.outer(U, V).T,
        U[:, None] * V[None, :] / (1 + V**2)[None, :],
        U[:, None] @ V[None, :],
        pt.outer(U, V) / (2 + U**2)[:, None] * V,
    ],
)
def test_solve_with_an_outer_product(kind, right):
    output = SOLVES[kind](A, right)
    work_of(output)
    ours, stock = compile_both([A, U, V], output)
    assert set(solved_columns(ours)) == {1}
    assert set(solved_columns(stock)) == {None}


def test_two_solves_around_one():
    """What the gradient of a quadratic form of an inverse computes."""
    ours, stock = work_of(solve(A, solve(A, pt.outer(U, V)).T))
    assert ours == {"LUFactor": 1}
    assert stock["SolveTriangular"] == 4


@pytest.mark.parametrize(
    "right", [B, pt.outer(U, V) + B, pt.outer(U, V) * B, U[:, None] * pt.ones((N, 1))]
)
def test_solve_with_what_is_no_outer_product(right):
    ours, stock = work_of(solve(A, right))
    assert ours == stock


def test_solve_with_a_thin_product():
    thin, wide = pt.dmatrix("thin", shape=(N, 2)), pt.dmatrix("wide", shape=(2, N))
    a = pt.dmatrix("a", shape=(N, N))
    values = [VALUES[0], RNG.normal(size=(N, 2)), RNG.normal(size=(2, N))]

    ours, stock = compile_both([a, thin, wide], solve(a, thin @ wide))
    assert solved_columns(ours) == [2]
    assert solved_columns(stock) == [N]
    check([a, thin, wide], [solve(a, thin @ wide)], values)


@pytest.mark.parametrize(
    "output",
    [A @ pt.outer(U, V), pt.outer(U, V) @ A, A @ -pt.outer(U, V)],
)
def test_product_with_an_outer_product(output):
    ours, stock = work_of(output)
    assert (sum(ours.values()), sum(stock.values())) == (0, 1)


def test_product_of_two_matrices_stays():
    ours, stock = work_of(A @ B)
    assert ours == stock == {"Dot22": 1}


@pytest.mark.parametrize(
    "output", [pt.trace(A @ B), pt.diagonal(A @ B), pt.diagonal(A @ A.T), pt.trace(A.T @ B)]
)
def test_diagonal_of_a_product(output):
    ours, stock = work_of(output)
    assert (sum(ours.values()), sum(stock.values())) == (0, 1)


def test_diagonal_of_a_product_that_is_not_square():
    values = [RNG.normal(size=(3, 4)), RNG.normal(size=(4, 5))]
    for m, n in (A, B), (B.T, A.T):
        ours, _ = check([A, B], [pt.diagonal(m @ n)], values)
        assert not ours


def test_diagonal_of_a_product_that_is_used_otherwise():
    product = A @ B
    ours, stock = check([A, B], [product, pt.diagonal(product)], VALUES[:2])
    assert ours == stock
    ours, stock = work_of(pt.diagonal(product, offset=1))
    assert ours == stock


def test_gradients_against_differences():
    cost = (V @ solve(A, pt.outer(U, V)) @ pt.outer(V, U) @ U) + pt.trace(A @ B)
    known = {B: pt.constant(VALUES[1]), V: pt.constant(VALUES[3])}
    pytensor.gradient.verify_grad(
        lambda a, u: clone_replace(cost, {A: a, U: u, **known}),
        [VALUES[0], VALUES[2]],
        rng=np.random.default_rng(0),
        mode=PYTHON,
    )
    ours, stock = check([A, B, U, V], pytensor.grad(cost, [A, B, U, V]), VALUES)
    assert sum(ours.values()) < sum(stock.values())


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_other_kinds_of_numbers(dtype):
    a, u = pt.matrix("a", dtype=dtype), pt.vector("u", dtype=dtype)
    values = [VALUES[0].astype(dtype), VALUES[2].astype(dtype)]
    ours, stock = check([a, u], [a @ pt.outer(u, u)], values, rtol=1e-5)
    assert (ours == stock) == (dtype == "complex128")


@pytest.mark.parametrize("n", [0, 1, 2])
def test_small_sizes(n):
    values = [positive_definite(n), np.ones((n, n)), np.ones(n), np.arange(n) + 1.0]
    outputs = [solve(A, pt.outer(U, V)), A @ pt.outer(U, V), pt.trace(A @ B)]
    ours, stock = compile_both([A, B, U, V], outputs)
    for mine, theirs in zip(ours(*values), stock(*values), strict=True):
        np.testing.assert_allclose(mine, theirs)


@pytest.mark.parametrize("dtype", ["bool", "int16", "int32", "int64", "float32"])
def test_factors_of_other_types_are_multiplied_as_before(dtype):
    u, v, w = pt.vector("u", dtype=dtype), pt.vector("v", dtype=dtype), pt.dvector("w")
    rights = [
        # Of `u * v * w` PyTensor itself makes another order in another mode.
        u[:, None] * w[None, :] * v[:, None],
        u[:, None] * w[None, :] / v[:, None],
    ]
    outputs = [result for right in rights for result in (solve(A, right), A @ right, right @ A)]
    ours, stock = compile_both([A, u, v, w], outputs)
    numbers = np.array([181, 150, 77, 199]) * {"int16": 100, "int32": 10**4}.get(dtype, 1)
    values = [np.diag([1.0, 2, 3, 4]) + 0.1, numbers.astype(dtype), numbers[::-1].astype(dtype)]
    values.append(np.array([1.5, -2, 0.25, 1]))
    rtol = 1e-5 if dtype == "float32" else 1e-10
    for found, expected in zip(ours(*values), stock(*values), strict=True):
        np.testing.assert_allclose(found, expected, rtol=rtol)
