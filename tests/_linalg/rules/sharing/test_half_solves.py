"""Quadratic forms of inverses are taken from the forward solve alone."""

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.assumptions import assume
from pytensor.compile.mode import get_mode
from pytensor.tensor.linalg import cho_solve, cholesky, inv, solve

from support.linalg.rules import (
    ORACLE,
    OTHER_BACKENDS,
    check,
    compile_both,
    estimated,
    positive_definite,
)

N, K = 6, 3
A, C, D = pt.dmatrices("A", "C", "D")
Y = pt.dvector("y")
RNG = np.random.default_rng(4)
VALUES = [
    positive_definite(N),
    RNG.normal(size=(N, K)),
    RNG.normal(size=(N, K)),
    RNG.normal(size=N),
]
INPUTS = [A, C, D, Y]
KNOWN = assume(A, positive_definite=True)
FACTOR = cholesky(A)
SOLVED = cho_solve((FACTOR, True), C)
VARIANCE = pt.diagonal(C.T @ inv(KNOWN) @ C)
MEAN = C.T @ inv(KNOWN) @ Y

SERVED = {
    "variance": [VARIANCE],
    "mean and variance": [MEAN, VARIANCE],
    "from the right": [Y @ inv(KNOWN) @ C, VARIANCE],
    "trace": [pt.trace(C.T @ solve(KNOWN, C))],
    "by hand": [pt.diagonal(C.T @ SOLVED), SOLVED.T @ Y],
    "sums": [(C * SOLVED).sum(axis=0)],
    "turned sums": [(C.T * SOLVED.T).sum(axis=1)],
}


@pytest.mark.parametrize("name", SERVED)
def test_only_half_is_solved(name):
    ours, _ = check(INPUTS, SERVED[name], VALUES, mode=ORACLE)
    assert ours["CholeskySolve"] == 0
    assert ours["SolveTriangular"] == 1


@pytest.mark.parametrize("backend", OTHER_BACKENDS)
def test_other_backends(backend):
    ours, _ = check(
        INPUTS, [MEAN, VARIANCE], VALUES, mode=get_mode(backend), rtol=1e-8, stock_mode=ORACLE
    )
    assert ours["CholeskySolve"] == 0


LEFT = {
    "the solution itself": [VARIANCE, solve(KNOWN, C)],
    "all elements": [C.T @ solve(KNOWN, C)],
    "another matrix": [pt.diagonal(D.T @ solve(KNOWN, C))],
    "another diagonal": [pt.diagonal(C.T @ solve(KNOWN, C), offset=1)],
    "turned, with an axis in front": [(C * SOLVED).sum(axis=0), SOLVED.T[None]],
    "along the other axis": [(C * SOLVED).sum(axis=1)],
    "a matrix of vectors": [D.T @ solve(KNOWN, C), VARIANCE],
    "more in the product": [(C * SOLVED * D).sum(axis=0)],
}


@pytest.mark.parametrize("name", LEFT)
def test_left_alone(name):
    without = ORACLE.excluding("linalg_quadratic_forms_from_half_solve")
    ours, stock = check(INPUTS, LEFT[name], VALUES, mode=ORACLE)
    apart, _ = check(INPUTS, LEFT[name], VALUES, mode=without)
    assert ours == apart
    assert stock


def test_what_is_not_definite_is_nan():
    ours, stock = compile_both(INPUTS, [VARIANCE, MEAN], ORACLE)
    values = [-np.eye(N), *VALUES[1:]]
    for mine, theirs in zip(ours(*values), stock(*values), strict=True):
        assert np.isnan(mine).all()
        assert np.isnan(theirs).all()


def test_the_second_of_two_solves_is_saved():
    ours, stock = compile_both(INPUTS, [VARIANCE, MEAN], ORACLE)
    assert estimated(ours) < estimated(stock)


@pytest.mark.parametrize("k", [2, None])
def test_no_more_products_with_vectors_than_solves_that_are_saved(k):
    columns = pt.dmatrix("C", shape=(None, k))
    solution = solve(KNOWN, columns)
    vectors = pt.dvectors(3)
    for count in 1, 2, 3:
        products = [solution.T @ one for one in vectors[:count]]
        ours, _ = compile_both([A, columns, *vectors], products, ORACLE)
        is_saved = not any("CholeskySolve" in str(one.op) for one in ours.maker.fgraph.apply_nodes)
        assert is_saved is (count <= (k or 1))
