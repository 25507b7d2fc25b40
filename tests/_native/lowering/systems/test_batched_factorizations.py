"""Factorizations of each matrix of a batch, as one function of machine code."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor import linalg
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.summary import SLogDet

from support.native.functions import native_function
from support.native.matrices import require_close

MAKERS = {
    "lu": linalg.lu,
    "lu of rows": lambda x: linalg.lu(x, p_indices=True),
    "lu_factor": linalg.lu_factor,
    "det": lambda x: [linalg.det(x), *linalg.slogdet(x)],
    "eigh": lambda x: [*linalg.eigh(x), linalg.eigvalsh(x)],
    "eigh by division": lambda x: linalg.eigh(x, driver="evd"),
    "svd": lambda x: [*linalg.svd(x), linalg.svd(x, compute_uv=False)],
    "qr": lambda x: linalg.qr(x, pivoting=True),
    "expm": lambda x: [linalg.expm(x)],
    "blocks": lambda x: [linalg.block_diag(x, x)],
}


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_batches(name):
    x = pt.dtensor3("x")
    outputs = list(MAKERS[name](x))
    function = native_function([x], outputs)
    random = np.random.default_rng(13)
    for shape in ((3, 4, 4), (2, 1, 1)):
        data = random.normal(size=shape)
        data = data + data.swapaxes(1, 2) + 3 * np.eye(shape[1])
        expected = pytensor.function([x], outputs, mode="FAST_COMPILE")(data)
        for found, other in zip(function(data), expected, strict=True):
            # Vectors may have other signs.
            require_close(np.abs(found), np.abs(other), 1e-12)
    assert all(len(found) == 0 for found in function(np.ones((0, 2, 2))))


def test_one_singular_matrix_of_a_batch():
    x = pt.dtensor3("x")
    data = np.stack([np.eye(2), np.ones((2, 2)), 2 * np.eye(2)])
    factors, _ = native_function([x], linalg.lu_factor(x))(data)
    assert np.isnan(factors).any(axis=(1, 2)).tolist() == [False, True, False]
    sign, logarithm = native_function([x], Blockwise(SLogDet())(x))(data)
    assert sign.tolist() == [1, 0, 1]
    require_close(np.exp(logarithm), np.array([1.0, 0.0, 4.0]), 1e-12)


def test_one_matrix_of_a_batch_with_nan():
    x = pt.dtensor3("x")
    data = np.stack([np.eye(2), np.full((2, 2), np.nan), 2 * np.eye(2)])
    outputs = [linalg.eigvalsh(x), linalg.svd(x, compute_uv=False), linalg.expm(x).sum(axis=-1)]
    for found in native_function([x], outputs)(data):
        assert np.isnan(found).all(axis=1).tolist() == [False, True, False]
        assert not np.isnan(found[[0, 2]]).any()
