"""Graphs with data in their constants, and what is read of a constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.fg import FunctionGraph

from pytensor_fuse import enabled
from pytensor_fuse._cache.data.readings import Readings, large_constants
from pytensor_fuse._cache.key.places import Origins
from pytensor_fuse._pytensor.rewriting.constant_reads import watching
from support.cached import (
    PYTHON,
    assert_same_graphs,
    assert_same_results,
    compiled,
)

Graph = Callable[..., tuple[list[Any], list[Any]]]

X = np.random.default_rng(1).normal(size=(12, 3))
Y = np.random.default_rng(2).normal(size=12)
COUNTS = np.arange(12) % 5
PLACES = np.arange(12) % 4


def regression(x: Any = X, y: Any = Y) -> tuple[list[Any], list[Any]]:
    b, s = pt.vector("b"), pt.scalar("s")
    error = (pt.constant(y, name="y") - pt.constant(x) @ b) / pt.exp(s)
    cost = (-0.5 * error**2 - s).sum()
    return [b, s], [cost, *pt.grad(cost, [b, s])]


def poisson(x: Any = X, y: Any = COUNTS) -> tuple[list[Any], list[Any]]:
    b = pt.vector("b")
    eta = pt.constant(x) @ b
    cost = (pt.constant(y) * eta - pt.exp(eta) - pt.gammaln(pt.constant(y) + 1)).sum()
    return [b], [cost, pt.grad(cost, b)]


def levels(places: Any = PLACES, y: Any = Y) -> tuple[list[Any], list[Any]]:
    a = pt.vector("a")
    cost = ((pt.constant(y) - a[pt.constant(places)]) ** 2).sum()
    return [a], [cost, pt.grad(cost, a)]


def covariance(x: Any = Y, y: Any = Y**2) -> tuple[list[Any], list[Any]]:
    scale, places = pt.scalar("scale"), pt.constant(x)
    squared = (places[:, None] - places[None, :]) ** 2
    matrix = pt.exp(-squared * scale**2) + pt.eye(12)
    factor = pt.linalg.cholesky(matrix)
    half = pt.linalg.solve_triangular(factor, pt.constant(y), lower=True, b_ndim=1)
    cost = half.dot(half) + pt.log(pt.diag(factor)).sum()
    return [scale], [cost]


def branches(x: Any = X, y: Any = Y) -> tuple[list[Any], list[Any]]:
    b = pt.vector("b", shape=(3,))
    first, second = pt.constant(x), pt.constant(y)[:, None]
    return [b], [first * b * second * 2, first + b + second + first, pt.abs(first) * b]


def scaled(y: Any = Y) -> tuple[list[Any], list[Any]]:
    b = pt.scalar("b")
    return [b], [pt.constant(y) * b, pt.switch(pt.constant(y) > 0, b, -b).sum()]


GRAPHS: list[Graph] = [regression, poisson, levels, covariance, branches, scaled]
VALUES = {"b": np.array([0.1, -0.2, 0.3]), "s": 0.5, "a": np.arange(4.0), "scale": 0.7, "x": Y}


def values_of(graph: Graph, inputs: list[Any]) -> list[Any]:
    return [np.asarray(0.3) if one.ndim == 0 else VALUES[one.name] for one in inputs]


def function_of(graph: Graph, *data: Any, mode: Any = PYTHON) -> Any:
    inputs, outputs = graph(*data)
    function = compiled(inputs, outputs, mode=mode)
    with enabled(False, "cache"):
        fresh = compiled(inputs, outputs, mode=mode)
    assert_same_graphs(function, fresh)
    assert_same_results(function, fresh, values_of(graph, inputs))
    return function


def constant() -> Any:
    return pt.constant(Y.copy())


def watched(read: Callable[[Any], object], of: Any) -> Readings:
    """Return what is noted while ``read`` is called."""
    b = pt.scalar("b")
    fgraph = FunctionGraph([b], [of * b], clone=False)
    origins = Origins(fgraph.inputs, fgraph.outputs)
    noted = Readings(origins, large_constants(origins))
    with watching(noted):
        read(of)
    return noted
