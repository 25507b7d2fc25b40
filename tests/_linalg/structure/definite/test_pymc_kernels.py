"""The covariance functions of PyMC: which are semidefinite as PyMC writes them."""

import warnings

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import explicit_graph_inputs

from pytensor_fuse._linalg.structure.definite.definiteness import Definiteness, definiteness
from support.linalg.rules import check
from support.linalg.structures import as_it_is

pm = pytest.importorskip("pymc", reason="not installed; it has no release for Python 3.11")
cov = pm.gp.cov

N = 12
LINE = pt.dmatrix("line", shape=(None, 1))
SPACE = pt.dmatrix("space", shape=(None, 3))
GROUPS = pt.dmatrix("groups", shape=(None, 2))
KNOWN = pt.constant(np.linspace(0, 3, N)[:, None])
length, p, a = pt.dscalars("lpa")
each = pt.dvector("each", shape=(3,))
W = pt.dmatrix("W")
SMOOTH = cov.ExpQuad(1, length)
KERNELS = {
    "ExpQuad": SMOOTH(LINE),
    "ExpQuad of data": SMOOTH(KNOWN),
    "ExpQuad in space": cov.ExpQuad(3, length)(SPACE),
    "ExpQuad with a length for each axis": cov.ExpQuad(3, each)(SPACE),
    "ExpQuad with inverse lengths": cov.ExpQuad(3, ls_inv=each)(SPACE),
    "ExpQuad of some axes": cov.ExpQuad(3, length, active_dims=[0, 2])(SPACE),
    "ExpQuad, squared": (SMOOTH**2)(LINE),
    "Matern52": cov.Matern52(1, length)(LINE),
    "Matern52 in space": cov.Matern52(3, each)(SPACE),
    "Matern32": cov.Matern32(1, length)(LINE),
    "Matern32 in space": cov.Matern32(3, each)(SPACE),
    "Matern12": cov.Matern12(3, each)(SPACE),
    "Exponential": cov.Exponential(1, length)(LINE),
    "RatQuad": cov.RatQuad(1, alpha=pt.exp(a), ls=length)(LINE),
    "RatQuad in space": cov.RatQuad(3, alpha=pt.exp(a), ls=each)(SPACE),
    "Periodic": cov.Periodic(1, period=p, ls=length)(LINE),
    "Periodic of data": cov.Periodic(1, period=p, ls=length)(KNOWN),
    "Periodic in space": cov.Periodic(3, period=p, ls=each)(SPACE),
    "Periodic with a period for each axis": cov.Periodic(3, period=each, ls=length)(SPACE),
    "WrappedPeriodic": cov.WrappedPeriodic(SMOOTH, period=p)(LINE),
    "WrappedPeriodic of another": cov.WrappedPeriodic(cov.Matern52(3, each), period=p)(SPACE),
    "Linear": cov.Linear(1, c=p)(LINE),
    "Linear in space": cov.Linear(3, c=p)(SPACE),
    "Polynomial": cov.Polynomial(3, c=p, d=2, offset=pt.exp(a))(SPACE),
    "Polynomial of the third degree": cov.Polynomial(1, c=p, d=3, offset=pt.exp(a))(LINE),
    "Constant": (SMOOTH + cov.Constant(pt.exp(a)))(LINE),
    "WarpedInput": cov.WarpedInput(1, cov.Matern52(1, length), pt.tanh)(LINE),
    "ScaledCov": cov.ScaledCov(1, cov.Matern52(1, length), pt.exp)(LINE),
    "Coregion": cov.Coregion(2, W=W, kappa=pt.exp(each), active_dims=[1])(GROUPS),
    "Coregion times another": (
        cov.ExpQuad(2, length, active_dims=[0])
        * cov.Coregion(2, W=W, kappa=pt.exp(each), active_dims=[1])
    )(GROUPS),
    "Kron": cov.Kron([SMOOTH, cov.Matern52(2, p)])(SPACE),
    "sum and product": (
        a**2 * SMOOTH + p**2 * cov.Periodic(1, period=p, ls=length) * cov.Matern32(1, length)
    )(LINE),
}


def computed(matrix, seed):
    rng = np.random.default_rng(seed)
    values = {
        "line": 2 * rng.normal(size=(N, 1)),
        "space": rng.normal(size=(N, 3)),
        "groups": np.column_stack([rng.normal(size=N), rng.integers(0, 3, size=N)]),
        "each": rng.uniform(0.3, 2, size=3),
        "W": rng.normal(size=(3, 2)),
        **{name: rng.uniform(0.3, 2) for name in "lpa"},
    }
    inputs = list(explicit_graph_inputs([matrix]))
    function = pytensor.function(inputs, matrix, mode=as_it_is("py"))
    return function(*(values[one.name] for one in inputs))


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name):
    kernel = KERNELS[name]
    assert definiteness(kernel) is Definiteness.SEMIDEFINITE
    noisy = kernel + pt.exp(a) * pt.eye(kernel.shape[0])
    assert definiteness(noisy) is Definiteness.DEFINITE
    for seed in range(3):
        matrix = computed(kernel, seed)
        np.testing.assert_allclose(matrix, matrix.T, rtol=1e-9, atol=1e-12)
        eigenvalues = np.linalg.eigvalsh(matrix)
        assert eigenvalues[0] >= -1e-11 * eigenvalues[-1]


def test_white_noise():
    kernel = (SMOOTH + cov.WhiteNoise(pt.exp(a)))(LINE)
    assert definiteness(kernel) is Definiteness.DEFINITE


PAIR = pt.dmatrix("pair", shape=(None, 3))
BETWEEN = SPACE[:, None, :] - SPACE[None, :, :]
NOT_KNOWN = {
    "Cosine": cov.Cosine(1, length)(LINE),
    "Cosine in space": cov.Cosine(3, length)(SPACE),
    "Circular": cov.Circular(1, period=p)(LINE),
    "Gibbs": cov.Gibbs(1, pt.exp)(LINE),
    "a power that is not whole": (SMOOTH ** pt.exp(a))(LINE),
    "negative offset": cov.Polynomial(3, c=p, d=2, offset=-pt.exp(a))(SPACE),
    "any offset": cov.Polynomial(1, c=p, d=2, offset=a)(LINE),
    "difference": (SMOOTH + -1.0 * cov.Matern52(1, length))(LINE),
    "times any number": (a * SMOOTH)(LINE),
    "two sets of points": cov.ExpQuad(3, length)(SPACE, PAIR),
    "two sets of points, periodic": cov.Periodic(3, period=p, ls=length)(SPACE, PAIR),
    "two sets of points on a line": LINE @ pt.dmatrix("other", shape=(None, 1)).T,
    "Coregion of a matrix": cov.Coregion(2, B=W, active_dims=[1])(GROUPS),
    "Coregion that is not positive": cov.Coregion(2, W=W, kappa=each, active_dims=[1])(GROUPS),
    "rows and other columns": (W @ W.T)[
        GROUPS[:, [1]].astype("int32"), GROUPS[:, [0]].astype("int32").T
    ],
    "exponential of distances": pt.exp((BETWEEN**2).sum(axis=2)),
    "weights of any sign": pt.exp(-(each * BETWEEN**2).sum(axis=2)),
    "third powers": pt.exp(-(abs(BETWEEN) ** 3).sum(axis=2)),
    "fourth powers": pt.exp(-(BETWEEN**4).sum(axis=2)),
    "not squared": pt.exp(-pt.sin(BETWEEN).sum(axis=2)),
    "squared cosines": pt.exp(-(pt.cos(BETWEEN) ** 2).sum(axis=2)),
    "sines of sines": pt.exp(-(pt.sin(pt.sin(BETWEEN)) ** 2).sum(axis=2)),
    "sums": pt.exp(-((SPACE[:, None, :] + SPACE[None, :, :]) ** 2).sum(axis=2)),
    "another axis": pt.exp(-(BETWEEN**2).sum(axis=1)),
    "weights of rows": pt.exp(-((BETWEEN / SPACE[:, :1][:, None, :]) ** 2).sum(axis=2)),
    "square of the sum": pt.exp(-((BETWEEN**2).sum(axis=2) ** 2)),
}


@pytest.mark.parametrize("name", NOT_KNOWN)
def test_what_only_looks_like_it(name):
    assert definiteness(NOT_KNOWN[name]) is Definiteness.UNKNOWN


COORDINATES = {
    "squares": pt.exp(-(BETWEEN**2).sum(axis=2)),
    "with a number for each axis": pt.exp(-0.5 * ((BETWEEN / each) ** 2).sum(axis=-1)),
    "root": pt.exp(-pt.sqrt((BETWEEN**2).sum(axis=2)) / pt.exp(a)),
    "root of sines": pt.exp(-pt.sqrt((pt.sin(p * BETWEEN) ** 2).sum(axis=2))),
    "product with itself": pt.exp(-(BETWEEN * BETWEEN).sum(axis=2)),
}


@pytest.mark.parametrize("name", COORDINATES)
def test_sums_over_coordinates(name):
    assert definiteness(COORDINATES[name]) is Definiteness.SEMIDEFINITE
    matrix = computed(COORDINATES[name], 0)
    assert np.linalg.eigvalsh(matrix)[0] >= -1e-12


def test_cosine_is_indefinite():
    """What PyMC adds to the squared distance is too much: by more than the rounding."""
    points = np.linspace(0, 1, 30)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        line = cov.Cosine(1, 1.0)(pt.constant(points))
        space = cov.Cosine(2, 1.0)(pt.constant(np.random.default_rng(0).normal(size=(30, 2))))
    low = np.linalg.eigvalsh(computed(line, 0))[0]
    assert low < -1e-11
    assert np.linalg.eigvalsh(computed(space, 0))[0] < -0.1


def test_density_from_an_inverse():
    """With the form of a kernel of PyMC, in one dimension: nobody says that it is definite."""
    y = pt.dvector("y")
    kernel = cov.Matern52(1, length)(LINE) + pt.exp(a) * pt.eye(LINE.shape[0])
    cost = -0.5 * (y @ pt.linalg.inv(kernel) @ y + pt.linalg.slogdet(kernel)[1])
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(N, 1)), rng.normal(size=N), 0.7, 0.1]
    ours, _ = check([LINE, y, length, a], [cost, *pytensor.grad(cost, [length, a])], values)
    assert ours == {"Cholesky": 1, "CholeskyInverse": 1}
