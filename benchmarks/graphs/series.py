"""Time series, state-space and ODE models, which are Scans.

Three are models of which a modeller waits for value and gradient: stochastic volatility, a linear
Gaussian state-space model by the Kalman filter (Kalman, 1960), and the predator-prey equations of
Lotka and Volterra by the classical Runge-Kutta method. Three have steps that do little, so that a
call takes what a step takes: 1,000 of them, with a number, a vector of 10 or matrices of 4 x 4 as
state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt

N_STATES, N_SEEN = 4, 2

# The inputs, what is differentiated with respect to them, and their values.
Made = tuple[list[Any], Any, list[np.ndarray]]


@dataclass(frozen=True)
class Series:
    """A model written in PyTensor: ``make(rows)`` has its inputs, their log-density and values."""

    name: str
    make: Callable[[int], Made]
    rows: int
    many: int | None = None

    def graph(self, rows: int | None = None) -> tuple[list[Any], list[Any], list[np.ndarray]]:
        """Inputs, the value with its gradient, and values for the inputs."""
        inputs, value, values = self.make(self.rows if rows is None else rows)
        return inputs, [value, *pytensor.grad(value, inputs)], values

    def pymc(self, rows: int | None = None) -> Any:
        raise NotImplementedError(f"{self.name} is a graph of PyTensor, and no model of PyMC's")


def _scan(step: Callable[..., Any], **given: Any) -> Any:
    return pytensor.scan(step, return_updates=False, **given)


def stochastic_volatility(rows: int) -> Made:
    """Returns whose log-volatility is an autoregression of order one, not centred."""
    rng = np.random.default_rng(31)
    y = rng.normal(size=rows)
    z, phi, sigma, mu = pt.vector("z", shape=(rows,)), *map(pt.scalar, ("phi", "sigma", "mu"))
    h = _scan(
        lambda z, h, mu, phi, sigma: mu + phi * (h - mu) + sigma * z,
        sequences=[z],
        outputs_info=[mu],
        non_sequences=[mu, phi, sigma],
    )
    value = (-0.5 * h - 0.5 * y**2 * pt.exp(-h)).sum() - 0.5 * (z**2).sum()
    values = [rng.normal(size=rows) * 0.1, *(np.asarray(one) for one in (0.9, 0.3, 0.1))]
    return [z, phi, sigma, mu], value, values


def kalman_filter(rows: int) -> Made:
    """The log-likelihood of a linear Gaussian state-space model."""
    rng = np.random.default_rng(31)
    seen = pt.as_tensor(rng.normal(size=(rows, N_SEEN)))
    design = pt.as_tensor(rng.normal(size=(N_SEEN, N_STATES)))
    transition, q, r = pt.matrix("T", shape=(N_STATES, N_STATES)), pt.scalar("q"), pt.scalar("r")

    def step(y: Any, mean: Any, cov: Any, total: Any, transition: Any, q: Any, r: Any) -> Any:
        of_seen = design @ cov @ design.T + r * pt.eye(N_SEEN)
        error = y - design @ mean
        gain = pt.linalg.solve(of_seen, design @ cov, assume_a="pos").T
        after = transition @ (mean + gain @ error)
        cov_after = transition @ (cov - gain @ design @ cov) @ transition.T + q * pt.eye(N_STATES)
        log_det = pt.log(pt.diag(pt.linalg.cholesky(of_seen))).sum()
        squares = error @ pt.linalg.solve(of_seen, error, assume_a="pos", b_ndim=1)
        return after, cov_after, total - log_det - 0.5 * squares

    *_, totals = _scan(
        step,
        sequences=[seen],
        outputs_info=[pt.zeros(N_STATES), pt.eye(N_STATES), pt.constant(np.float64(0))],
        non_sequences=[transition, q, r],
    )
    return [transition, q, r], totals[-1], [np.eye(N_STATES) * 0.8, np.array(0.5), np.array(0.7)]


def lotka_volterra(rows: int) -> Made:
    """Numbers of predators and prey, whose logarithms are observed."""
    rng = np.random.default_rng(31)
    rates, start = pt.vector("rates", shape=(4,)), pt.vector("start", shape=(2,))
    seen = np.log(np.abs(rng.normal(size=(rows, 2))) + 1)
    h = 0.05

    def slope(y: Any, rates: Any) -> Any:
        prey, predators = y[0], y[1]
        return pt.stack(
            [
                rates[0] * prey - rates[1] * prey * predators,
                rates[3] * prey * predators - rates[2] * predators,
            ]
        )

    def step(y: Any, rates: Any) -> Any:
        k1 = slope(y, rates)
        k2 = slope(y + h / 2 * k1, rates)
        k3 = slope(y + h / 2 * k2, rates)
        k4 = slope(y + h * k3, rates)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    y = _scan(step, outputs_info=[start], non_sequences=[rates], n_steps=rows)
    value = -((pt.log(y) - seen) ** 2).sum()
    return [rates, start], value, [np.array([0.5, 0.02, 0.8, 0.02]), np.array([10.0, 5.0])]


def scalar_steps(rows: int) -> Made:
    """A number that each step changes a little."""
    start, a = pt.scalar("start"), pt.scalar("a")
    x = _scan(
        lambda x, a: a * x + pt.tanh(x), outputs_info=[start], non_sequences=[a], n_steps=rows
    )
    return [start, a], x.sum(), [np.array(0.3), np.array(0.2)]


def vector_steps(rows: int) -> Made:
    """A vector of 10, which a matrix mixes."""
    rng = np.random.default_rng(31)
    start, w = pt.vector("start", shape=(10,)), pt.matrix("w", shape=(10, 10))
    x = _scan(lambda x, w: pt.tanh(w @ x), outputs_info=[start], non_sequences=[w], n_steps=rows)
    return [start, w], x.sum(), [rng.normal(size=10), rng.normal(size=(10, 10)) * 0.3]


def matrix_steps(rows: int) -> Made:
    """Matrices of 4 x 4, and a solution with them in each step."""
    rng = np.random.default_rng(31)
    start, a = pt.matrix("start", shape=(4, 4)), pt.matrix("a", shape=(4, 4))

    def step(x: Any, a: Any) -> Any:
        return pt.linalg.solve(2 * pt.eye(4) + 0.1 * x, a, b_ndim=2) + 0.1 * x

    x = _scan(step, outputs_info=[start], non_sequences=[a], n_steps=rows)
    return [start, a], x.sum(), [rng.normal(size=(4, 4)), rng.normal(size=(4, 4)) * 0.3]


SERIES = {
    one.name: one
    for one in (
        Series("stochastic-volatility", stochastic_volatility, 500),
        Series("kalman-filter", kalman_filter, 100),
        Series("lotka-volterra", lotka_volterra, 200),
        Series("scalar-steps", scalar_steps, 1000),
        Series("vector-steps", vector_steps, 1000),
        Series("matrix-steps", matrix_steps, 1000),
    )
}
