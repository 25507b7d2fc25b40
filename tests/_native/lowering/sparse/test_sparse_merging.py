"""Sums and products of two sparse matrices, entry by entry, against SciPy's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.sparse import math

from support.effort import examples
from support.native.lowering import check, check_failure
from support.native.sparse_matrices import (
    FORMATS,
    matrices,
    parts_of,
    random_matrix,
    results_of,
    variable,
)
from support.native.ways import check_ways

each_format = pytest.mark.parametrize("storage", FORMATS)
each_other = pytest.mark.parametrize("other", FORMATS)
DTYPES = st.sampled_from(["float64", "float32", "int64"])


@each_other
@each_format
@examples(2)
@given(st.data())
def test_sums_and_products(storage, other, data):
    dtypes = data.draw(DTYPES), data.draw(DTYPES)
    x = data.draw(matrices(storage=storage, dtype=dtypes[0]))
    y = data.draw(matrices(storage=other, dtype=dtypes[1], shape=x.shape))
    (parts, one), (more, two) = variable(storage, dtypes[0]), variable(other, dtypes[1])
    outputs = [*results_of(math.add_s_s(one, two)), *results_of(math.mul_s_s(one, two))]
    check([*parts, *more], outputs, [*parts_of(x), *parts_of(y)])


@each_format
@given(st.data())
def test_the_sum_of_matrices_of_one_structure(storage, data):
    x = data.draw(matrices(storage=storage))
    (parts, one), (more, two) = variable(storage), variable(storage)
    out = math.add_s_s_data(one, two)
    check([*parts, *more], results_of(out), [*parts_of(x), *parts_of(x * 2)])


@each_other
@each_format
def test_machine_code(storage, other):
    x = random_matrix(storage, (12, 10))
    y = random_matrix(other, (10, 12)).T.asformat(other)
    (parts, one), (more, two) = variable(storage), variable(other)
    outputs = [*results_of(math.add_s_s(one, two)), *results_of(math.mul_s_s(one, two))]
    check_ways([*parts, *more], outputs, [*parts_of(x), *parts_of(y)], rtol=1e-13)


@each_format
def test_shapes_that_differ(storage):
    x, y = random_matrix(storage, (3, 4)), random_matrix(storage, (3, 5))
    (parts, one), (more, two) = variable(storage), variable(storage)
    check_failure(
        [*parts, *more],
        results_of(math.add_s_s(one, two)),
        [*parts_of(x), *parts_of(y)],
        AssertionError,
        "a sum of matrices with axes of 4 and 5 elements",
    )
