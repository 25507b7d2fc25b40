"""Systems with symmetric Toeplitz matrices."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
import pytest
from scipy.linalg import toeplitz

from pytensor_fuse._linalg.ops.toeplitz import NOT_AS_LONG, ToeplitzSolve
from support.native.functions import native_function
from support.native.linalg import check_linalg, given_as, right_side
from support.native.lowering import check_failure, stock

LENGTHS = [0, 1, 2, 9, 255, 256, 300]


def first_row(n, kind):
    """Return a first row: the recursion is stable or unstable for it, or there is no factor.

    The prediction errors of a smooth covariance fall too far.
    """
    places = np.arange(n)
    row = {"stable": 0.5**places, "smooth": np.exp(-((places / 3.0) ** 2)), "none": 0.0 * places}[
        kind
    ]
    row[:1] += {"stable": 1, "smooth": 1e-3, "none": -1}[kind]
    return row


@pytest.mark.parametrize("layout", ["an input", "reversed"])
@pytest.mark.parametrize("columns", [0, 1, 3])
@pytest.mark.parametrize("kind", ["stable", "smooth", "none"])
def test_values(kind, columns, layout):
    # Only short ones, since the interpreter is slow.
    for n in (0, 1, 2, 9):
        row, right = first_row(n, kind), right_side(n, columns, 0, "float64")
        x, b = given_as("row", row, layout), given_as("b", right, layout)
        check_linalg([x, b], ToeplitzSolve()(x.variable, b.variable), rewrites=n == 9)


@pytest.mark.parametrize("columns", [0, 1, 3])
@pytest.mark.parametrize("kind", ["stable", "smooth", "none"])
def test_machine_code(kind, columns):
    row, right = pt.dvector("row"), pt.dmatrix("b")
    function = native_function([row, right], ToeplitzSolve()(row, right))
    for n in LENGTHS:
        values, sides = first_row(n, kind), right_side(n, columns, 0, "float64")
        solution, pivots = function(values, sides)
        assert solution.shape == sides.shape
        assert pivots.shape == (n,)
        if kind == "none":
            assert np.isnan(solution).all()
            assert np.isnan(pivots).all()
        else:
            matrix = toeplitz(values) if n else np.empty((0, 0))
            np.testing.assert_allclose(matrix @ solution, sides, atol=1e-11)
            expected = np.diag(np.linalg.cholesky(matrix)) ** 2
            np.testing.assert_allclose(pivots, expected, rtol=1e-10)


def test_what_is_not_finite():
    row, right = pt.dvector("row"), pt.dmatrix("b")
    solved = ToeplitzSolve()(row, right)
    function = native_function([row, right], solved)
    for place, bad in ((0, np.nan), (0, np.inf), (3, np.nan)):
        values = first_row(300, "stable")
        values[place] = bad
        given = values, right_side(300, 1, 0, "float64")
        # By the factor of the full matrix.
        for one, other in zip(function(*given), stock([row, right], solved, given), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_rows_that_do_not_fit():
    row, right = pt.dvector("row"), pt.dmatrix("b")
    solved = ToeplitzSolve()(row, right)
    check_failure([row, right], solved, [np.ones(2), np.ones((3, 1))], ValueError, NOT_AS_LONG)


def test_the_recursion_needs_no_memory_for_a_matrix():
    row, right = pt.vector("row"), pt.matrix("right")
    compiled = native_function([row, right], ToeplitzSolve()(row, right)).vm.compiled
    matrices = {
        buffer
        for buffer, about in enumerate(compiled.program.buffers)
        if about.kind == "temporary" and len(about.lengths) == 2 and len({*about.lengths}) == 1
    }
    assert matrices
    assert matrices.isdisjoint(compiled.placement.offsets)
