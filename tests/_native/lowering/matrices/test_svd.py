"""SVD, with and without the singular vectors."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.tensor import linalg
from pytensor.tensor.linalg.decomposition.svd import SVD

from support.native.functions import native_function
from support.native.lowering import rewritten_graph, run
from support.native.matrices import RTOL, Given, given_matrices, require_close, results

DTYPES = ("float64", "float32", "int16", "int64")


@given(
    given_matrices(
        kinds=("any", "singular"), is_square=False, dtypes=DTYPES, sizes=(1, 2, 3, 5, 12)
    ),
    st.booleans(),
)
def test_singular_values_and_vectors(one: Given, full: bool) -> None:
    outputs = [*SVD(full_matrices=full)(one.matrix), SVD(compute_uv=False)(one.matrix)]
    rtol, least = RTOL[outputs[1].type.dtype], min(one.expected.shape)
    expected = one.expected.astype(outputs[1].type.dtype)
    for left, values, right, alone in results(one.inputs, outputs, one.values):
        require_close(left[:, :least] * values @ right[:least], expected, rtol)
        require_close(left.T @ left, np.eye(left.shape[1]), rtol)
        require_close(right @ right.T, np.eye(right.shape[0]), rtol)
        assert left.shape[1] == (len(expected) if full else least)
        assert right.shape[0] == (expected.shape[1] if full else least)
        require_close(values, np.linalg.svd(expected, compute_uv=False), rtol)
        require_close(alone, values, rtol)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("full", [False, True])
def test_matrices_without_elements(shape, full):
    x = pt.dmatrix("x")
    outputs = [*SVD(full_matrices=full)(x), SVD(compute_uv=False)(x)]
    rows, columns = shape
    for left, values, right, alone in results([x], outputs, [np.ones(shape)]):
        # As in PyTensor's Numba implementation, although it is no basis.
        np.testing.assert_array_equal(left, np.zeros((rows, rows if full else 0)))
        np.testing.assert_array_equal(right, np.zeros((columns if full else 0, columns)))
        assert values.shape == alone.shape == (0,)


@pytest.mark.parametrize("full", [False, True])
def test_nan(full):
    x, data = pt.dmatrix("x"), np.ones((3, 2))
    data[1, 1] = np.nan
    outputs = [*SVD(full_matrices=full)(x), SVD(compute_uv=False)(x)]
    for one in run(rewritten_graph([x], outputs), [data]):
        assert np.isnan(one).all()


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (70, 30), (30, 70), (40, 40), (200, 3)])
def test_value_and_gradient(shape):
    x, weights = pt.dmatrix("x"), pt.dmatrix("weights")
    left, values, right = linalg.svd(x, full_matrices=False)
    # The cost does not depend on the signs of pairs of vectors.
    cost = (weights * (left**2 @ right**2)).sum() + pt.exp(values / 20).sum()
    cost += linalg.norm(x, ord=2) + linalg.norm(x, ord="nuc")
    outputs = [cost, pytensor.grad(cost, x)]
    random = np.random.default_rng(6)
    data = random.normal(size=shape) + 5 * np.diag(np.arange(max(shape)))[: shape[0], : shape[1]]
    given = data, random.normal(size=shape)
    found = native_function([x, weights], outputs)(*given)
    expected = pytensor.function([x, weights], outputs, mode="FAST_COMPILE")(*given)
    for one, other in zip(found, expected, strict=True):
        require_close(one, other, 1e-8)
