"""Ops on the entries of a sparse matrix against SciPy: scaling, sums, casts, parts."""

from __future__ import annotations

import numpy as np
import pytensor.sparse as ps
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pytensor.sparse import basic, math
from pytensor.sparse.type import SparseTensorType

from pytensor_fuse._native.lowering.indexing.bounds import OUT_OF_BOUNDS
from pytensor_fuse._native.program.model import Check
from support.native.lowering import check, lowered, raw_graph, rewritten_graph, run
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
dtypes = st.sampled_from(DTYPES)


def array(dtype, *shape):
    return arrays(dtype, shape, elements=NUMBERS)


@each_format
@given(st.data())
def test_parts_transposes_and_casts(storage, data):
    dtype, other = data.draw(dtypes), data.draw(dtypes)
    # SciPy's casts sum duplicate entries, and Numba mode's do not.
    x = data.draw(matrices(storage=storage, dtype=dtype, is_canonical=True))
    parts, matrix = variable(storage, dtype)
    outputs = [
        *results_of(matrix),
        *results_of(matrix.T),
        *results_of(basic.cast(matrix, other)),
        matrix.shape[0],
        matrix.T.shape[0],
    ]
    check(parts, outputs, parts_of(x))


@each_format
@given(st.data())
def test_from_and_to_arrays(storage, data):
    dtype = data.draw(dtypes)
    x = data.draw(matrices(storage=storage, dtype=dtype))
    parts, matrix = variable(storage, dtype)
    dense = pt.matrix("dense", dtype=dtype)
    shape = data.draw(LENGTHS), data.draw(LENGTHS)
    outputs = [ps.dense_from_sparse(matrix), *results_of(basic.SparseFromDense(storage)(dense))]
    check([*parts, dense], outputs, [*parts_of(x), data.draw(array(dtype, *shape))])


@each_format
@given(st.data())
def test_sums(storage, data):
    # SciPy sums small integers in wider ones, whatever dtype the op declares.
    dtype = data.draw(st.sampled_from(["float64", "float32", "int64"]))
    x = data.draw(matrices(storage=storage, dtype=dtype))
    parts, matrix = variable(storage, dtype)
    outputs = [ps.sp_sum(matrix, axis) for axis in (None, 0, 1)]
    check(parts, outputs, parts_of(x))


@each_format
@given(st.data())
def test_products_with_numbers_vectors_and_arrays(storage, data):
    dtype = data.draw(st.sampled_from(["float64", "float32"]))
    # SciPy's casts sum duplicate entries, and Numba mode's do not.
    x = data.draw(matrices(storage=storage, dtype=dtype, is_canonical=True))
    parts, matrix = variable(storage, dtype)
    number, other = pt.scalar("number", dtype=dtype), pt.matrix("other", dtype="float64")
    scaled = math.mul_s_d(matrix, number), math.mul_s_d(matrix, other)
    outputs = [one for product in scaled for one in results_of(product)]
    values = [data.draw(array(dtype)), data.draw(array("float64", *x.shape))]
    check([*parts, number, other], outputs, [*parts_of(x), *values])


@each_format
@given(st.data())
def test_rows_and_columns_scaled(storage, data):
    x = data.draw(matrices(storage=storage))
    parts, matrix = variable(storage)
    by_row, by_column = pt.vectors("rc")
    # SciPy sorts the entries of a row of products.
    scaled = math.mul_s_v(matrix, by_column)
    outputs = [
        ps.dense_from_sparse(scaled),
        *results_of(basic.row_scale(matrix, by_row)),
        *results_of(basic.col_scale(matrix, by_column)),
    ]
    values = [data.draw(array("float64", length)) for length in x.shape]
    check([*parts, by_row, by_column], outputs, [*parts_of(x), *values])


@each_format
@given(st.data())
def test_the_sum_with_an_array(storage, data):
    dtype, other = data.draw(dtypes), data.draw(dtypes)
    x = data.draw(matrices(storage=storage, dtype=dtype))
    parts, matrix = variable(storage, dtype)
    dense = pt.matrix("dense", dtype=other)
    value = data.draw(array(other, *x.shape))
    check([*parts, dense], [math.add_s_d(matrix, dense)], [*parts_of(x), value])


@each_format
@given(st.data())
def test_diagonals(storage, data):
    n = data.draw(LENGTHS)
    x = data.draw(matrices(storage=storage, shape=(n, n)))
    parts, matrix = variable(storage)
    check(parts, [basic.Diag()(matrix)], parts_of(x))


@each_format
@given(st.data())
def test_the_gradient_of_the_entries(storage, data):
    x = data.draw(matrices(storage=storage))
    g = data.draw(matrices(storage=storage, shape=x.shape))
    (parts, _), (more, _) = variable(storage), variable(storage)
    check([*parts, *more], [basic.CSMGrad()(*parts, *more)], [*parts_of(x), *parts_of(g)])


@each_format
def test_functions_of_the_entries_and_their_gradients(storage):
    x = random_matrix(storage, (5, 6))
    parts, matrix = variable(storage)
    total = ps.sp_sum(ps.structured_exp(matrix), sparse_grad=True)
    outputs = [total, pt.grad(total, parts[0])]
    check_ways(parts, outputs, parts_of(x), rtol=1e-12)


@each_format
def test_machine_code_of_entries(storage):
    x = random_matrix(storage, (30, 20), density=0.3)
    parts, matrix = variable(storage)
    rows, columns = pt.vectors("rc")
    scaled = basic.col_scale(basic.row_scale(matrix, rows), columns)
    dense = ps.dense_from_sparse(scaled)
    outputs = [
        *results_of(basic.SparseFromDense(storage)(dense)),
        *[ps.sp_sum(scaled, axis) for axis in (None, 0, 1)],
        math.add_s_d(scaled, dense),
    ]
    values = [*parts_of(x), np.linspace(1, 2, 30), np.linspace(-1, 1, 20)]
    check_ways([*parts, rows, columns], outputs, values, rtol=1e-12)


MALFORMED = {
    "index too large": ([0, 1, 3], [0, 5, 1], IndexError, "index is out of bounds"),
    "index negative": ([0, 1, 3], [0, -1, 1], IndexError, "index is out of bounds"),
    "falls": ([0, 4, 3], [0, 1, 1], ValueError, "the indptr of a sparse matrix has to begin"),
    "begins late": ([1, 1, 3], [0, 1, 1], ValueError, "the indptr of a sparse matrix has to begin"),
    "ends late": ([0, 1, 4], [0, 1, 1], ValueError, "the indptr of a sparse matrix has to begin"),
    "negative": ([0, -1, 3], [0, 1, 1], ValueError, "the indptr of a sparse matrix has to begin"),
    "short": ([0, 3], [0, 1, 1], ValueError, "has 2 elements of indptr for 2 rows"),
    "few": ([0, 1, 2], [0, 1], ValueError, "a sparse matrix has 3 values and 2 indices"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_parts_that_are_no_matrix(case):
    indptr, indices, exception, message = MALFORMED[case]
    parts, matrix = variable("csr")
    b = pt.vector("b")
    values = [np.ones(3), np.array(indices, np.int32), np.array(indptr, np.int32), [2, 4]]
    with pytest.raises(exception, match=message):
        run(raw_graph([*parts, b], [ps.dot(matrix, b)]), [*values, np.ones(4)])


@each_format
def test_other_values_at_the_entries_of_a_matrix_need_no_check(storage):
    matrix, right = SparseTensorType(storage, "float64")("x"), pt.matrix("right")
    value = (ps.structured_dot(ps.structured_exp(matrix), right) ** 2).sum()
    fgraph = rewritten_graph([matrix, right], [value, pt.grad(value, matrix)])
    program = lowered(fgraph).program
    checks = [one for one in program.body if isinstance(one, Check)]
    messages = [program.failures[one.failure].message for one in checks]
    assert messages.count(OUT_OF_BOUNDS) == 1


def test_a_row_that_is_never_read_may_be_empty():
    x = of_parts("csr", np.ones(0), [], [0, 0, 0], (2, 0))
    parts, matrix = variable("csr")
    check(parts, [ps.sp_sum(matrix, 1), ps.dense_from_sparse(matrix)], parts_of(x))
