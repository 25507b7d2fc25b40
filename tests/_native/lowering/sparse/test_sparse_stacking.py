"""Sparse matrices stacked, their rows by number, and their entries put in order."""

from __future__ import annotations

import numpy as np
import pytensor.sparse as ps
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.sparse import basic

from support.native_lowering import check, check_failure
from support.native_ways import check_ways
from support.sparse_matrices import (
    FORMATS,
    LENGTHS,
    matrices,
    parts_of,
    random_matrix,
    results_of,
    variable,
)

each_format = pytest.mark.parametrize("storage", FORMATS)


@pytest.mark.parametrize("other", FORMATS)
@each_format
@given(st.data())
def test_stacks(storage, other, data):
    # SciPy adds up what is at one place if formats are mixed, and Numba mode does not.
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
@given(st.data())
def test_rows_by_number(storage, data):
    x = data.draw(matrices(storage=storage))
    n_rows = x.shape[0]
    places = st.integers(-n_rows, n_rows - 1) if n_rows else st.nothing()
    chosen = data.draw(st.lists(places, max_size=5)) if n_rows else []
    parts, matrix = variable(storage)
    rows = pt.lvector("rows")
    selected = basic.get_item_list(matrix, rows)
    outputs = [ps.dense_from_sparse(selected), selected.shape[0]]
    if storage == "csr":
        outputs += results_of(selected)
    check([*parts, rows], outputs, [*parts_of(x), np.array(chosen, np.int64)])


@each_format
@given(st.data())
def test_entries_in_order(storage, data):
    shape = data.draw(LENGTHS), data.draw(LENGTHS)
    x = data.draw(matrices(storage=storage, shape=shape))
    parts, matrix = variable(storage)
    _, *places = results_of(basic.ensure_sorted_indices(matrix))
    dense = ps.dense_from_sparse(basic.ensure_sorted_indices(matrix))
    check(parts, [*places, dense], parts_of(x))


@each_format
def test_machine_code(storage):
    x = random_matrix(storage, (9, 8))
    parts, matrix = variable(storage)
    rows = pt.lvector("rows")
    stacked = basic.vstack([matrix, basic.get_item_list(matrix, rows)], format=storage)
    outputs = [ps.dense_from_sparse(basic.hstack([stacked, stacked], format="csc"))]
    check_ways([*parts, rows], outputs, [*parts_of(x), np.array([3, -1, 3])], rtol=0.0)


def test_a_row_that_there_is_not():
    parts, matrix = variable("csr")
    rows = pt.lvector("rows")
    check_failure(
        [*parts, rows],
        [ps.dense_from_sparse(basic.get_item_list(matrix, rows))],
        [*parts_of(random_matrix("csr", (3, 3))), np.array([3])],
        IndexError,
        "row index out of bounds",
    )


def test_blocks_that_do_not_fit():
    (parts, one), (more, two) = variable("csr"), variable("csr")
    check_failure(
        [*parts, *more],
        [ps.dense_from_sparse(basic.vstack([one, two], format="csr"))],
        [*parts_of(random_matrix("csr", (3, 3))), *parts_of(random_matrix("csr", (3, 4)))],
        ValueError,
        "Mismatching dimensions along axis 1",
    )
