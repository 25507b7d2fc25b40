"""Work on positive definite Toeplitz matrices is done on their first row."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg
from pytensor.assumptions import assume
from pytensor.compile.mode import get_mode
from pytensor.tensor.linalg import cholesky, det, inv, slogdet, solve

from pytensor_fuse._linalg.ops.toeplitz import FEWEST_ROWS, levinson
from pytensor_fuse.linalg import structured
from support.extended import error, extended, factored, log_determinant, solved
from support.linalg.rules import PYTHON, compile_both

EXACT = PYTHON.excluding("fusion", "inplace")
R, Y = pt.dvectors("r", "y")
A, Z = pt.dmatrices("a", "z")
INPUTS = [R, A, Y, Z]
SIZES = 0, 1, 2, 6, FEWEST_ROWS


def distances(n, first=0):
    places = pt.arange(n) if first == 0 else pt.arange(first, n + first)
    return pt.abs(places[:, None] - places[None, :])


def definite(matrix):
    return assume(matrix, positive_definite=True)


FORMS = {
    "row": definite(R[distances(R.shape[0])]),
    "turned": definite(R[distances(R.shape[0])]).T,
    "said": structured(A, toeplitz=True, positive_definite=True),
    "said of its shape": structured(
        A, shape=(FEWEST_ROWS, None), toeplitz=True, positive_definite=True, check=False
    ),
}


def values(n, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    row = np.exp(-np.arange(n) / 3.0) * np.cos(np.arange(n) / 5.0)
    row[:1] += noise
    return row, scipy.linalg.toeplitz(row), rng.normal(size=n), rng.normal(size=(n, 2))


def ops(function):
    return {
        type(getattr(node.op, "core_op", node.op)).__name__
        for node in function.maker.fgraph.apply_nodes
    }


def is_on_row(function):
    found = ops(function)
    factorizing = {"Cholesky", "CholeskySolve", "Solve", "Det", "MatrixInverse", "LUFactor"}
    if "ToeplitzSolve" not in found:
        return False
    assert not found & factorizing
    return True


def few(form):
    columns = pt.specify_shape(Z, (None, 2))
    return [
        solve(form, Y),
        solve(form, columns),
        inv(form) @ Y,
        columns.T @ inv(form),
        slogdet(form)[1],
        det(form),
    ]


@pytest.mark.parametrize("form", FORMS)
def test_values(form):
    ours, stock = compile_both(INPUTS, few(FORMS[form]), EXACT)
    assert is_on_row(ours)
    for n in [FEWEST_ROWS] if form == "said of its shape" else [1, 6, FEWEST_ROWS]:
        given = values(n)
        wanted = scipy.linalg.solve_toeplitz(given[0], given[2])
        results = ours(*given)
        np.testing.assert_allclose(results[0], wanted, rtol=1e-9, atol=1e-12)
        for mine, theirs in zip(results, stock(*given), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)


def quadratic(matrix):
    return Y @ solve(matrix, Y)


LEFT_ALONE = {
    "not said to be definite": lambda: few(R[distances(R.shape[0])]),
    "not Toeplitz": lambda: few(definite(A)),
    "not from zero": lambda: [solve(definite(R[pt.arange(R.shape[0])[:, None] * 0 + 1]), Y)],
    "sum of places": lambda: [
        solve(definite(R[pt.abs(pt.arange(3)[:, None] + pt.arange(3)[None, :])]), Y)
    ],
    "many columns": lambda: [solve(FORMS["row"], Z)],
    "inverse": lambda: [inv(FORMS["row"]), slogdet(FORMS["row"])[1]],
    "factor": lambda: [cholesky(FORMS["row"]), solve(FORMS["row"], Y)],
    "gradient of log-determinant": lambda: [
        pytensor.grad(quadratic(FORMS["row"]) + slogdet(FORMS["row"])[1], R)
    ],
    "stack": lambda: [solve(FORMS["row"][None], pt.stack([Z, Z])), solve(FORMS["row"], Y)],
    "solved again": lambda: [solve(FORMS["row"], solve(FORMS["row"], Y))],
    "single precision": lambda: [slogdet(definite(R[distances(6)].astype("float32")))[1]],
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case):
    ours, stock = compile_both(INPUTS, LEFT_ALONE[case](), EXACT)
    assert not is_on_row(ours)
    if case in ("inverse", "factor", "gradient of log-determinant", "stack", "many columns"):
        given = values(6)
        for mine, theirs in zip(ours(*given), stock(*given), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-10)


@pytest.mark.parametrize("n", [6, FEWEST_ROWS])
def test_gradient_of_quadratic_form(n):
    cost = quadratic(FORMS["row"])
    ours, stock = compile_both(INPUTS, [cost, *pytensor.grad(cost, [R, Y])], EXACT)
    assert is_on_row(ours)
    for mine, theirs in zip(ours(*values(n)), stock(*values(n)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [6, FEWEST_ROWS])
def test_not_definite(n):
    form = FORMS["row"]
    ours, _ = compile_both(INPUTS, [solve(form, Y), *slogdet(form), det(form)], EXACT)
    for spoilt in -1.0, 0.0, np.nan:
        row, *others = values(n)
        row[0] = spoilt
        assert all(np.isnan(one).all() for one in ours(row, *others))
    row[:] = 1
    row[1] = 2
    assert all(np.isnan(one).all() for one in ours(row, *others))


def test_lengths_that_do_not_fit():
    form = FORMS["row"]
    ours, _ = compile_both(INPUTS, [solve(form, Y)], EXACT)
    row, whole, right, more = values(6)
    with pytest.raises((ValueError, AssertionError)):
        ours(row, whole, right[:5], more)
    beyond = definite(R[distances(7)])
    ours, stock = compile_both(INPUTS, [slogdet(beyond)[1]], EXACT)
    assert is_on_row(ours)
    for function in ours, stock:
        with pytest.raises((IndexError, AssertionError)):
            function(row, whole, right, more)


def test_part_of_a_row():
    form = definite(R[distances(4)])
    ours, stock = compile_both(INPUTS, [slogdet(form)[1], solve(form, Y[:4])], EXACT)
    assert is_on_row(ours)
    for mine, theirs in zip(ours(*values(6)), stock(*values(6)), strict=True):
        np.testing.assert_allclose(mine, theirs)


@pytest.mark.parametrize("n", SIZES)
def test_matrix_that_is_nearly_singular(n):
    """There the whole matrix is factorized."""
    form = FORMS["row"]
    ours, _ = compile_both(INPUTS, [solve(form, Y), slogdet(form)[1]], EXACT)
    row, whole, right, more = values(n)
    row = np.exp(-((np.arange(n) / 3.0) ** 2))
    row[:1] += 1e-5
    matrix = scipy.linalg.toeplitz(row) if n else np.empty((0, 0))
    factor = np.linalg.cholesky(matrix)
    solution, logarithm = ours(row, whole, right, more)
    expected = scipy.linalg.cho_solve((factor, True), right) if n else right
    np.testing.assert_allclose(
        solution, expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max(initial=0)
    )
    np.testing.assert_allclose(
        logarithm, 2 * np.log(np.diagonal(factor)).sum(), rtol=1e-10, atol=1e-14
    )


def test_compiled():
    form = FORMS["row"]
    ours, _ = compile_both(INPUTS, [solve(form, Y), slogdet(form)[1]], get_mode("NUMBA"), EXACT)
    assert is_on_row(ours)
    for n, noise in (6, 0.1), (300, 0.5), (300, 1e-3), (300, -2.0):
        given = values(n, noise)
        _, matrix, right, _ = given
        solution, logarithm = ours(*given)
        if np.linalg.eigvalsh(matrix)[0] <= 0:
            assert np.isnan(solution).all()
            assert np.isnan(logarithm)
            continue
        wanted = np.linalg.solve(matrix, right)
        np.testing.assert_allclose(solution, wanted, rtol=1e-8, atol=1e-11)
        assert logarithm == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-11)


def kernels(n):
    """Return covariances on a regular grid, with more and less noise."""
    for step in (0.05, 0.3, 1.0) if n < 35 else (0.3,):
        d = np.arange(n) * step
        for row in (
            np.exp(-d),
            np.exp(-(d**2) / 2),
            (1 + d) * np.exp(-d),
            np.exp(-d) * np.cos(3 * d),
        ):
            for noise in 1.0, 0.3, 0.11, 0.01, 1e-5, 1e-11:
                yield np.concatenate([row[:1] + noise, row[1:]])


@pytest.mark.parametrize("n", [5, 20, 35])
def test_error(n):
    """It is at most 10 times that of Cholesky's factorization, wherever there is a result."""
    rng = np.random.default_rng(n)
    conditions = []
    for row in kernels(n):
        _, pivots = levinson(row, np.empty((n, 0)))
        if pivots is None:
            continue
        matrix = scipy.linalg.toeplitz(row)
        conditions.append(np.linalg.cond(matrix))
        # Also such as make the error large, whose solutions are not.
        right = np.stack([rng.normal(size=n), matrix @ rng.normal(size=n)], axis=1)
        exact = solved(factored(extended(matrix)), extended(right))
        by_cholesky = scipy.linalg.cho_solve(scipy.linalg.cho_factor(matrix), right)
        for at in range(2):
            mine = error(levinson(row, right)[0][:, at], exact[:, at])
            theirs = error(by_cholesky[:, at], exact[:, at])
            assert mine <= 10 * max(theirs, 1e-15), (row[:2], mine, theirs)
        logarithm = log_determinant(extended(matrix))
        diagonal = np.diagonal(np.linalg.cholesky(matrix))
        mine, theirs = (
            abs(float(one - logarithm))
            for one in (np.log(pivots).sum(), 2 * np.log(diagonal).sum())
        )
        assert mine <= 10 * max(theirs, n * 2e-16), (row[:2], mine, theirs)
    assert max(conditions) > 30


@pytest.mark.parametrize("noise", [0.3, 0.5])
def test_error_of_many_rows(noise):
    """The errors of the pivots add up, up to what the documentation says."""
    row, matrix, right, _ = values(FEWEST_ROWS, noise)
    solution, pivots = levinson(row, right[:, None])
    factor = np.linalg.cholesky(matrix)
    wanted = scipy.linalg.cho_solve((factor, True), right)
    np.testing.assert_allclose(solution[:, 0], wanted, rtol=0, atol=2e-14 * np.abs(wanted).max())
    logarithm = 2 * np.log(np.diagonal(factor)).sum()
    assert abs(np.log(pivots).sum() - logarithm) < 20 * len(row) * np.finfo(float).eps
