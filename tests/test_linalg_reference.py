"""The hand-written linear algebra of the benchmarks, against stock PyTensor."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from benchmarks.linalg import reference


def log_density(matrix, observed):
    """Return the log-density as a textbook writes it, but for a constant."""
    return -0.5 * (observed @ pt.linalg.inv(matrix) @ observed + pt.linalg.slogdet(matrix)[1])


def assert_equal_to_stock(results, inputs, outputs, values):
    f = pytensor.function(inputs, outputs, mode="FAST_COMPILE")
    before = [np.copy(value) for value in values]
    for computed, expected in zip(results(*values), f(*values), strict=True):
        np.testing.assert_allclose(computed, expected, rtol=1e-8, atol=1e-10)
    for value, was in zip(values, before, strict=True):
        np.testing.assert_array_equal(value, was)


def values_and_gradients(output, parameters):
    return [output, *pytensor.grad(output, parameters)]


def covariance(a, b, scale):
    distances = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
    return pt.exp(-0.5 * distances / scale**2)


def noisy_covariance(locations, scale, noise):
    return covariance(locations, locations, scale) + noise**2 * pt.eye(locations.shape[0])


@pytest.fixture
def rng():
    return np.random.default_rng(4)


@pytest.mark.parametrize("name", ["gaussian_process", "gaussian_process_by_lu"])
def test_gaussian_process(name, rng):
    locations, observed = pt.matrix(), pt.vector()
    scale, noise = pt.scalars("scale", "noise")
    value = log_density(noisy_covariance(locations, scale, noise), observed)
    assert_equal_to_stock(
        getattr(reference, name),
        [locations, observed, scale, noise],
        values_and_gradients(value, [scale, noise]),
        [rng.normal(size=(30, 2)), rng.normal(size=30), 0.7, 0.4],
    )


def test_prediction(rng):
    locations, observed, new = pt.matrix(), pt.vector(), pt.matrix()
    scale, noise = pt.scalars("scale", "noise")
    inverse = pt.linalg.inv(noisy_covariance(locations, scale, noise))
    cross = covariance(new, locations, scale)
    mean = cross @ inverse @ observed
    variance = 1 - pt.diagonal(cross @ inverse @ cross.T)
    values = [rng.normal(size=(25, 2)), rng.normal(size=25), rng.normal(size=(7, 2)), 0.7, 0.4]
    assert_equal_to_stock(
        reference.gaussian_process_prediction,
        [locations, observed, new, scale, noise],
        [mean, variance],
        values,
    )


def test_low_rank(rng):
    diagonal, thin, observed = pt.vector(), pt.matrix(), pt.vector()
    value = log_density(pt.diag(diagonal) + thin @ thin.T, observed)
    assert_equal_to_stock(
        reference.low_rank,
        [diagonal, thin, observed],
        values_and_gradients(value, [diagonal, thin]),
        [rng.uniform(0.5, 2, size=30), rng.normal(size=(30, 3)), rng.normal(size=30)],
    )


@pytest.mark.parametrize("shape", [(20, 5), (5, 20), (6, 6)])
def test_linear_regression(shape, rng):
    x, y, precision = pt.matrix(), pt.vector(), pt.scalar()
    n, p = shape
    matrix = x.T @ x + precision * pt.eye(p)
    weights = pt.linalg.solve(matrix, x.T @ y)
    log_determinant = pt.linalg.slogdet(matrix)[1]
    evidence = log_density(pt.eye(n) + x @ x.T / precision, y) - 0.5 * n * np.log(2 * np.pi)
    assert_equal_to_stock(
        reference.linear_regression,
        [x, y, precision],
        [weights, log_determinant, *values_and_gradients(evidence, [precision])],
        [rng.normal(size=shape), rng.normal(size=n), 1.7],
    )
