"""Eigh and Eigvalsh of one matrix and of a pair."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from pytensor.tensor import linalg
from pytensor.tensor.linalg.decomposition.eigen import Eigh, Eigvalsh

from support.native.functions import native_function
from support.native.lowering import check_failure, rewritten_graph, run
from support.native.matrices import RTOL, Given, given_matrices, require_close, results

BAD = (np.nan, np.inf)


def of_triangle(data: np.ndarray, lower: bool) -> np.ndarray:
    """Return the symmetric matrix with a given triangle."""
    kept = np.tril(data) if lower else np.triu(data)
    return kept + kept.T - np.diag(np.diag(data))


@given(
    given_matrices(kinds=("any", "symmetric"), dtypes=("float64", "float32", "int64")),
    st.booleans(),
    st.sampled_from(["evr", "evd"]),
)
def test_one_matrix(one: Given, lower: bool, driver: str) -> None:
    outputs = [*Eigh(lower=lower, driver=driver)(one.matrix), Eigvalsh(lower=lower)(one.matrix)]
    rtol = RTOL[outputs[0].type.dtype]
    whole = of_triangle(one.expected, lower).astype(outputs[0].type.dtype)
    for values, vectors, alone in results(one.inputs, outputs, one.values):
        require_close(vectors * values, whole @ vectors, rtol)
        require_close(vectors.T @ vectors, np.eye(len(whole)), rtol)
        if len(whole):
            require_close(values, scipy.linalg.eigvalsh(whole), rtol)
        require_close(alone, values, rtol)


@given(
    given_matrices(kinds=("symmetric",), sizes=(1, 2, 5)),
    st.booleans(),
    st.sampled_from(["float64", "float32"]),
)
def test_a_pair(one: Given, lower: bool, dtype: str) -> None:
    b = pt.matrix("b", dtype=dtype)
    random = np.random.default_rng(len(one.expected))
    other = random.normal(size=one.expected.shape)
    other = (other @ other.T + np.eye(len(other))).astype(dtype)
    outputs = [*Eigh(lower=lower)(one.matrix, b), Eigvalsh(lower=lower)(one.matrix, b)]
    rtol = max(RTOL[dtype], RTOL[str(one.expected.dtype)])
    whole = of_triangle(one.expected, lower)
    for values, vectors, alone in results([*one.inputs, b], outputs, [*one.values, other]):
        require_close(other @ vectors * values, whole @ vectors, rtol)
        require_close(vectors.T @ other @ vectors, np.eye(len(whole)), rtol)
        require_close(values, scipy.linalg.eigvalsh(whole, other), rtol)
        require_close(alone, values, rtol)


@pytest.mark.parametrize("lower", [False, True])
def test_the_other_triangle_is_not_read(lower):
    x = pt.dmatrix("x")
    data = np.random.default_rng(0).normal(size=(5, 5))
    hidden = np.where(np.tri(5, k=-1, dtype=bool).T if lower else np.tri(5, k=-1, dtype=bool), 9, 0)
    outputs = [*Eigh(lower=lower)(x), *Eigh(lower=lower, driver="evd")(x), Eigvalsh(lower=lower)(x)]
    graph = rewritten_graph([x], outputs)
    for one, other in zip(run(graph, [data]), run(graph, [data + hidden]), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("place", [(0, 0), (2, 1), (2, 2)])
@pytest.mark.parametrize("size", [3, 40])
def test_numbers_that_are_not_finite(bad, place, size):
    x = pt.dmatrix("x")
    data = np.eye(size)
    data[place] = data[place[::-1]] = bad
    outputs = [*Eigh()(x), *Eigh(driver="evd")(x), Eigvalsh()(x)]
    for one in native_function([x], outputs)(data):
        assert np.isnan(one).all()


def test_a_second_matrix_that_is_not_positive_definite():
    x, b = pt.dmatrices("x", "b")
    outputs = [*Eigh()(x, b), Eigvalsh()(x, b)]
    for one in run(rewritten_graph([x, b], outputs), [np.eye(3), -np.eye(3)]):
        assert np.isnan(one).all()


@pytest.mark.parametrize("make", [lambda x: Eigh()(x), lambda x: [Eigvalsh()(x)]])
def test_errors(make):
    x = pt.dmatrix("x")
    text = "Last 2 dimensions of A must be square"
    for shape in ((2, 3), (3, 2), (0, 1)):
        check_failure([x], make(x), [np.ones(shape)], np.linalg.LinAlgError, text)


def test_pairs_of_other_shapes():
    x, b = pt.dmatrices("x", "b")
    text = "A and B must have the same shape"
    for shape in ((3, 3), (2, 3), (3, 2)):
        values = [np.eye(2), np.ones(shape)]
        check_failure([x, b], Eigh()(x, b), values, np.linalg.LinAlgError, text)


@pytest.mark.parametrize("driver", ["evr", "evd"])
@pytest.mark.parametrize("size", [1, 4, 70])
def test_value_and_gradient(driver, size):
    x, weights = pt.dmatrix("x"), pt.dmatrix("weights")
    values, vectors = linalg.eigh(x, driver=driver)
    # The cost does not depend on the signs of eigenvectors.
    cost = (weights * vectors**2).sum() + (weights[0] * values).sum()
    cost += pt.exp(linalg.eigvalsh(x) / 50).sum()
    outputs = [cost, pytensor.grad(cost, x)]
    random = np.random.default_rng(5)
    data = random.normal(size=(size, size))
    given = data + data.T + np.diag(10.0 * np.arange(size)), random.normal(size=(size, size))
    found = native_function([x, weights], outputs)(*given)
    expected = pytensor.function([x, weights], outputs, mode="FAST_COMPILE")(*given)
    for one, other in zip(found, expected, strict=True):
        require_close(one, other, 1e-9)
