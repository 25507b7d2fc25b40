"""Densities of PyMC that factorize matrices, with their gradients."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from support.linalg.rules import check, positive_definite

pm = pytest.importorskip("pymc", reason="not installed; it has no release for Python 3.11")

N = 9
A = pt.dmatrix("A")
Y = pt.dvector("y")
RNG = np.random.default_rng(5)
X = np.sort(RNG.uniform(0, 5, N))[:, None]
OBSERVED = RNG.normal(size=N)


def density_of(model):
    """Return the inputs and outputs of the density and its gradient, and a point."""
    inputs = model.value_vars
    logp = model.logp()
    point = [np.asarray(value) + 0.1 for value in model.initial_point().values()]
    return inputs, [logp, *pytensor.grad(logp, inputs)], point


@pytest.mark.parametrize("kind", ["cov", "chol"])
@pytest.mark.parametrize("n", [None, N])
def test_multivariate_normal(kind, n):
    a, y = pt.dmatrix("a", shape=(n, n)), pt.dvector("y", shape=(n,))
    given = {"cov": a} if kind == "cov" else {"chol": pt.linalg.cholesky(a)}
    logp = pm.logp(pm.MvNormal.dist(mu=pt.zeros(a.shape[0]), **given), y)
    outputs = [logp, *pytensor.grad(logp, [a, y])]
    ours, _ = check([a, y], outputs, [positive_definite(N), OBSERVED])
    assert ours == {"Cholesky": 1, "CholeskyInverse": 1}


def test_precision():
    logp = pm.logp(pm.MvNormal.dist(mu=pt.zeros(A.shape[0]), tau=A), Y)
    outputs = [logp, *pytensor.grad(logp, [A, Y])]
    ours, stock = check([A, Y], outputs, [positive_definite(N), OBSERVED])
    assert sum(ours.values()) < sum(stock.values())


def test_matrix_that_is_not_positive_definite():
    logp = pm.logp(pm.MvNormal.dist(mu=pt.zeros(A.shape[0]), cov=A), Y)
    checked = logp.owner.inputs[0]
    check([A, Y], pytensor.grad(checked, [A]), [np.diag([1.0, -1, 1]), np.ones(3)])


def covariance():
    return pm.HalfNormal("eta") ** 2 * pm.gp.cov.ExpQuad(1, pm.HalfNormal("length"))


def test_marginal_gaussian_process():
    with pm.Model() as model:
        gp = pm.gp.Marginal(cov_func=covariance())
        gp.marginal_likelihood("y", X=X, y=OBSERVED, sigma=0.3)
    ours, _ = check(*density_of(model))
    assert ours == {"Cholesky": 1, "CholeskyInverse": 1}


def test_sparse_gaussian_process():
    with pm.Model() as model:
        gp = pm.gp.MarginalApprox(cov_func=covariance(), approx="VFE")
        gp.marginal_likelihood("y", X=X, Xu=X[::3], y=OBSERVED, sigma=0.3)
    ours, stock = check(*density_of(model))
    assert sum(ours.values()) < sum(stock.values())


@pytest.mark.filterwarnings("ignore:pytensor.tensor.linalg.trace is deprecated")
def test_matrix_normal():
    with pm.Model() as model:
        size = pm.HalfNormal("size")
        rows = size * positive_definite(4)
        pm.MatrixNormal(
            "y", mu=np.zeros((4, 3)), rowcov=rows, colcov=np.eye(3), observed=np.ones((4, 3))
        )
    check(*density_of(model))


def test_correlated_normal():
    with pm.Model() as model:
        factor, _, _ = pm.LKJCholeskyCov("f", n=3, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
        pm.MvNormal("y", 0, chol=factor, observed=RNG.normal(size=(20, 3)))
    check(*density_of(model))


def test_steps_of_a_filter():
    """A step of a Kalman filter inside a Scan, with its gradient."""

    def step(y, mean, variance, noise):
        innovation = variance + noise * pt.eye(2)
        gain = variance @ pt.linalg.inv(innovation)
        density = -0.5 * (
            (y - mean) @ pt.linalg.solve(innovation, y - mean) + pt.linalg.slogdet(innovation)[1]
        )
        after = variance - gain @ variance + 0.1 * pt.eye(2)
        return mean + gain @ (y - mean), after, density

    ys, noise = pt.dmatrix("ys"), pt.dscalar("noise")
    (_, _, densities) = pytensor.scan(
        step,
        sequences=[ys],
        outputs_info=[np.zeros(2), np.eye(2), None],
        non_sequences=[noise],
        return_updates=False,
    )
    cost = densities.sum()
    ours, stock = check(
        [ys, noise], [cost, pytensor.grad(cost, noise)], [RNG.normal(size=(4, 2)), 0.5]
    )
    assert sum(ours.values()) <= sum(stock.values())
