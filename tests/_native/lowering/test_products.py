"""Products of constant matrices with few rows or columns."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

import pytensor_fuse
from pytensor_fuse._native.linking.thunks import NativeThunk
from pytensor_fuse._native.lowering.graph import lower_graph
from pytensor_fuse._native.runtime.compiling import compile_program
from support.native_functions import kind, native_function, stock_function

RNG = np.random.default_rng(5)


def matrix(*shape, dtype="float64"):
    return RNG.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(50, 8), (8, 50), (1, 30), (30, 1), (16, 17), (3, 3), (0, 4)])
def test_products_with_vectors(shape, dtype):
    data = matrix(*shape, dtype=dtype)
    right, left = kind(dtype, shape[1])("right"), kind(dtype, shape[0])("left")
    outputs = [pt.dot(data, right), pt.dot(left, data), pt.dot(data.T, left)]
    values = matrix(shape[1], dtype=dtype), matrix(shape[0], dtype=dtype)
    found = native_function([right, left], outputs)(*values)
    expected = stock_function([right, left], outputs)(*values)
    rtol = 1e-13 if dtype == "float64" else 1e-5
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


def test_a_regression_reads_its_data_once():
    data, observed = matrix(500, 8), matrix(500)
    beta = pt.tensor("beta", dtype="float64", shape=(8,))
    density = -pt.log1p((observed - pt.dot(data, beta)) ** 2).sum()
    outputs = [density, pytensor.grad(density, beta)]
    function, value = native_function([beta], outputs), matrix(8)
    for one, other in zip(function(value), stock_function([beta], outputs)(value), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    rows = [loop for loop in pytensor_fuse.explain_native(function).loops if loop.extent == 500]
    assert [loop.n_reductions for loop in rows] == [9]
    # The matrix and its transpose are one.
    assert len(rows[0].reads) == 9


@pytest.mark.parametrize(
    ("left", "right"),
    [
        # Not a vector, not a constant, too many columns, other numbers.
        (matrix(50, 8), pt.matrix("y")),
        (pt.matrix("x"), pt.vector("y")),
        (matrix(50, 40), pt.vector("y")),
        (np.ones((5, 3), int), pt.lvector("y")),
        (matrix(50, 8), pt.fvector("y")),
        # A length that is not known to fit.
        (matrix(50, 8), pt.vector("y")),
    ],
)
def test_other_products_are_left_to_blas(left, right):
    inputs = [one for one in (left, right) if not isinstance(one, np.ndarray)]
    function = pytensor.function(inputs, pt.dot(left, right), mode="NUMBA")
    assert not isinstance(function.vm, NativeThunk)
    assert "a product" in str(pytensor_fuse.explain_native(function))


def test_the_order_of_sums_is_left_to_blas_without_fastmath():
    beta = pt.tensor("beta", dtype="float64", shape=(8,))
    with pytensor.config.change_flags(numba__fastmath=False):
        function = pytensor.function([beta], pt.exp(pt.dot(matrix(50, 8), beta)), mode="NUMBA")
        assert not isinstance(function.vm, NativeThunk)
        assert "which BLAS has" in str(pytensor_fuse.explain_native(function))


def test_sums_of_negative_zeros_are_zeros():
    data = np.zeros((3, 2))
    data[0, 0] = 1
    beta = pt.tensor("beta", dtype="float64", shape=(2,))
    [found] = native_function([beta], [1 / pt.dot(data, beta)])(np.array([-1.0, -2.0]))
    assert found.tolist() == [-1, np.inf, np.inf]


def test_data_are_kept_once():
    data = matrix(1000, 8)
    beta = pt.tensor("beta", dtype="float64", shape=(8,))
    density = -((pt.dot(data, beta) ** 2).sum())
    inputs, outputs = [beta], [density, pytensor.grad(density, beta)]
    fgraph = pytensor.graph.fg.FunctionGraph(inputs, outputs, clone=True)
    pytensor.compile.mode.NUMBA.optimizer.rewrite(fgraph)
    lowered = lower_graph(fgraph.inputs, fgraph.outputs, fgraph.toposort(), reassociates=True)
    made = compile_program(lowered.program, lowered.constants)
    assert sum(one.nbytes for one in lowered.constants) >= 3 * data.nbytes
    assert sum(one.nbytes for one in made.constants) < 1.1 * data.nbytes
