"""Batches of matrices: one factorization of each."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.assumptions import assume
from pytensor.tensor.linalg import cho_solve, cholesky, det, inv, slogdet, solve

import pytensor_fuse
from support.linalg.rules import PYTHON, check, compile_both, only_linalg, positive_definite
from support.switching import switched

N, BATCH = 4, 3
STACK = pt.dtensor3("stack")
DEEP = pt.dtensor4("deep")
ROWS = pt.dmatrix("rows")
KNOWN = assume(STACK, positive_definite=True)
RNG = np.random.default_rng(4)
GENERAL = RNG.normal(size=(BATCH, N, N))
DEFINITE = np.stack([positive_definite(N, seed) for seed in range(BATCH)])
VECTORS = RNG.normal(size=(BATCH, N))
LU = {"LUFactor": 1, "LUInverse": 1}
CHOLESKY = {"Cholesky": 1, "CholeskyInverse": 1}


def quadratic(inverse):
    return (ROWS * (inverse @ ROWS[:, :, None])[:, :, 0]).sum()


def density(form, matrices):
    return -0.5 * (form + slogdet(matrices)[1].sum())


DENSITIES = {
    "inverses": (density(quadratic(inv(STACK)), STACK), GENERAL, LU),
    "solves": (density((ROWS * solve(STACK, ROWS, b_ndim=1)).sum(), STACK), GENERAL, LU),
    "definite, inverses": (density(quadratic(inv(KNOWN)), KNOWN), DEFINITE, CHOLESKY),
    "definite, solves": (
        density((ROWS * solve(KNOWN, ROWS, b_ndim=1)).sum(), KNOWN),
        DEFINITE,
        CHOLESKY,
    ),
}


@pytest.mark.parametrize("name", DENSITIES)
def test_densities(name):
    cost, matrices, work = DENSITIES[name]
    outputs = [cost, *pytensor.grad(cost, [STACK, ROWS])]
    ours, _ = check([STACK, ROWS], outputs, [matrices, VECTORS])
    assert ours == work


@pytest.mark.parametrize(
    ("outputs", "work"),
    [
        ([inv(STACK), det(STACK)], LU),
        ([inv(STACK.mT), det(STACK)], LU),
        ([inv(STACK), solve(STACK.mT, ROWS, b_ndim=1)], LU),
        ([det(STACK), solve(STACK, ROWS, b_ndim=1)], {"LUFactor": 1}),
        ([inv(KNOWN), cholesky(KNOWN)], CHOLESKY),
        ([cho_solve((cholesky(STACK), True), pt.eye(N))], CHOLESKY),
    ],
)
def test_shared(outputs, work):
    ours, _ = check([STACK, ROWS], outputs, [DEFINITE, VECTORS])
    assert ours == work


@pytest.mark.parametrize(
    "outputs",
    [
        [inv(STACK)],
        [inv(STACK), cholesky(STACK)],
        # The same right-hand side for all: there is one vector more than matrices, or fewer.
        [det(STACK), solve(STACK, ROWS[0], b_ndim=1)],
    ],
)
def test_apart(outputs):
    ours, stock = check([STACK, ROWS], outputs, [DEFINITE, VECTORS])
    assert ours == stock


def test_two_batch_axes():
    deep = np.stack([GENERAL, -GENERAL])
    outputs = [inv(DEEP), det(DEEP)]
    ours, _ = check([DEEP], outputs, [deep])
    assert ours == LU


def test_signs():
    # Stock has no signs for batches in PyTensor 3.0.
    with pytensor_fuse.enabled(False), switched(**only_linalg()):
        ours = pytensor.function([STACK], [inv(STACK), *slogdet(STACK)], mode=PYTHON)
    for seed in range(4):
        stack = np.random.default_rng(seed).normal(size=(BATCH, N, N))
        np.testing.assert_allclose(ours(stack)[1:], np.linalg.slogdet(stack), rtol=1e-11)


def test_one_of_them_is_singular():
    matrices = GENERAL.copy()
    matrices[1] = 1.0
    ours, stock = compile_both([STACK], [inv(STACK), det(STACK)])
    for function in ours, stock:
        with pytest.raises(np.linalg.LinAlgError):
            function(matrices)
    ours, stock = compile_both([STACK, ROWS], [solve(STACK, ROWS, b_ndim=1)[::2], det(STACK)])
    matrices[2] = -np.eye(N)
    mine = ours(matrices, VECTORS)
    assert mine[1][1] == 0
    np.testing.assert_allclose(mine[0][1], -VECTORS[2])
    np.testing.assert_allclose(mine[1], np.linalg.det(matrices), rtol=1e-12)


def test_solve_of_outer_products():
    column, row = ROWS[:, :, None], pt.exp(ROWS)[:, None, :]
    outputs = [solve(STACK, column * row)]
    ours, stock = check([STACK, ROWS], outputs, [GENERAL, VECTORS])
    assert sum(ours.values()) <= sum(stock.values())
