"""Solves with a Cholesky factor that go on from what has been solved with it."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.assumptions import assume
from pytensor.compile.mode import get_mode
from pytensor.tensor.linalg import cho_solve, cholesky, inv, slogdet, solve_triangular

from support.linalg.rules import ORACLE, compile_both, compile_stock, positive_definite

N = 6
A = pt.dmatrix("A")
B = pt.dmatrix("B")
Y = pt.dvector("y")
VALUES = [positive_definite(N), np.random.default_rng(2).normal(size=N)]


def solves(function):
    nodes = function.maker.fgraph.apply_nodes
    return sum("CholeskySolve" in str(node.op) for node in nodes)


def is_whitened(function):
    """Whether the forward solve is there, of which a quadratic form is the square."""
    return any("SolveTriangular" in str(node.op) for node in function.maker.fgraph.apply_nodes)


@pytest.mark.parametrize("mode", ["NUMBA", "CVM"])
@pytest.mark.parametrize("expanded", [False, True])
def test_solve_goes_on(expanded, mode):
    factor = cholesky(A)
    if expanded:
        forward = solve_triangular(factor[None], Y[None], lower=True, b_ndim=1)
    else:
        forward = solve_triangular(factor, Y, lower=True)
    outputs = [
        forward,
        cho_solve((factor, True), Y, b_ndim=1),
        cho_solve((factor, True), -0.5 * Y[:, None], b_ndim=2),
    ]
    ours, stock = compile_both([A, Y], outputs, get_mode(mode))
    # Numba would compile stock's graph only when that is called.
    expected = compile_stock([A, Y], outputs, ORACLE)(*VALUES)
    for mine, theirs in zip(ours(*VALUES), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10)
    assert solves(stock) >= 1
    assert solves(ours) == 0


def test_factorizations_that_are_not_merged_yet():
    known = assume(A, positive_definite=True)
    density = Y @ inv(known) @ Y + slogdet(known)[1]
    ours, stock = compile_both([A, Y], [density, pytensor.grad(density, A)])
    for mine, theirs in zip(ours(*VALUES), stock(*VALUES), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10)
    # PyTensor 3.0 takes the quadratic form from the solution: then there is no forward solve.
    assert solves(ours) == (0 if is_whitened(stock) else 1)


def test_matrix_that_is_not_positive_definite():
    factor = cholesky(A)
    outputs = [solve_triangular(factor, Y, lower=True), cho_solve((factor, True), Y)]
    ours, _ = compile_both([A, Y], outputs)
    assert np.isnan(ours(np.diag([1.0, -1, 1]), np.ones(3))).all()


def test_other_solves_are_left_alone():
    factor, z = cholesky(A), pt.dvector("z")
    upper = cholesky(A, lower=False)
    cases = [
        [solve_triangular(factor, z, lower=True), cho_solve((factor, True), Y)],
        [solve_triangular(A, Y, lower=True), cho_solve((A, True), Y)],
        [cho_solve((factor, True), Y)],
        [solve_triangular(upper, Y, lower=True), cho_solve((upper, False), Y)],
        [solve_triangular(factor, B, lower=True), cho_solve((factor, True), B)],
    ]
    for outputs in cases:
        ours, stock = compile_both([A, B, Y, z], outputs)
        values = [VALUES[0], VALUES[0], VALUES[1], VALUES[1] ** 2]
        for mine, theirs in zip(ours(*values), stock(*values), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-10)
        assert solves(ours) == solves(stock)


@pytest.mark.parametrize("mode", ["NUMBA", "CVM"])
def test_multiple_of_what_is_solved(mode):
    factor = cholesky(A)
    outputs = [
        cho_solve((factor, True), Y, b_ndim=1),
        cho_solve((factor, True), -0.5 * Y[:, None], b_ndim=2),
        cho_solve((factor, True), Y / 3, b_ndim=1),
    ]
    ours, stock = compile_both([A, Y], outputs, get_mode(mode))
    expected = compile_stock([A, Y], outputs, ORACLE)(*VALUES)
    for mine, theirs in zip(ours(*VALUES), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10)
    assert solves(ours) < solves(stock)


def test_other_factors_are_not_shared():
    outputs = [
        cho_solve((cholesky(A), True), Y, b_ndim=1),
        cho_solve((cholesky(2 * A), True), 2 * Y, b_ndim=1),
        cho_solve((cholesky(A), True), pt.exp(Y), b_ndim=1),
    ]
    ours, stock = compile_both([A, Y], outputs)
    for mine, theirs in zip(ours(*VALUES), stock(*VALUES), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10)
    assert solves(ours) == 3
