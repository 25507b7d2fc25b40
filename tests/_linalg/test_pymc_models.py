"""Models of PyMC as it compiles them: the density and its gradient by one flat vector."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

import pytensor_fuse
from support.linalg.rules import (
    PYTHON,
    check,
    compile_both,
    cubic,
    estimated,
    only_linalg,
    positive_definite,
)
from support.switching import switched

pm = pytest.importorskip("pymc", reason="not installed; it has no release for Python 3.11")

N = 9
RNG = np.random.default_rng(5)
X = np.sort(RNG.uniform(0, 5, N))[:, None]
OBSERVED = RNG.normal(size=N)
FLOOR = {"Cholesky": 1, "CholeskyInverse": 1}
OTHER = "at most as much, and other work"


def compare(model):
    """Compare the density and its gradient with stock's, and return the cubic work of both."""

    def compiled(**features):
        with pytensor_fuse.enabled(False), switched(**features):
            function = model.logp_dlogp_function(ravel_inputs=True, mode=PYTHON)
        function.set_extra_values({})
        return function

    ours, stock = compiled(**only_linalg()), compiled(linalg=False)
    start = pm.blocking.DictToArrayBijection.map(model.initial_point()).data
    for point in start, start + 0.3:
        for mine, theirs in zip(ours(point), stock(point), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
    mine, theirs = ours._pytensor_function, stock._pytensor_function
    assert sum(cubic(mine).values()) <= sum(cubic(theirs).values())
    assert estimated(mine) <= estimated(theirs)
    return cubic(mine), cubic(theirs)


def covariance():
    return pm.HalfNormal("eta") ** 2 * pm.gp.cov.ExpQuad(1, pm.HalfNormal("length"))


def observe(process):
    pm.Normal("y", process, 0.3, observed=OBSERVED)


def marginal():
    gp = pm.gp.Marginal(cov_func=covariance())
    gp.marginal_likelihood("y", X=X, y=OBSERVED, sigma=pm.HalfNormal("sigma"))


def latent():
    observe(pm.gp.Latent(cov_func=covariance()).prior("f", X=X, reparameterize=False))


def latent_of_white_noise():
    observe(pm.gp.Latent(cov_func=covariance()).prior("f", X=X))


def student_process():
    observe(pm.gp.TP(scale_func=covariance(), nu=4.0).prior("f", X=X, reparameterize=False))


def student():
    scale = pm.HalfNormal("s") * positive_definite(5)
    pm.MvStudentT("y", nu=4, mu=np.zeros(5), scale=scale, observed=RNG.normal(size=(3, 5)))


def precision():
    tau = pm.HalfNormal("s") * positive_definite(5)
    pm.MvNormal("y", np.zeros(5), tau=tau, observed=RNG.normal(size=5))


def kronecker_of_kernels():
    kernels = [pm.gp.cov.ExpQuad(1, pm.HalfNormal(f"l{i}")) for i in range(2)]
    gp = pm.gp.MarginalKron(cov_funcs=kernels)
    gp.marginal_likelihood("y", Xs=[X[:4], X[:3]], y=np.ones(12), sigma=pm.HalfNormal("s"))


def kronecker():
    size = pm.HalfNormal("size")
    covs = [size * positive_definite(4), size * positive_definite(3)]
    pm.KroneckerNormal("y", mu=np.zeros(12), covs=covs, observed=np.ones(12))


def batch():
    length = pm.HalfNormal("length", shape=3)
    kernels = pt.exp(-0.5 * (X - X.T) ** 2 / length[:, None, None] ** 2) + 0.1 * pt.eye(N)
    pm.MvNormal("y", np.zeros((3, N)), cov=kernels, observed=RNG.normal(size=(3, N)))


MODELS = {
    marginal: FLOOR,
    latent: FLOOR,
    student_process: FLOOR,
    # The gradient by the factor is a product with what is not made of it.
    latent_of_white_noise: {"Cholesky": 1, "SolveTriangular": 2},
    student: OTHER,
    precision: FLOOR,
    kronecker_of_kernels: None,
    kronecker: None,
    batch: None,
}


@pytest.mark.parametrize("build", MODELS, ids=lambda build: build.__name__)
def test_models(build):
    with pm.Model() as model:
        build()
    ours, stock = compare(model)
    expected = MODELS[build]
    if expected is OTHER:
        assert ours["CholeskyInverse"] == 1
    else:
        assert ours == (stock if expected is None else expected)


@pytest.mark.parametrize("kind", ["FITC", "DTC"])
def test_few_points_for_many(kind):
    with pm.Model() as model:
        gp = pm.gp.MarginalApprox(cov_func=covariance(), approx=kind)
        sigma = pm.HalfNormal("sigma")
        gp.marginal_likelihood("y", X=X, Xu=X[::3], y=OBSERVED, sigma=sigma)
    ours, stock = compare(model)
    assert sum(ours.values()) < sum(stock.values())


def test_rows_of_data():
    a, rows = pt.dmatrix("a"), pt.dmatrix("rows")
    logp = pm.logp(pm.MvNormal.dist(mu=np.zeros(5), cov=a), rows).sum()
    outputs = [logp, *pytensor.grad(logp, [a, rows])]
    ours, _ = check([a, rows], outputs, [positive_definite(5), RNG.normal(size=(20, 5))])
    assert ours == {**FLOOR, "SolveTriangular": 2, "Dot22": 1}


def test_precision_that_is_indefinite():
    tau, y = pt.dmatrix("tau"), pt.dvector("y")
    logp = pm.logp(pm.MvNormal.dist(mu=pt.zeros(tau.shape[0]), tau=tau), y).owner.inputs[0]
    ours, stock = compile_both([tau, y], [logp, pytensor.grad(logp, tau)])
    for value in ours, stock:
        density, gradient = value(np.diag([1.0, -1, 1]), np.ones(3))
        assert np.isnan(density)
        assert np.isnan(gradient).any()
