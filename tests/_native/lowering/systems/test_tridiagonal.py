"""LU factors of tridiagonal and of banded matrices, and systems with them."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.tensor.linalg.solvers.tridiagonal import (
    LUFactorTridiagonal,
    SolveLUFactorTridiagonal,
)

from pytensor_fuse._linalg.ops.banded_lu import (
    WRONG_BAND,
    WRONG_FACTORS,
    WRONG_PIVOTS_OF_BAND,
    LUFactorBanded,
    SolveLUFactorBanded,
    rows_of_storage,
)
from pytensor_fuse._native.lowering.systems import tridiagonal as rules
from support.native.functions import native_function
from support.native.linalg import (
    any_matrix,
    check_linalg,
    dtypes,
    given_as,
    layouts,
    right_side,
    seeds,
    tridiagonal,
    widths,
)
from support.native.lowering import check_failure, raw_graph, run

booleans = st.booleans()
#: SciPy does not factorize smaller matrices.
sizes = st.sampled_from([3, 5, 9, 17])
of_diagonals = st.sampled_from(["an input", "computed", "reversed", "a part"])


def diagonals_of(matrix):
    return [np.diag(matrix, offset).copy() for offset in (-1, 0, 1)]


@given(dtypes, sizes, of_diagonals, booleans, st.sets(st.integers(0, 2)), seeds)
def test_factors(dtype, n, layout, is_static, destroyed, seed):
    parts = [
        given_as(name, values, layout, is_static=is_static)
        for name, values in zip("ldu", diagonals_of(tridiagonal(n, seed, dtype)), strict=True)
    ]
    op = LUFactorTridiagonal(*[at in destroyed for at in range(3)])
    outputs = op(*[one.variable for one in parts])
    check_linalg(parts, outputs, destroyed=sorted(destroyed), rewrites=seed == 0)


@given(dtypes, sizes, widths.filter(lambda width: width != 0), layouts, booleans, booleans, seeds)
def test_systems(dtype, n, width, of_right, is_transposed, overwrites, seed):
    matrix = tridiagonal(n, seed, dtype)
    parts = [
        given_as(name, values) for name, values in zip("ldu", diagonals_of(matrix), strict=True)
    ]
    b = given_as("b", right_side(n, width, seed, dtype), of_right)
    factors = LUFactorTridiagonal()(*[one.variable for one in parts])
    op = SolveLUFactorTridiagonal(
        b_ndim=b.value.ndim, transposed=is_transposed, overwrite_b=overwrites
    )
    solved = op(*factors, b.variable)
    check_linalg([*parts, b], [solved], destroyed=[3] if overwrites else [], rewrites=seed == 0)
    inputs = [one.input for one in (*parts, b)]
    [found] = run(raw_graph(inputs, [solved]), [one.value for one in (*parts, b)], destroyed=[3])
    right = right_side(n, width, seed, dtype)
    rtol = 1e-9 if dtype == "float64" else 1e-2
    product = (matrix.T if is_transposed else matrix) @ found
    np.testing.assert_allclose(product, right, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("width", [None, 2])
def test_few_rows(n, width):
    parts = [np.ones(max(n - 1, 0)), np.full(n, 2.0), np.ones(max(n - 1, 0))]
    variables = [pt.dvector(name) for name in "ldu"]
    b = pt.dvector("b") if width is None else pt.dmatrix("b")
    factors = LUFactorTridiagonal()(*variables)
    solved = SolveLUFactorTridiagonal(b_ndim=b.type.ndim, transposed=False)(*factors, b)
    right = right_side(n, width, 0, "float64")
    found = run(raw_graph([*variables, b], [solved, *factors]), [*parts, right])
    matrix = np.tril(np.triu(np.ones((n, n)), -1), 1) + np.eye(n)
    np.testing.assert_allclose(matrix @ found[0], right)
    assert [len(one) for one in found[1:]] == [max(n - 1, 0), n, max(n - 1, 0), 0, n]
    function = native_function([*variables, b], [solved, *factors])
    np.testing.assert_allclose(matrix @ function(*parts, right)[0], right)


def test_diagonals_and_pivots_that_do_not_fit():
    given_ones = [pt.dvector(name) for name in "ldu"]
    factors = LUFactorTridiagonal()(*given_ones)
    values = [np.ones(3), np.ones(3), np.ones(2)]
    message = rules._WRONG_DIAGONALS.format(3, 3)
    check_failure(given_ones, factors, values, ValueError, message)
    inputs = [*given_ones, pt.dvector("second"), pt.ivector("p"), pt.dvector("b")]
    solved = [SolveLUFactorTridiagonal(b_ndim=1, transposed=False)(*inputs)]
    values = [np.ones(2), np.ones(3), np.ones(2), np.ones(1), np.array([1, 2, 3]), np.ones(3)]
    for place, wrong in ((0, np.ones(3)), (3, np.ones(2)), (5, np.ones(2))):
        changed = [wrong if at == place else one for at, one in enumerate(values)]
        check_failure(inputs, solved, changed, ValueError, rules._WRONG_FACTORS)
    for pivots in ([0, 2, 3], [1, 4, 3], [1, 2, 4], [3, 2, 3], [1, 1, 3]):
        values[4] = np.array(pivots)
        check_failure(inputs, solved, values, ValueError, rules._WRONG_PIVOTS)


def storage_of(matrix, below, above):
    """Return a band in LAPACK's storage."""
    n = len(matrix)
    band = np.zeros((rows_of_storage(below, above), n), matrix.dtype)
    for j in range(n):
        for i in range(max(j - above, 0), min(j + below + 1, n)):
            band[below + above + i - j, j] = matrix[i, j]
    return band


def banded(n, below, above, seed, dtype):
    matrix = np.triu(np.tril(any_matrix(n, seed, "float64"), above), -below) + 2 * np.eye(n)
    # To make row swaps necessary.
    matrix[np.arange(1, n), np.arange(n - 1)] += 3 if below else 0
    return matrix.astype(dtype)


bands = st.integers(0, 3)


@given(
    dtypes,
    st.sampled_from([0, 1, 2, 3, 9, 17]),
    bands,
    bands,
    widths,
    layouts,
    layouts,
    booleans,
    seeds,
)
def test_bands(dtype, n, below, above, width, layout, of_right, is_transposed, seed):
    matrix = banded(n, below, above, seed, dtype)
    band = given_as("band", storage_of(matrix, below, above), layout)
    b = given_as("b", right_side(n, width, seed, dtype), of_right)
    packed, pivots = LUFactorBanded(below, above)(band.variable)
    op = SolveLUFactorBanded(below, above, b_ndim=b.value.ndim, transposed=is_transposed)
    check_linalg([band, b], [packed, pivots, op(packed, pivots, b.variable)], rewrites=seed == 0)


@pytest.mark.parametrize("bad", [np.nan, 0.0, np.inf])
def test_bands_of_no_matrix(bad):
    values = storage_of(banded(5, 1, 1, 0, "float64"), 1, 1)
    values[:, 2] = bad
    band, b = given_as("band", values), given_as("b", right_side(5, 2, 0, "float64"))
    packed, pivots = LUFactorBanded(1, 1)(band.variable)
    solved = SolveLUFactorBanded(1, 1, b_ndim=2)(packed, pivots, b.variable)
    check_linalg([band, b], [packed, pivots, solved])


def test_bands_that_do_not_fit():
    band, p, b = pt.dmatrix("band"), pt.ivector("p"), pt.dvector("b")
    packed = LUFactorBanded(1, 1)(band)
    check_failure([band], packed, [np.ones((3, 5))], ValueError, WRONG_BAND)
    solved = [SolveLUFactorBanded(1, 1, b_ndim=1)(band, p, b)]
    values = [np.ones((4, 3)), np.arange(3), np.ones(3)]
    for place, wrong, message in (
        (0, np.ones((3, 3)), WRONG_BAND),
        (0, np.ones((4, 2)), WRONG_FACTORS),
        (1, np.arange(2), WRONG_FACTORS),
        (2, np.ones(4), WRONG_FACTORS),
        (1, np.array([0, 1, 3]), WRONG_PIVOTS_OF_BAND),
        (1, np.array([-1, 1, 2]), WRONG_PIVOTS_OF_BAND),
    ):
        changed = [wrong if at == place else one for at, one in enumerate(values)]
        check_failure([band, p, b], solved, changed, ValueError, message)


def test_machine_code():
    band, b = pt.dmatrix("band"), pt.dvector("b")
    packed, pivots = LUFactorBanded(2, 1)(band)
    solved = SolveLUFactorBanded(2, 1, b_ndim=1)(packed, pivots, b)
    function = native_function([band, b], [solved, packed, pivots])
    for n in (1, 3, 30):
        matrix, right = banded(n, 2, 1, n, "float64"), right_side(n, None, n, "float64")
        [found, _, _] = function(np.asfortranarray(storage_of(matrix, 2, 1)), right)
        np.testing.assert_allclose(matrix @ found, right, atol=1e-10)
