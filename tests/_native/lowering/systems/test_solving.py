"""Linear systems, by the assumed structure of their matrix."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.tensor.linalg.solvers.general import Solve
from scipy.linalg import LinAlgError

from pytensor_fuse._native.lowering.matrices.operands import NOT_CONFORMING, NOT_SQUARE
from pytensor_fuse._native.lowering.registry import lower
from support.native.functions import native_function, stock_function
from support.native.linalg import (
    any_matrix,
    check_linalg,
    definite,
    dtypes,
    given_as,
    layouts,
    readers_of,
    right_side,
    seeds,
    sizes,
    symmetric,
    tridiagonal,
    widths,
)
from support.native.lowering import check, check_failure, raw_graph, run

ASSUMED = ["gen", "sym", "her", "pos", "tridiagonal", "banded"]
booleans = st.booleans()


def matrix_for(assumed, n, seed, dtype):
    if assumed in ("sym", "her"):
        return symmetric(n, seed, dtype)
    if assumed == "pos":
        return definite(n, seed, dtype)
    return (any_matrix if assumed == "gen" else tridiagonal)(n, seed, dtype)


@given(
    st.sampled_from(ASSUMED),
    dtypes,
    sizes,
    widths,
    layouts,
    layouts,
    booleans,
    st.sampled_from([None, 0, 1]),
    booleans,
    seeds,
)
def test_systems(assumed, dtype, n, width, layout, of_right, is_lower, destroyed, is_static, seed):
    matrix = matrix_for(assumed, n, seed, dtype)
    if assumed in ("sym", "her", "pos"):
        # The other triangle is not read.
        matrix = (np.tril if is_lower else np.triu)(matrix)
        matrix += (np.triu if is_lower else np.tril)(
            np.full((n, n), 9, dtype), 1 if is_lower else -1
        )
    a = given_as("a", matrix, layout, is_static=is_static)
    b = given_as("b", right_side(n, width, seed, dtype), of_right)
    op = Solve(
        assume_a=assumed,
        lower=is_lower,
        b_ndim=b.value.ndim,
        overwrite_a=destroyed == 0 and assumed != "tridiagonal",
        overwrite_b=destroyed == 1,
    )
    check_linalg(
        [a, b],
        [op(a.variable, b.variable)],
        destroyed=[] if destroyed is None else [destroyed],
        # Numba mode warns that it does not support bands.
        rewrites=seed == 0 and assumed != "banded",
    )


@pytest.mark.parametrize("assumed", ASSUMED)
@pytest.mark.parametrize("width", [None, 3])
@pytest.mark.parametrize("destroyed", [None, 0, 1])
@pytest.mark.parametrize("is_static", [False, True])
def test_a_singular_matrix_gives_nan(assumed, width, destroyed, is_static):
    a = given_as("a", np.diag([1.0, 0, 2]), is_static=is_static)
    b = given_as("b", right_side(3, width, 0, "float64"), is_static=is_static)
    op = Solve(
        assume_a=assumed,
        b_ndim=b.value.ndim,
        overwrite_a=destroyed == 0 and assumed != "tridiagonal",
        overwrite_b=destroyed == 1,
    )
    graph = raw_graph([a.input, b.input], [op(a.variable, b.variable)])
    changed = [] if destroyed is None else [destroyed]
    [found] = run(graph, [a.value, b.value], destroyed=changed)
    assert found.shape == b.value.shape
    assert np.isnan(found).all()


@pytest.mark.parametrize("assumed", ["gen", "sym", "pos", "tridiagonal"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("length", [None, 3])
def test_what_is_not_finite(assumed, bad, length):
    a, b = pt.matrix("a", shape=(length, length)), pt.vector("b", shape=(length,))
    graph = raw_graph([a, b], [Solve(assume_a=assumed, b_ndim=1)(a, b)])
    matrix = definite(3, 0, "float64")
    [found] = run(graph, [matrix, [1, bad, 2]])
    assert not np.isfinite(found).all()
    matrix[1, 1] = bad
    [found] = run(graph, [matrix, [1, 2, 3]])
    assert np.isnan(found).any() or (np.isinf(bad) and found[1] == 0)


def test_a_matrix_that_is_not_definite_gives_nan():
    a, b = pt.dmatrix("a"), pt.dvector("b")
    graph = raw_graph([a, b], [Solve(assume_a="pos", b_ndim=1)(a, b)])
    [found] = run(graph, [np.diag([1.0, -1.0]), [1, 2]])
    assert np.isnan(found).all()


@pytest.mark.parametrize("destroyed", [[], [0], [1], [0, 1]])
@pytest.mark.parametrize("assumed", ["gen", "sym", "pos", "tridiagonal"])
def test_what_is_read_later_is_not_overwritten(assumed, destroyed):
    a = given_as("a", matrix_for(assumed, 5, 0, "float64"))
    b = given_as("b", right_side(5, 2, 0, "float64"))
    computed, right = a.variable * 2, b.variable + 1
    solved = Solve(assume_a=assumed, b_ndim=2)(computed, right)
    outputs = [solved, readers_of(computed), readers_of(right), computed[::-1], right.T]
    check_linalg([a, b], outputs, destroyed=destroyed)
    solved = Solve(assume_a=assumed, b_ndim=2)(a.variable, b.variable)
    outputs = [solved, readers_of(a.variable), readers_of(b.variable), a.variable[::-1]]
    check_linalg([a, b], outputs)


def test_shapes_that_do_not_fit():
    a, b = pt.dmatrix("a"), pt.dmatrix("b")
    wide, square, right = np.ones((2, 3)), np.eye(3), np.ones((2, 2))
    for assumed in ("gen", "sym", "pos", "tridiagonal"):
        solved = [Solve(assume_a=assumed, b_ndim=2)(a, b)]
        check_failure([a, b], solved, [square, right], LinAlgError, NOT_CONFORMING)
        check_failure([a, b], solved, [wide, right], LinAlgError, NOT_SQUARE)


def test_complex_numbers_are_refused():
    z = pt.zmatrix("z")
    assert "complex" in lower.refusal(Solve(b_ndim=2)(z, z).owner)


def test_integers_become_floats():
    a, b = pt.lmatrix("a"), pt.fvector("b")
    check([a, b], [Solve(b_ndim=1)(a, b)], [[[2, 1], [1, 3]], [1, 2]], rtol=1e-12)


@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.lists(st.integers(-2, 2), min_size=16, max_size=16),
    dtypes,
)
def test_small_systems_with_equal_elements(n, width, numbers, dtype):
    matrix = np.array(numbers, dtype).reshape(4, 4)[:n, :n]
    if abs(np.linalg.det(matrix.astype("float64"))) < 0.5:
        return  # A matrix that is singular except for rounding has arbitrary solutions.
    a = given_as("a", matrix, is_static=True)
    b = given_as("b", right_side(n, width, 0, dtype), is_static=True)
    check_linalg([a, b], [Solve(b_ndim=2)(a.variable, b.variable)])


@pytest.mark.parametrize("assumed", ["sym", "pos"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_machine_code(assumed, dtype):
    a, b = pt.matrix("a", dtype=dtype), pt.vector("b", dtype=dtype)
    solved = pt.linalg.solve(a, b, assume_a=assumed)
    cost = pt.sum(solved**2)
    outputs = [solved, cost, *pytensor.grad(cost, [a, b])]
    function, stock = native_function([a, b], outputs), stock_function([a, b], outputs)
    for n in (0, 1, 2, 40):
        values = matrix_for(assumed, n, n, dtype), right_side(n, None, n, dtype)
        for layout in (np.ascontiguousarray, np.asfortranarray, lambda v: v[::-1][::-1]):
            found = function(layout(values[0]), values[1])
            rtol = 1e-8 if dtype == "float64" else 2e-2
            for one, other in zip(found, stock(*values), strict=True):
                np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)
