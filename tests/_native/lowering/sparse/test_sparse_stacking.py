"""Stacks of sparse matrices."""

from __future__ import annotations

import pytensor.sparse as ps
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.sparse import basic

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


@pytest.mark.parametrize("other", FORMATS)
@each_format
@given(st.data())
def test_stacks(storage, other, data):
    # SciPy sums duplicates if formats are mixed, and Numba mode does not.
    x = data.draw(matrices(storage=storage, is_canonical=True))
    below = data.draw(
        matrices(storage=other, dtype="float32", shape=(None, x.shape[1]), is_canonical=True)
    )
    beside = data.draw(matrices(storage=other, shape=(x.shape[0], None), is_canonical=True))
    result = data.draw(st.sampled_from(FORMATS))
    (parts, one), (more, two), (most, three) = (
        variable(storage),
        variable(other, "float32"),
        variable(other),
    )
    stacked = basic.vstack([one, two], format=result), basic.hstack([one, three], format=result)
    outputs = [out for matrix in stacked for out in results_of(matrix)]
    check(
        [*parts, *more, *most],
        outputs,
        [*parts_of(x), *parts_of(below), *parts_of(beside)],
    )


@each_format
def test_machine_code(storage):
    x = random_matrix(storage, (9, 8))
    parts, matrix = variable(storage)
    stacked = basic.vstack([matrix, matrix], format=storage)
    outputs = [ps.dense_from_sparse(basic.hstack([stacked, stacked], format="csc"))]
    check_ways(parts, outputs, parts_of(x), rtol=0.0)


def test_blocks_that_do_not_fit():
    (parts, one), (more, two) = variable("csr"), variable("csr")
    check_failure(
        [*parts, *more],
        [ps.dense_from_sparse(basic.vstack([one, two], format="csr"))],
        [*parts_of(random_matrix("csr", (3, 3))), *parts_of(random_matrix("csr", (3, 4)))],
        ValueError,
        "Mismatching dimensions along axis 1",
    )
