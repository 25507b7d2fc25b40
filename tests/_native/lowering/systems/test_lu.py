"""LU, LUFactor, permutations from pivots, and solves with the factors."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from pytensor.tensor import linalg
from pytensor.tensor.linalg.decomposition.lu import LU, LUFactor, PivotToPermutations

from pytensor_fuse._native.lowering.registry import lower
from support.native.functions import native_function
from support.native.lowering import check, check_failure, raw_graph, rewritten_graph, run
from support.native.matrices import RTOL, Given, given_matrices, require_close, results

DTYPES = ("float64", "float32", "int64", "int8")
MODES = [{}, {"permute_l": True}, {"p_indices": True}]


@given(
    given_matrices(kinds=("any", "singular"), dtypes=DTYPES),
    st.sampled_from(MODES),
)
def test_lu(one: Given, mode: dict[str, bool]) -> None:
    outputs = LU(**mode)(one.matrix, return_list=True)
    # SciPy's permutation has another dtype for one row and fails for none, and transposes of
    # integers have wrong factors.
    if len(one.expected) > 1 and one.expected.dtype.kind == "f":
        check(one.inputs, outputs, one.values, rtol=RTOL[outputs[-1].type.dtype])
    for found in results(one.inputs, outputs, one.values):
        *first, low, high = found
        product = low @ high
        if mode == {}:
            product = first[0] @ product
        elif "p_indices" in mode:
            product = product[first[0]]
        require_close(product, one.expected.astype(product.dtype), RTOL[str(product.dtype)])


@given(given_matrices(kinds=("any", "singular", "regular"), dtypes=("float64", "float32")))
def test_lu_factor(one: Given) -> None:
    outputs = LUFactor()(one.matrix)
    check(one.inputs, outputs, one.values, rtol=RTOL[outputs[0].type.dtype])


def test_a_singular_matrix_has_factors_of_nan():
    x = pt.dmatrix("x")
    singular = np.ones((3, 3))
    factor, pivots = run(rewritten_graph([x], LUFactor()(x)), [singular])
    assert np.isnan(factor).all()
    assert pivots.tolist() == [0, 1, 2]


@pytest.mark.parametrize("op", [LU(), LUFactor()])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite(op, bad):
    x, data = pt.dmatrix("x"), np.random.default_rng(0).normal(size=(4, 4))
    data[1, 2] = bad
    outputs = op(x, return_list=True)
    expected = linalg_by_scipy(op, data)
    for found in results([x], outputs, [data]):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


def linalg_by_scipy(op, data):
    """Return SciPy's result without its check for finite numbers."""
    if isinstance(op, LU):
        return scipy.linalg.lu(data, check_finite=False)
    return scipy.linalg.lu_factor(data, check_finite=False)


@pytest.mark.parametrize("op", [LU(), LUFactor()])
@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (0, 1)])
def test_only_square_matrices_have_factors(op, shape):
    x = pt.dmatrix("x")
    outputs = op(x, return_list=True)
    text = "Last 2 dimensions of A must be square"
    check_failure([x], outputs, [np.ones(shape)], np.linalg.LinAlgError, text)


@given(
    st.lists(st.integers(0, 7), max_size=8),
    st.booleans(),
    st.sampled_from(["int32", "int64", "uint8"]),
)
def test_permutations(given_pivots: list[int], inverse: bool, dtype: str) -> None:
    pivots = [min(one, len(given_pivots) - 1) for one in given_pivots]
    p = pt.vector("p", dtype=dtype)
    check([p], [PivotToPermutations(inverse=inverse)(p)], [np.array(pivots, dtype)])


@pytest.mark.parametrize("bad", [3, -4])
def test_pivots_that_are_no_rows(bad):
    p = pt.lvector("p")
    outputs = [PivotToPermutations(inverse=True)(p)]
    check([p], outputs, [np.array([-1, 1, 2])])
    # A negative pivot counts from the end.
    shown = bad + 3 if bad < 0 else bad
    text = f"pivot {shown} is out of bounds for 3 rows"
    check_failure([p], outputs, [np.array([0, bad, 2])], IndexError, text)


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("b_ndim", [1, 2])
def test_solutions_by_factors(trans, dtype, b_ndim):
    x = pt.matrix("x", dtype=dtype)
    b = pt.tensor("b", dtype=dtype, shape=(None,) * b_ndim)
    solution = linalg.lu_solve(linalg.lu_factor(x), b, trans=trans, b_ndim=b_ndim)
    random = np.random.default_rng(1)
    matrix = (random.normal(size=(5, 5)) + 3 * np.eye(5)).astype(dtype)
    right = random.normal(size=(5, 3)[:b_ndim]).astype(dtype)
    found = native_function([x, b], solution)(matrix, right)
    require_close(found, np.linalg.solve(matrix.T if trans else matrix, right), RTOL[dtype])


@pytest.mark.parametrize("mode", MODES)
def test_gradients(mode):
    x = pt.dmatrix("x")
    random = np.random.default_rng(2)
    weights = random.normal(size=(2, 4, 4))
    low, high = linalg.lu(x, **mode)[-2:]
    cost = (weights[0] * low).sum() + (weights[1] * high).sum()
    outputs = [cost, pytensor.grad(cost, x)]
    matrix = random.normal(size=(4, 4)) + 3 * np.eye(4)
    found = native_function([x], outputs)(matrix)
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        expected = pytensor.function([x], outputs)(matrix)
    for one, other in zip(found, expected, strict=True):
        require_close(one, other, 1e-11)


def test_factors_of_integers_stay_with_numba():
    x = pt.imatrix("x")
    fgraph = raw_graph([x], list(pt.linalg.lu_factor(x)))
    [why] = [lower.refusal(node) for node in fgraph.apply_nodes]
    assert why.endswith("factors of int32")
