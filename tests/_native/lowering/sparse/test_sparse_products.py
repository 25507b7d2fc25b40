"""Products with sparse matrices against SciPy's."""

from __future__ import annotations

import numpy as np
import pytensor.sparse as ps
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pytensor.sparse import math

from support.native.lowering import check, check_failure
from support.native.sparse_matrices import (
    DTYPES,
    FORMATS,
    LENGTHS,
    NUMBERS,
    matrices,
    of_parts,
    parts_of,
    random_matrix,
    results_of,
    variable,
)
from support.native.ways import check_ways

each_format = pytest.mark.parametrize("storage", FORMATS)
MACHINES = ("512", "128")


def array(dtype, *shape):
    return arrays(dtype, shape, elements=NUMBERS)


@each_format
@given(st.data())
def test_products_with_vectors_and_matrices(storage, data):
    dtype, other = data.draw(st.sampled_from(DTYPES)), data.draw(st.sampled_from(DTYPES))
    x = data.draw(matrices(storage=storage, dtype=dtype))
    parts, matrix = variable(storage, dtype)
    rows, columns = x.shape
    n = data.draw(LENGTHS)
    vector, left, right = (pt.tensor(dtype=other, shape=(None,) * k) for k in (1, 2, 2))
    outputs = [ps.dot(matrix, vector), ps.dot(matrix, right), ps.dot(left, matrix)]
    given_arrays = [(columns,), (n, rows), (columns, n)]
    values = [data.draw(array(other, *shape)) for shape in given_arrays]
    check([*parts, vector, left, right], outputs, [*parts_of(x), *values])


@each_format
@given(st.data())
def test_a_structured_product_and_its_gradients(storage, data):
    dtype = data.draw(st.sampled_from(["float64", "float32"]))
    x = data.draw(matrices(storage=storage, dtype=dtype))
    parts, matrix = variable(storage, dtype)
    n = data.draw(LENGTHS)
    n_known = data.draw(st.sampled_from([None, n]))
    right = pt.tensor(dtype=dtype, shape=(None, n_known))
    product = ps.structured_dot(matrix, right)
    gradients = pt.grad((product**2).sum(), [parts[0], right])
    value = data.draw(array(dtype, x.shape[1], n))
    check([*parts, right], [product, *gradients], [*parts_of(x), value])


@pytest.mark.parametrize("other", FORMATS)
@each_format
@given(st.data())
def test_the_product_of_two_sparse_matrices_as_an_array(storage, other, data):
    x = data.draw(matrices(storage=storage))
    y = data.draw(matrices(storage=other, dtype="float32", shape=(x.shape[1], None)))
    (parts, matrix), (more, right) = variable(storage), variable(other, "float32")
    check([*parts, *more], [ps.dot(matrix, right)], [*parts_of(x), *parts_of(y)])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("density", [0.1, 1.0])
@each_format
def test_machine_code_of_products(storage, density, machine):
    x = random_matrix(storage, (20, 30), density=density)
    parts, matrix = variable(storage)
    b = pt.vector("b")
    eta = ps.structured_dot(matrix, b[:, None])[:, 0]
    value = pt.softplus(eta).sum()
    outputs = [value, *pt.grad(value, [b, parts[0]])]
    values = [*parts_of(x), np.linspace(-1, 1, 30)]
    check_ways([*parts, b], outputs, values, rtol=1e-12, machine=machine)


@each_format
def test_machine_code_of_entries_in_any_order(storage):
    # Empty rows, a row of 19 entries, duplicates, and an explicit zero.
    indptr = np.array([0, 0, 3, 22, 22, 24, 24])
    indices = np.array([4, 0, 4, *range(18, -1, -1), 7, 7])
    values = np.arange(24.0) - 5
    shape = (6, 20) if storage == "csr" else (20, 6)
    x = of_parts(storage, values, indices, indptr, shape)
    parts, matrix = variable(storage)
    left, right = pt.vectors("lr")
    double = math.add_s_s(matrix, matrix)
    outputs = [ps.dot(matrix, right), ps.dot(left, matrix), ps.dense_from_sparse(matrix)]
    outputs += [*results_of(double), ps.sp_sum(double, 0), ps.sp_sum(double, 1)]
    vectors = [np.arange(float(length)) for length in shape]
    check_ways([*parts, left, right], outputs, [*parts_of(x), *vectors], rtol=1e-14)


@each_format
def test_machine_code_of_products_with_wide_matrices(storage):
    x = random_matrix(storage, (9, 7))
    parts, matrix = variable(storage)
    left, right = pt.matrices("lr")
    rng = np.random.default_rng(3)
    values = [*parts_of(x), rng.random((17, 9)), rng.random((7, 17))]
    outputs = [ps.dot(left, matrix), ps.dot(matrix, right)]
    check_ways([*parts, left, right], outputs, values, rtol=1e-12)


@each_format
def test_sums_in_order(storage):
    x = random_matrix(storage, (6, 40), density=0.9)
    parts, matrix = variable(storage)
    b = pt.vector("b")
    values = [*parts_of(x), np.linspace(-1, 1, 40)]
    check_ways([*parts, b], [ps.dot(matrix, b)], values, rtol=1e-13, reassociates=False)


@each_format
def test_factors_that_do_not_fit(storage):
    parts, matrix = variable(storage)
    b = pt.vector("b")
    values = [*parts_of(random_matrix(storage, (3, 4))), np.ones(3)]
    message = "a product of 4 columns and 3 rows"
    check_failure([*parts, b], [ps.dot(matrix, b)], values, ValueError, message)
