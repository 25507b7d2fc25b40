"""Work on matrices of known structure, as it is written: what `test_linalg_structures.py` times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.assumptions import assume
from pytensor.tensor.linalg import inv, kron, slogdet, solve

from benchmarks.linalg import reference as by_lapack

Outputs = list[Any]


class Case(NamedTuple):
    """What is computed, from what, and what it is to reach.

    Attributes
    ----------
    graph
        Makes the inputs and the outputs.
    values
        Makes the arguments.
    reference
        The same by LAPACK.
    most
        How much of the reference's time it may take.
    least
        How many times faster than stock it is to be.
    """

    graph: Callable[[], tuple[list[Any], Outputs]]
    values: Callable[[], list[Any]]
    reference: Callable[..., Any]
    most: float | None = None
    least: float | None = None


def prediction(size: int) -> Case:
    """Mean and variance of a Gaussian process at 200 new points, from the inverse."""

    def graph() -> tuple[list[Any], Outputs]:
        x, new, y = pt.dmatrix("x"), pt.dmatrix("new"), pt.dvector("y")
        scale, noise = pt.dscalar("scale"), pt.dscalar("noise")

        def kernel(a: Any, b: Any) -> Any:
            distances = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
            return pt.exp(-0.5 * distances / scale**2)

        inverse = inv(kernel(x, x) + noise**2 * pt.eye(x.shape[0]))
        cross = kernel(x, new)
        mean = cross.T @ inverse @ y
        variance = 1 - pt.diagonal(cross.T @ inverse @ cross)
        return [x, y, new, scale, noise], [mean, variance]

    def values() -> list[Any]:
        rng = np.random.default_rng(0)
        numbers = [rng.normal(size=(size, 3)), rng.normal(size=size), rng.normal(size=(200, 3))]
        return [np.asarray(one) for one in (*numbers, 0.8, 0.5)]

    return Case(graph, values, by_lapack.gaussian_process_prediction, most=1.3)


def low_rank(rows: int, rank: int) -> Case:
    """A log-density with the covariance ``D + U U'``, and its gradients."""

    def graph() -> tuple[list[Any], Outputs]:
        logarithms, thin = pt.dvector("d", shape=(rows,)), pt.dmatrix("U", shape=(rows, rank))
        y = pt.dvector("y", shape=(rows,))
        diagonal = pt.exp(logarithms)
        matrix = pt.diag(diagonal) + thin @ thin.T
        cost = -0.5 * (y @ solve(matrix, y) + slogdet(matrix)[1])
        return [logarithms, thin, y], [cost, *pytensor.grad(cost, [diagonal, thin])]

    def values() -> list[Any]:
        rng = np.random.default_rng(0)
        return [rng.normal(size=rows), rng.normal(size=(rows, rank)), rng.normal(size=rows)]

    def reference(logarithms: Any, thin: Any, y: Any) -> Any:
        return by_lapack.low_rank(np.exp(logarithms), thin, y)

    return Case(graph, values, reference, least=20.0)


def regression(rows: int, columns: int) -> Case:
    """Ridge solve, log-determinant, evidence and the derivative of that by the precision."""

    def graph() -> tuple[list[Any], Outputs]:
        x, y = pt.dmatrix("x", shape=(rows, columns)), pt.dvector("y", shape=(rows,))
        logarithm = pt.dscalar("logarithm")
        precision = pt.exp(logarithm)
        matrix = x.T @ x + precision * pt.eye(columns)
        weights = solve(matrix, x.T @ y)
        log_determinant = slogdet(matrix)[1]
        misfit = y @ y - (x.T @ y) @ weights
        evidence = -0.5 * (
            misfit + log_determinant - columns * pt.log(precision) + rows * np.log(2 * np.pi)
        )
        slope = pytensor.grad(evidence, precision)
        return [x, y, logarithm], [weights, log_determinant, evidence, slope]

    def values() -> list[Any]:
        rng = np.random.default_rng(0)
        return [rng.normal(size=(rows, columns)), rng.normal(size=rows), np.asarray(0.7)]

    def reference(x: Any, y: Any, logarithm: Any) -> Any:
        return by_lapack.linear_regression(x, y, float(np.exp(logarithm)))

    return Case(graph, values, reference, most=1.5)


def kronecker(size: int, *, shifted: bool) -> Case:
    """A solve with a Kronecker product and its log-determinant."""

    def graph() -> tuple[list[Any], Outputs]:
        shape = (size, size)
        a, b, y = pt.dmatrix("a", shape=shape), pt.dmatrix("b", shape=shape), pt.dvector("y")
        left, right = (assume(one, symmetric=True) for one in (a, b))
        matrix = kron(left, right)
        if shifted:
            matrix = matrix + 0.3 * pt.eye(size * size)
        return [a, b, y], [solve(matrix, y), slogdet(matrix)[1]]

    def values() -> list[Any]:
        rng = np.random.default_rng(0)
        parts = [rng.normal(size=(size, size)) for _ in range(2)]
        return [*(one @ one.T / size + np.eye(size) for one in parts), rng.normal(size=size * size)]

    def reference(a: Any, b: Any, y: Any) -> Any:
        matrix = np.kron(a, b) + (0.3 if shifted else 0.0) * np.eye(size * size)
        return np.linalg.solve(matrix, y), np.linalg.slogdet(matrix)[1]

    return Case(graph, values, reference, least=50.0)


CASES = {
    "prediction at 200 points, N = 1000": prediction(1000),
    "prediction at 200 points, N = 2000": prediction(2000),
    "D + U U', 2000 x 20": low_rank(2000, 20),
    "linear regression, 2000 x 50": regression(2000, 50),
    "linear regression, 50 x 2000": regression(50, 2000),
    "kron(A, B), 40 x 40": kronecker(40, shifted=False),
    "kron(A, B) + c I, 40 x 40": kronecker(40, shifted=True),
}
