"""Work on tridiagonal matrices is done on their diagonals."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import get_mode
from pytensor.tensor.linalg import det, inv, slogdet, solve

from pytensor_fuse.linalg import structured
from support.extended import error, log_determinant, refined
from support.linalg.rules import PYTHON, compile_both

N = 6
# PyTensor's fused reciprocals are those of 32-bit floats where they are left to Python.
EXACT = PYTHON.excluding("fusion")
D, E, F, Y = pt.dvectors("d", "e", "f", "y")
Z, A = pt.dmatrices("z", "a")
C = pt.dscalar("c")
INPUTS = [D, E, F, Y, Z, C]
WORK = ("Det", "Solve{", "MatrixInverse", "LUFactor{", "Cholesky{", "SLogDet")

FORMS = {
    "three diagonals": pt.diag(D) + pt.diag(E, 1) + pt.diag(F, -1),
    "symmetric": pt.diag(D) - pt.diag(E, 1) - pt.diag(E, -1),
    "numbers": C * (pt.eye(D.shape[0]) - pt.diag(E, -1) / 3) - (-pt.diag(F, 1)),
    "transposed": (pt.diag(D) + pt.diag(E, 1)).T + pt.diag(F, 1) * C,
    "of known size": pt.diag(pt.specify_shape(D, (N,))) + pt.diag(E, 1) + pt.diag(F, -1),
    "constant": pt.constant(np.diag(np.arange(3.0, 9.0)) + np.eye(N, k=1) - np.eye(N, k=-1)) / C,
    "said": structured(pt.diag(D) + pt.outer(Y, Y), tridiagonal=True, check=False),
}


def values(n=N, seed=0):
    rng = np.random.default_rng(seed)
    shapes = (n,), (n - 1,), (n - 1,), (n,), (n, 2), ()
    return [rng.normal(size=shape) for shape in shapes]


def compare(outputs, given, mode=EXACT, rtol=1e-9):
    ours, stock = compile_both(INPUTS, outputs, mode, EXACT)
    for mine, theirs in zip(ours(*given), stock(*given), strict=True):
        scale = np.abs(theirs).max(initial=0)
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=1e-10 * scale)
    return ours


def whole_matrices(function):
    """Return the work that is done on whole matrices."""
    names = [str(getattr(node.op, "core_op", node.op)) for node in function.maker.fgraph.toposort()]
    return [name for name in names if name.startswith(WORK)]


@pytest.mark.parametrize("form", FORMS)
def test_values(form):
    matrix = FORMS[form]
    sign, logarithm = slogdet(matrix)
    outputs = [
        logarithm,
        solve(matrix, Y),
        solve(matrix.T, Z),
        inv(matrix) @ Y,
        Z.T @ inv(matrix),
        inv(matrix.T),
    ]
    assert not whole_matrices(compare(outputs, values()))
    # PyTensor 3.0 loses the sign where it factorizes.
    ours, _ = compile_both(INPUTS, [sign, det(matrix), matrix], EXACT)
    sign, determinant, whole = ours(*values())
    assert determinant == pytest.approx(np.linalg.det(whole))
    assert sign == np.sign(determinant)


def density(matrix):
    return Y @ inv(matrix) @ Y + Y @ solve(matrix, Y) + slogdet(matrix)[1]


@pytest.mark.parametrize("form", ["three diagonals", "numbers"])
def test_gradients(form):
    cost = density(FORMS[form])
    wanted = [D, E, F, Y, C] if form == "numbers" else [D, E, F, Y]
    gradients = pytensor.grad(cost, wanted, disconnected_inputs="ignore")
    assert not whole_matrices(compare([cost, *gradients], values()))


def test_gradient_of_quadratic_form():
    """No matrix is made."""
    cost = Y @ solve(FORMS["three diagonals"], Y)
    function = compare(pytensor.grad(cost, [D, E, F, Y]), values())
    made = [out for node in function.maker.fgraph.toposort() for out in node.outputs]
    assert not any(out.type.ndim > 1 and not any(out.type.broadcastable) for out in made)


def test_gradient_that_is_needed_whole():
    matrix = FORMS["three diagonals"]
    cost = Y @ solve(matrix, Y) + slogdet(matrix)[1]
    compare(pytensor.grad(cost, [matrix, D, E]), values())


@pytest.mark.parametrize("n", [1, 2, 3])
def test_short_ones(n):
    """PyTensor's own solves, where they share a factorization, fail below three rows."""
    matrix = FORMS["three diagonals"]
    outputs = [*slogdet(matrix), solve(matrix, Y), solve(matrix, Z), inv(matrix)]
    ours, _ = compile_both(INPUTS, outputs, EXACT)
    assert not whole_matrices(ours)
    d, e, f, y, z, _ = given = values(n)
    whole = np.diag(d) + np.diag(e, 1) + np.diag(f, -1)
    expected = (
        *np.linalg.slogdet(whole),
        *(np.linalg.solve(whole, b) for b in (y, z)),
        np.linalg.inv(whole),
    )
    for mine, theirs in zip(ours(*given), expected, strict=True):
        np.testing.assert_allclose(mine, theirs)


def test_compiled():
    matrix = FORMS["three diagonals"]
    outputs = [slogdet(matrix)[1], solve(matrix, Y), *slogdet(matrix.T)]
    function = compare(outputs, values(), get_mode("NUMBA"))
    assert not whole_matrices(function)


def test_lengths_that_do_not_fit():
    """PyTensor takes diagonals that are too long for a part of a matrix, and computes on."""
    matrix = FORMS["three diagonals"]
    ours, _ = compile_both(INPUTS, [solve(matrix, Y), slogdet(matrix)[1]], EXACT)
    for at in range(4):
        given = values()
        given[at] = given[at][:-2]
        with pytest.raises(ValueError, match="lengths of matrices"):
            ours(*given)


def test_log_determinant_that_overflows():
    logarithm = slogdet(FORMS["three diagonals"])[1]
    ours, _ = compile_both(INPUTS, [logarithm, pytensor.grad(logarithm, D)], EXACT)
    for scale in 1e-5, 1e5:
        given = [scale * np.ones(100), *(np.zeros(99),) * 2, np.ones(100), np.ones((100, 1)), 1.0]
        value, gradient = ours(*given)
        assert value == pytest.approx(100 * np.log(scale))
        np.testing.assert_allclose(gradient, np.ones(100) / scale)


def test_singular():
    given = values()
    given[0], given[1], given[2] = np.zeros(N), np.zeros(N - 1), np.zeros(N - 1)
    sign, logarithm = slogdet(FORMS["three diagonals"])
    ours, _ = compile_both(INPUTS, [sign, logarithm, solve(FORMS["three diagonals"], Y)], EXACT)
    sign, logarithm, solution = ours(*given)
    assert (sign, logarithm) == (0, -np.inf)
    assert not np.isfinite(solution).any()


def test_left_alone():
    wide = pt.diag(D) + pt.diag(E[1:], 2)
    for outputs in (
        [slogdet(wide)[1], solve(wide, Y)],
        [slogdet(pt.diag(D) + pt.diag(E, 1) + pt.outer(Y, Y))[1]],
        [solve(pt.diag(D), Y)],
    ):
        ours = compare(outputs, values())
        assert not any("Tridiagonal" in str(node.op) for node in ours.maker.fgraph.toposort())


@pytest.mark.parametrize("shift", [1e-2, 1e-6, 1e-10])
def test_rounding(shift):
    """The error is at most ten times that of an LU factorization of the whole."""
    n = 60
    rng = np.random.default_rng(1)
    given = [np.full(n, 2 + shift), -np.ones(n - 1), -np.ones(n - 1), rng.normal(size=n)]
    given += [np.ones((n, 1)), 1.0]
    matrix = FORMS["three diagonals"]
    ours, stock = compile_both(INPUTS, [solve(matrix, Y), slogdet(matrix)[1]], EXACT)
    whole = np.diag(given[0]) + np.diag(given[1], 1) + np.diag(given[2], -1)
    references = refined(whole, given[3]), log_determinant(whole)
    for mine, theirs, exact in zip(ours(*given), stock(*given), references, strict=True):
        exact = np.atleast_1d(np.asarray(exact, dtype=object))
        bound = max(10 * error(np.atleast_1d(theirs), exact), 1e-14)
        assert error(np.atleast_1d(mine), exact) <= bound
