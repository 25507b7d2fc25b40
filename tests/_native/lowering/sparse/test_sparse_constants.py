"""Constant sparse matrices, whose structure is known at compile time."""

from __future__ import annotations

import numpy as np
import pytensor.sparse as ps
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.sparse import math
from pytensor.sparse.basic import as_sparse_variable

from pytensor_fuse._native.lowering.registry import NoRuleError
from support.native.lowering import check, lowered, raw_graph, rewritten_graph, run
from support.native.sparse_matrices import FORMATS, matrices, of_parts, random_matrix, results_of
from support.native.ways import check_ways

each_format = pytest.mark.parametrize("storage", FORMATS)


def indicators(n_rows, n_groups, *, each=1, storage="csr"):
    """Return a matrix with a fixed number of ones in each row (or column), at random positions."""
    rng = np.random.default_rng(4)
    indices = rng.integers(0, n_groups, n_rows * each)
    shape = (n_rows, n_groups) if storage == "csr" else (n_groups, n_rows)
    indptr = np.arange(n_rows + 1) * each
    return of_parts(storage, rng.random(n_rows * each), indices, indptr, shape)


def regression(x, b):
    """Return the value and the gradient of a regression on a constant matrix."""
    eta = ps.structured_dot(as_sparse_variable(x), b[:, None])[:, 0]
    value = pt.softplus(eta).sum()
    return [value, pt.grad(value, b)]


@each_format
@given(st.data())
def test_products_with_a_constant(storage, data):
    x = data.draw(matrices(storage=storage))
    matrix = as_sparse_variable(x)
    b, right = pt.vector("b"), pt.matrix("right")
    outputs = [
        ps.dot(matrix, b),
        ps.structured_dot(matrix, right),
        *[ps.sp_sum(matrix, axis) for axis in (None, 0, 1)],
        ps.dense_from_sparse(matrix),
    ]
    n = x.shape[1]
    check([b, right], outputs, [np.arange(n) - 1.0, np.arange(2.0 * n).reshape(n, 2)])


@each_format
@given(st.data())
def test_sums_and_products_with_a_constant(storage, data):
    x = data.draw(matrices(storage=storage))
    y = data.draw(matrices(storage=storage, shape=x.shape))
    one, two = as_sparse_variable(x), as_sparse_variable(y)
    outputs = [*results_of(math.add_s_s(one, two)), *results_of(math.mul_s_s(one, two))]
    check([], outputs, [], rewrites=False)


@pytest.mark.parametrize("each", [0, 1, 3, 9, 20])
@each_format
def test_as_many_entries_in_each_row(storage, each):
    x = indicators(30, 6, each=each, storage=storage)
    b = pt.vector("b")
    check_ways([b], regression(x, b), [np.linspace(-1, 1, x.shape[1])], rtol=1e-12)


@pytest.mark.parametrize("machine", ["512", "128"])
def test_groups_of_many_rows(machine):
    b = pt.vector("b", shape=(7,))
    outputs = regression(indicators(5000, 7), b)
    check_ways([b], outputs, [np.linspace(-1, 1, 7)], rtol=1e-11, machine=machine)


def test_as_many_entries_in_each_row_need_no_inner_loop():
    b = pt.vector("b", shape=(6,))
    fgraph = rewritten_graph([b], regression(indicators(30, 6, each=2), b))
    program = lowered(fgraph, reassociates=True).program
    loops = [one for one in program.body if hasattr(one, "body")]
    assert loops
    assert not any(hasattr(one, "body") for loop in loops for one in loop.body)


def test_a_matrix_and_its_transpose_are_one_constant():
    b = pt.vector("b", shape=(9,))
    fgraph = rewritten_graph([b], regression(random_matrix("csr", (8, 9)), b))
    constants = lowered(fgraph).constants
    assert len(constants) == 3


def test_a_constant_that_is_no_matrix():
    x = of_parts("csr", np.ones(2), [0, 1], [0, 2], (1, 2))
    x.indices[1] = 5
    b = pt.vector("b")
    fgraph = raw_graph([b], [ps.dot(as_sparse_variable(x), b)])
    with pytest.raises(NoRuleError, match="a sparse constant whose indices are out of bounds"):
        run(fgraph, [np.ones(2)])
