"""QR, with and without pivoting."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from pytensor.tensor import linalg
from pytensor.tensor.linalg.decomposition.qr import QR

from pytensor_fuse._native.lowering.registry import lower
from support.native.functions import native_function
from support.native.lowering import check, rewritten_graph, run
from support.native.matrices import RTOL, Given, given_matrices, require_close, results


@given(
    given_matrices(
        kinds=("any", "singular"),
        is_square=False,
        dtypes=("float64", "float32", "int64"),
        sizes=(1, 2, 3, 5, 12),
    ),
    st.sampled_from(["full", "economic"]),
    st.booleans(),
)
def test_factors(one: Given, mode: str, pivoting: bool) -> None:
    outputs = QR(mode=mode, pivoting=pivoting)(one.matrix)
    rtol = RTOL[outputs[0].type.dtype]
    expected = one.expected.astype(outputs[0].type.dtype)
    for q, r, *order in results(one.inputs, outputs, one.values):
        n_kept = len(expected) if mode == "full" else min(expected.shape)
        assert q.shape == (len(expected), n_kept)
        assert r.shape == (n_kept, expected.shape[1])
        moved = expected[:, order[0]] if order else expected
        require_close(q @ r, moved, rtol)
        require_close(q.T @ q, np.eye(n_kept), rtol)
        np.testing.assert_array_equal(r, np.triu(r))
        known = scipy.linalg.qr(expected, mode="r", pivoting=pivoting)
        require_close(r, known[0][:n_kept], rtol)
        if order:
            diagonal = np.abs(np.diag(r))
            assert (diagonal[1:] <= diagonal[:-1] * (1 + rtol) + rtol).all()


@pytest.mark.parametrize("pivoting", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (3, 5), (1, 2)])
def test_the_triangle_alone(pivoting, shape):
    x = pt.tensor("x", dtype="float64", shape=shape)
    outputs = QR(mode="r", pivoting=pivoting)(x, return_list=True)
    check([x], outputs, [np.random.default_rng(7).normal(size=shape)], rtol=1e-12)


@pytest.mark.parametrize("mode", ["r", "raw"])
def test_shapes_on_which_pytensor_disagrees_are_left_to_numba(mode):
    node = QR(mode=mode)(pt.dmatrix("x"), return_list=True)[0].owner
    assert "mode" in (lower.refusal(node) or "")


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("mode", ["full", "economic"])
def test_matrices_without_elements(shape, mode):
    x = pt.dmatrix("x")
    rows, columns = shape
    n_kept = rows if mode == "full" else 0
    for q, r, order in results([x], QR(mode=mode, pivoting=True)(x), [np.ones(shape)]):
        # As in PyTensor's Numba implementation, although it is no basis, and there is no
        # permutation.
        np.testing.assert_array_equal(q, np.zeros((rows, n_kept)))
        assert r.shape == (n_kept, columns)
        np.testing.assert_array_equal(order, np.zeros(columns))


@pytest.mark.parametrize("pivoting", [False, True])
def test_nan(pivoting):
    x, data = pt.dmatrix("x"), np.random.default_rng(8).normal(size=(3, 3))
    data[1, 1] = np.nan
    found = run(rewritten_graph([x], QR(pivoting=pivoting)(x)), [data])
    expected = scipy.linalg.qr(data, pivoting=pivoting, check_finite=False)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("shape", [(4, 3), (3, 3), (3, 5), (70, 40)])
def test_value_and_gradient(shape):
    x, weights = pt.tensor("x", shape=shape, dtype="float64"), pt.dmatrix("weights")
    q, r = linalg.qr(x, mode="economic")
    cost = (weights * (q @ r**2)).sum() + (q**3).sum()
    outputs = [cost, pytensor.grad(cost, x)]
    random = np.random.default_rng(9)
    given = random.normal(size=shape) + 3 * np.eye(*shape), random.normal(size=shape)
    found = native_function([x, weights], outputs)(*given)
    expected = pytensor.function([x, weights], outputs, mode="FAST_COMPILE")(*given)
    for one, other in zip(found, expected, strict=True):
        require_close(one, other, 1e-9)
