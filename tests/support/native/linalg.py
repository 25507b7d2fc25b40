"""Matrices for tests of linear algebra in programs: their layouts and contents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from hypothesis import strategies as st
from pytensor.tensor.type import TensorType

from support.linalg.structures import general, positive_definite
from support.native.lowering import check

TOLERANCES = {"float64": 1e-9, "float32": 1e-3}

dtypes = st.sampled_from(sorted(TOLERANCES))
sizes = st.sampled_from([0, 1, 2, 3, 5, 8, 9, 17])
#: Numbers of right-hand sides; None is a vector.
widths = st.sampled_from([None, 0, 1, 2, 5])
seeds = st.integers(0, 5)


def _with_more_rows(values):
    return np.concatenate([np.full((1, *values.shape[1:]), 7, values.dtype), values])


#: Derivations of an array from another one: in the graph, and the values of that other one.
LAYOUTS = {
    "an input": (lambda x: x, lambda values: values),
    "computed": (lambda x: -x, lambda values: -values),
    "transposed": (lambda x: x.T, lambda values: values.T),
    "computed, transposed": (lambda x: (-x).T, lambda values: -values.T),
    "reversed": (lambda x: x[::-1], lambda values: values[::-1]),
    "a part": (lambda x: x[1:], _with_more_rows),
}

layouts = st.sampled_from(list(LAYOUTS))


@dataclass
class Given:
    """An array in a graph.

    Attributes
    ----------
    input, value
        The input of the graph that it is derived from, and its value.
    variable
        The array.
    """

    input: object
    value: np.ndarray
    variable: object


def given_as(name, values, layout="an input", *, is_static=False):
    """Return an array with given values in a given layout."""
    graph, before = LAYOUTS[layout]
    value = np.ascontiguousarray(before(values))
    shape = value.shape if is_static else (None,) * value.ndim
    variable = TensorType(str(value.dtype), shape)(name)
    return Given(variable, value, graph(variable))


def right_side(n, width, seed, dtype):
    """Return right-hand sides, a vector or columns."""
    shape = (n,) if width is None else (n, width)
    return np.random.default_rng(seed + 100).normal(size=shape).astype(dtype)


def definite(n, seed, dtype):
    return positive_definite(n, seed=seed, dtype=dtype)


def any_matrix(n, seed, dtype):
    return general(n, seed=seed, dtype=dtype)


def symmetric(n, seed, dtype):
    """Return a symmetric matrix that is neither definite nor nearly singular."""
    half = general(n, seed=seed, dtype="float64")
    values, vectors = np.linalg.eigh(half + half.T)
    moved = values + np.where(values < 0, -0.5, 0.5)
    return ((vectors * moved) @ vectors.T).astype(dtype)


def lower_factor(n, seed, dtype):
    return np.linalg.cholesky(definite(n, seed, "float64")).astype(dtype)


def check_linalg(arrays, outputs, *, destroyed=(), rewrites=True):
    """Require of a graph the same as `lowering.check`, within the dtype's tolerance."""
    [dtype] = {str(one.value.dtype) for one in arrays if one.value.dtype.kind == "f"}
    check(
        [one.input for one in arrays],
        outputs,
        [one.value for one in arrays],
        destroyed=destroyed,
        rewrites=rewrites,
        rtol=TOLERANCES[dtype],
    )


def readers_of(variable, seed=3):
    """Return an expression that depends on all elements of an array, so that any change shows."""
    return pt.sum(variable * 1.5) + pt.sum(variable[::-1] ** 2)


def tridiagonal(n, seed, dtype):
    """Return a tridiagonal matrix that requires row swaps."""
    rng = np.random.default_rng(seed + 50)
    matrix = np.diag(rng.uniform(0.1, 0.4, size=n))
    for offset in (-1, 1):
        rows = np.arange(max(-offset, 0), n - max(offset, 0))
        matrix[rows, rows + offset] = rng.uniform(0.5, 1, size=len(rows)) * (2 - offset)
    # Not nearly singular.
    values = np.linalg.svd(matrix, compute_uv=False)
    return (matrix + np.eye(n) * (3 if n and values[-1] < 0.3 else 0)).astype(dtype)
