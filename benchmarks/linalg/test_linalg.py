"""Gaussian processes with the feature `linalg`: against LAPACK by hand, and against stock."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.assumptions import assume
from pytensor.compile.executor import Function
from pytensor.compile.mode import Mode
from pytensor.graph.replace import clone_replace
from pytensor.tensor.linalg import cholesky, inv, slogdet, solve, solve_triangular

from benchmarks.linalg.by_feature import compiled, only_linalg
from benchmarks.linalg.reference import gaussian_process, gaussian_process_by_lu
from benchmarks.measuring.results import assert_same
from benchmarks.measuring.rows import Report, Row
from benchmarks.measuring.turns import call_times, in_turns, ratio_of, seconds

LINKERS = ["NUMBA", "CVM"]
ROUNDS = 7
X, Y = pt.dmatrix("X"), pt.dvector("y")
SCALE, NOISE = pt.dscalar("scale"), pt.dscalar("noise")


def covariance() -> Any:
    """The covariance that the reference has."""
    squares = (X**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * X @ X.T
    return pt.exp(-0.5 * distances / SCALE**2) + NOISE**2 * pt.eye(X.shape[0])


def by_inverse(matrix: Any) -> Any:
    return -0.5 * (Y @ inv(matrix) @ Y + slogdet(matrix)[1])


def by_solve(matrix: Any) -> Any:
    return -0.5 * (Y @ solve(matrix, Y) + slogdet(matrix)[1])


def by_hand(matrix: Any) -> Any:
    factor = cholesky(matrix)
    white = solve_triangular(factor, Y, lower=True)
    return -0.5 * white @ white - pt.log(pt.diagonal(factor)).sum()


def assumed(density: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda matrix: density(assume(matrix, positive_definite=True))


def multivariate_normal(parameter: str) -> Callable[[Any], Any]:
    def density(matrix: Any) -> Any:
        pymc = pytest.importorskip("pymc")
        given = cholesky(matrix) if parameter == "chol" else matrix
        normal = pymc.MvNormal.dist(mu=pt.zeros(X.shape[0]), **{parameter: given})
        return pymc.logp(normal, Y) + 0.5 * X.shape[0] * np.log(2 * np.pi)

    return density


def marginal() -> tuple[list[Any], list[Any]]:
    """Return the inputs and the log-density of PyMC's own process, which makes the covariance."""
    pymc = pytest.importorskip("pymc")
    locations = pytensor.shared(np.zeros((3, 3)))
    observed = pytensor.shared(np.zeros(3))
    with pymc.Model() as model:
        scale, noise = pymc.Flat("scale"), pymc.Flat("noise")
        process = pymc.gp.Marginal(cov_func=pymc.gp.cov.ExpQuad(3, ls=scale))
        process.marginal_likelihood("y", X=locations, y=observed, sigma=noise, jitter=0.0)
    density = model.logp() + 0.5 * X.shape[0] * np.log(2 * np.pi)
    return model.value_vars, clone_replace([density], {locations: X, observed: Y})


# How it is written; the reference; the most that it may take of its time, and the least of stock's.
CASES: dict[str, tuple[Callable[[Any], Any] | None, Callable[..., Any], float, float]] = {
    "inv, positive definite": (assumed(by_inverse), gaussian_process, 1.3, 2.5),
    "solve, positive definite": (assumed(by_solve), gaussian_process, 1.3, 2.5),
    "inv, by its form": (by_inverse, gaussian_process, 1.3, 2.5),
    "inv, nothing known": (by_inverse, gaussian_process_by_lu, 1.3, 1.5),
    "solve, nothing known": (by_solve, gaussian_process_by_lu, 1.3, 1.5),
    "cholesky by hand": (by_hand, gaussian_process, 1.4, 1.5),
    "MvNormal(cov)": (multivariate_normal("cov"), gaussian_process, 1.4, 1.5),
    "gp.Marginal": (None, gaussian_process, 1.4, 1.5),
    "MvNormal(chol)": (multivariate_normal("chol"), gaussian_process, 1.4, 1.5),
}


def graph_of(case: str) -> tuple[list[Any], list[Any]]:
    """Return the parameters, and the value with its derivatives by them."""
    density = CASES[case][0]
    if density is None:
        parameters, [cost] = marginal()
    else:
        parameters, cost = [SCALE, NOISE], density(covariance())
    return [X, Y, *parameters], [cost, *pytensor.grad(cost, parameters)]


# The covariance shows that it is definite: without this rule nothing is known of it.
BY_FORM = "linalg_work_on_definite_matrix"


@cache
def both(case: str, linker: str) -> tuple[Function, Function]:
    graph = graph_of(case)
    without = [BY_FORM] if CASES[case][1] is gaussian_process_by_lu else []
    return compiled(*graph, linker, ours=False), compiled(*graph, linker, *without, ours=True)


def values(size: int) -> list[Any]:
    rng = np.random.default_rng(0)
    numbers = [rng.normal(size=(size, 3)), rng.normal(size=size), 0.8, 0.5]
    return [np.asarray(value) for value in numbers]


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("size", [1000, 2000])
def test_run_time(
    report: Report, request: pytest.FixtureRequest, size: int, case: str, linker: str
) -> None:
    if size > 1000 and not request.config.getoption("--large-matrices"):
        pytest.skip("with --large-matrices")
    stock, ours = both(case, linker)
    _, by_lapack, most, least = CASES[case]
    arguments = values(size)
    numbers = by_lapack(*arguments)
    for function in (ours, stock):
        assert_same(function(*arguments), numbers)
    calls = {"stock": stock, "ours": ours, "LAPACK": by_lapack}
    # The clock of the thread stands still while something else has the processor. LAPACK is to use
    # one thread: more would not be seen by it.
    times = call_times(calls, arguments, ROUNDS, clock=time.thread_time)
    graph = f"{case}, N = {size}"
    against = ratio_of(times["ours"], times["LAPACK"])
    faster = ratio_of(times["stock"], times["ours"])
    report(
        Row(f"ours / LAPACK by hand ({linker})", graph, against, ceiling=most),
        Row(f"linalg ({linker})", graph, faster, floor=least),
    )


@pytest.mark.parametrize("linker", LINKERS)
def test_faster_than_jax(report: Report, linker: str) -> None:
    """By the clock of the process, which counts all threads: JAX has its own."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy

    def density(parameters: Any, x: Any, y: Any) -> Any:
        squares = (x**2).sum(axis=1)
        distances = squares[:, None] + squares - 2 * x @ x.T
        smooth = jnp.exp(-0.5 * distances / parameters[0] ** 2)
        factor = jax.scipy.linalg.cho_factor(smooth + parameters[1] ** 2 * jnp.eye(len(y)), True)
        quadratic = y @ jax.scipy.linalg.cho_solve(factor, y)
        return -0.5 * quadratic - jnp.log(jnp.diagonal(factor[0])).sum()

    theirs = jax.jit(jax.value_and_grad(density))
    _, ours = both("inv, positive definite", linker)
    x, y, *parameters = arguments = values(1000)
    given = [jnp.asarray(one) for one in (parameters, x, y)]
    value, slopes = jax.block_until_ready(theirs(*given))
    assert_same(ours(*arguments), [value, *slopes])
    calls = {"JAX": lambda *_: jax.block_until_ready(theirs(*given)), "ours": ours}
    times = call_times(calls, arguments, ROUNDS)
    ratio = ratio_of(times["JAX"], times["ours"])
    what = f"JAX / ours, processor time ({linker})"
    report(Row(what, "exact GP, N = 1000", ratio, floor=1.0))


@pytest.mark.parametrize(
    "case",
    [
        "inv, positive definite",
        "solve, positive definite",
        "inv, by its form",
        "cholesky by hand",
        "MvNormal(cov)",
        "gp.Marginal",
    ],
)
def test_compile_time(report: Report, case: str) -> None:
    """Rewriting, by the clock of the thread; what is rewritten is then there to be compiled."""
    graph = graph_of(case)
    mode = Mode("py", "fast_run")

    def rewriting(ours: bool) -> float:
        with only_linalg(ours):
            return seconds(lambda: pytensor.function(*graph, mode=mode), clock=time.thread_time)

    sides = {"stock": lambda: rewriting(False), "ours": lambda: rewriting(True)}
    times = in_turns(sides, ROUNDS, warmup=2)
    slower = ratio_of(times["ours"], times["stock"])
    report(Row("compile with linalg / without (py)", case, slower, ceiling=1.05))
