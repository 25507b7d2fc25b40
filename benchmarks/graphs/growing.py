"""Graphs of any size: a chain of small kernels, and one graph that fuses into many."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt

from benchmarks.graphs.reference import GraphIO, Reference, random_numbers


def deep_small_kernels(n: int) -> GraphIO:
    """A chain of ``n`` small kernels that transposes keep apart."""
    x = pt.matrix("x")
    out = x
    for _ in range(n):
        out = pt.sin(out.T) + pt.cos(out)
    return [x], [out]


def deep_values(size: int) -> list[np.ndarray]:
    # The graph adds a matrix to its transpose, so the matrix must be square.
    side = max(1, round(np.sqrt(size)))
    return [random_numbers().normal(size=(side, side))]


def large_fuseable_graph(n: int) -> GraphIO:
    """The gradients of a sum of ``n`` normal log-densities with a common scale."""
    sd = pt.scalar("sd")
    means = pt.vector("means")
    minus_half, half, two, minus_two = (pt.constant(c) for c in (-0.5, 0.5, 2, -2))
    ones = pt.constant(np.ones(10))
    factors = []
    for i in range(n):
        f = minus_half * sd**minus_two * (ones - means[i]) ** two + half * pt.log(
            half * sd**minus_two / np.pi
        )
        factors.append(pt.sum(f))
    logp = pt.add(*factors)
    return [sd, means], [pytensor.grad(logp, v) for v in (sd, means)]


def large_values(n: int, size: int) -> list[np.ndarray]:
    return [np.array(1.3), random_numbers().normal(size=max(n, size))]


def deep(n: int) -> Reference:
    return Reference(f"deep({n})", lambda: deep_small_kernels(n), deep_values)


def large(n: int) -> Reference:
    return Reference(
        f"large({n})", lambda: large_fuseable_graph(n), lambda size: large_values(n, size)
    )
