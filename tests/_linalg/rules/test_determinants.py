"""The gradient of a logarithm of a determinant, without the determinant."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.linalg import det, inv, slogdet

from support.linalg.rules import compile_both

A = pt.dmatrix("A")
G = pt.dscalar("g")


def signs(function):
    return sum(str(node.op).count("Sign") for node in function.maker.fgraph.apply_nodes)


def matrix(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, n))


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("sign", [-1, 1])
def test_sign_cancels_with_the_determinant(n, sign):
    value = matrix(n)
    value[0] *= sign
    ours, stock = compile_both([A], pytensor.grad(3 * slogdet(A)[1], A))
    np.testing.assert_allclose(ours(value), stock(value), rtol=1e-11)
    np.testing.assert_allclose(ours(value), 3 * np.linalg.inv(value).T, rtol=1e-11)
    assert signs(ours) == 0


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_determinant_that_overflows_or_underflows(scale):
    ours, _ = compile_both([A], pytensor.grad(slogdet(A)[1], A))
    value = scale * matrix(5)
    np.testing.assert_allclose(ours(value), np.linalg.inv(value).T, rtol=1e-11)


def test_singular_matrix_has_no_inverse():
    ours, stock = compile_both([A], pytensor.grad(slogdet(A)[1], A))
    for function in (ours, stock):
        with pytest.raises(np.linalg.LinAlgError):
            function(np.zeros((3, 3)))


@pytest.mark.parametrize(
    "outputs",
    [
        # Of another matrix.
        lambda d: G / abs(d) * pt.sign(d) * d * inv(A + 1),
        # Of a number.
        lambda d: G / abs(d) * pt.sign(d) * d,
        # Without the sign.
        lambda d: G / abs(d) * d * inv(A),
        # By another determinant.
        lambda d: G / abs(det(A + 1)) * pt.sign(d) * d * inv(A),
    ],
)
def test_what_is_another_product(outputs):
    ours, stock = compile_both([A, G], outputs(det(A)))
    value = matrix(4)
    np.testing.assert_allclose(ours(value, 0.7), stock(value, 0.7), rtol=1e-11)
    if outputs(det(A)).type.ndim == 0:
        np.testing.assert_array_equal(ours(0 * value, 0.7), stock(0 * value, 0.7))
