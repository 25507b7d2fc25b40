"""Det and SLogDet."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from pytensor.tensor import linalg
from pytensor.tensor.linalg.summary import Det, SLogDet

from support.native.functions import native_function, stock_function
from support.native.lowering import check, check_failure, rewritten_graph, run
from support.native.matrices import RTOL, Given, given_matrices, require_close

DTYPES = ("float64", "float32", "int64")


@given(given_matrices(kinds=("any", "regular"), dtypes=DTYPES))
def test_determinants(one: Given) -> None:
    number = Det()(one.matrix)
    sign, logarithm = SLogDet()(one.matrix)
    rtol = RTOL[number.type.dtype]
    check(one.inputs, [sign], one.values)
    check(one.inputs, [number, logarithm], one.values, rtol=10 * rtol)


@given(given_matrices(kinds=("singular",), dtypes=("int64",), sizes=(1, 2, 3)))
def test_singular_matrices(one: Given) -> None:
    outputs = [Det()(one.matrix), *SLogDet()(one.matrix)]
    number, sign, logarithm = run(rewritten_graph(one.inputs, outputs), one.values)
    assert abs(number) < 1e-10
    assert (sign == 0) == np.isneginf(logarithm)
    zeros = [np.zeros_like(value) for value in one.values]
    check(one.inputs, outputs, zeros)


def test_logarithms_do_not_overflow():
    x = pt.dmatrix("x")
    outputs = [Det()(x), *SLogDet()(x)]
    data = np.diag([1e200, -1e200, 1e-200, 1e-200])
    check([x], outputs, [data], rtol=1e-12)
    check([x], outputs[1:], [data[:2, :2]], rtol=1e-12)


@pytest.mark.parametrize("op", [Det(), SLogDet()])
def test_errors(op):
    x = pt.dmatrix("x")
    outputs = op(x, return_list=True)
    text = "Last 2 dimensions of the array must be square."
    for shape in ((2, 3), (0, 1)):
        check_failure([x], outputs, [np.ones(shape)], np.linalg.LinAlgError, text)
    text = "Array must not contain infs or NaNs."
    for bad in (np.nan, np.inf, -np.inf):
        data = np.eye(3)
        data[2, 1] = bad
        check_failure([x], outputs, [data], np.linalg.LinAlgError, text)


def test_machine_code_as_numba():
    x = pt.dmatrix("x")
    outputs = [linalg.det(x), *linalg.slogdet(x)]
    random = np.random.default_rng(3)
    function, stock = native_function([x], outputs), stock_function([x], outputs)
    for size in (0, 1, 4, 70):
        data = random.normal(size=(size, size))
        for one, other in zip(function(data), stock(data), strict=True):
            require_close(one, other, 1e-12)
    for data in (np.ones((2, 3)), np.full((2, 2), np.nan)):
        caught = []
        for each in (function, stock):
            with pytest.raises(np.linalg.LinAlgError) as error:
                each(data)
            caught.append(str(error.value).splitlines()[0])
        assert caught[0] == caught[1]


def test_the_gradient_of_a_log_determinant():
    x = pt.dmatrix("x")
    cost = linalg.slogdet(x @ x.T)[1]
    outputs = [cost, pytensor.grad(cost, x)]
    data = np.random.default_rng(4).normal(size=(4, 4)) + 3 * np.eye(4)
    value, gradient = native_function([x], outputs)(data)
    require_close(value, np.linalg.slogdet(data @ data.T)[1], 1e-12)
    require_close(gradient, 2 * np.linalg.inv(data).T, 1e-11)


@pytest.mark.parametrize("size", [1, 2, 5, 40])
def test_value_and_gradient(size):
    x = pt.dmatrix("x")
    number, logarithm = linalg.det(x), linalg.slogdet(x)[1]
    outputs = [logarithm, pytensor.grad(logarithm, x), pytensor.grad(number, x)]
    data = np.random.default_rng(size).normal(size=(size, size)) + 3 * np.eye(size)
    inverse = np.linalg.inv(data).T
    expected = np.linalg.slogdet(data)[1], inverse, np.linalg.det(data) * inverse
    for one, other in zip(native_function([x], outputs)(data), expected, strict=True):
        require_close(one, other, 1e-10)
