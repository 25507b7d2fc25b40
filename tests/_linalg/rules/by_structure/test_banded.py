"""Work on matrices with more than three diagonals is done on these."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import get_mode
from pytensor.tensor.linalg import det, inv, slogdet, solve

from pytensor_fuse.linalg import structured
from support.extended import error, log_determinant, refined
from support.linalg.rules import PYTHON, compile_both, compile_ours

N = 35
# PyTensor's fused reciprocals are those of 32-bit floats where they are left to Python.
EXACT = PYTHON.excluding("fusion")
D, E, F, Y = pt.dvectors("d", "e", "f", "y")
Z, A = pt.dmatrices("z", "a")
C = pt.dscalar("c")
INPUTS = [D, E, F, Y, Z, C, A]
WORK = ("Det", "Solve{", "MatrixInverse", "LUFactor{", "Cholesky{", "SLogDet")


def whole(rows=N, seed=0):
    """Return a constant with five diagonals."""
    rng = np.random.default_rng(seed)
    return np.triu(np.tril(rng.normal(size=(rows, rows)), 2), -2)


FORMS = {
    "five diagonals": pt.diag(D) + pt.diag(E, 2) + pt.diag(F, -1),
    "symmetric": pt.diag(D) - pt.diag(E, 2) - pt.diag(E, -2),
    "numbers": C * (pt.eye(D.shape[0]) - pt.diag(E, -2) / 3) - (-pt.diag(F, 1)),
    "transposed": (pt.diag(D) + pt.diag(E, 2)).T + pt.diag(F, 1) * C,
    "of known size": pt.diag(pt.specify_shape(D, (N,))) + pt.diag(E, 2) + pt.diag(F, -1),
    "constant": pt.constant(whole()) / C,
    "said": structured(A, banded=(3, 2)),
    "one triangle": pt.diag(D) + pt.diag(E, -2),
}


def values(n=N, seed=0):
    rng = np.random.default_rng(seed)
    shapes = (n,), (n - 2,), (n - 1,), (n,), (n, 2), ()
    return [*(rng.normal(size=shape) for shape in shapes), whole(n)]


def compare(outputs, given, mode=EXACT, rtol=1e-9):
    ours, stock = compile_both(INPUTS, outputs, mode, EXACT)
    for mine, theirs in zip(ours(*given), stock(*given), strict=True):
        scale = np.abs(theirs).max(initial=0)
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=1e-10 * scale)
    return ours


def names(function):
    nodes = function.maker.fgraph.toposort()
    return [str(getattr(node.op, "core_op", node.op)) for node in nodes]


def is_on_diagonals(function):
    """Whether all is done with one factorization of the diagonals."""
    found = names(function)
    if not any("Banded" in name for name in found):
        return False
    assert not any(name.startswith(WORK) for name in found)
    assert sum(name.startswith("LUFactorBanded") for name in found) == 1
    return True


@pytest.mark.parametrize("form", FORMS)
def test_values(form):
    matrix = FORMS[form]
    outputs = [
        slogdet(matrix)[1],
        solve(matrix, Y),
        solve(matrix.T, Z),
        inv(matrix) @ Y,
        Z.T @ inv(matrix),
        inv(matrix.T),
        solve(matrix, pt.outer(Y, Y)),
    ]
    assert is_on_diagonals(compare(outputs, values()))
    # PyTensor 3.0 loses the sign where it factorizes.
    ours = compile_ours(INPUTS, [slogdet(matrix)[0], det(matrix), matrix], EXACT)
    sign, determinant, made = ours(*values())
    assert determinant == pytest.approx(np.linalg.det(made))
    assert sign == np.sign(determinant)


def density(matrix):
    return -0.5 * (Y @ solve(matrix, Y) + slogdet(matrix)[1])


def gradient_by_matrix(whole, y):
    inverse = np.linalg.inv(whole)
    return 0.5 * (np.outer(inverse.T @ y, inverse @ y) - inverse.T)


def test_gradients():
    matrix = FORMS["five diagonals"]
    cost = density(matrix)
    outputs = [cost, *pytensor.grad(cost, [D, E, F, Y])]
    assert is_on_diagonals(compare(outputs, values()))


def test_gradient_by_what_is_said_to_be_banded():
    cost = density(FORMS["said"])
    ours = compile_ours(INPUTS, [pytensor.grad(cost, A)], EXACT)
    assert is_on_diagonals(ours)
    given = values()
    *_, a = given
    expected = np.triu(np.tril(gradient_by_matrix(a, given[3]), 2), -3)
    np.testing.assert_allclose(ours(*given)[0], expected, rtol=1e-9, atol=1e-9)


def test_gradients_against_differences():
    cost = density(FORMS["five diagonals"])
    ours = compile_ours(INPUTS, [cost, *pytensor.grad(cost, [D, E, F, Y])], EXACT)
    given = values(6)
    given[0] = given[0] + 4
    _, *gradients = ours(*given)
    step = 1e-6
    for at, gradient in enumerate(gradients):
        for i in range(len(gradient)):
            costs = []
            for sign in (1, -1):
                moved = [np.array(one) for one in given]
                moved[at][i] += sign * step
                costs.append(ours(*moved)[0])
            difference = (costs[0] - costs[1]) / (2 * step)
            assert gradient[i] == pytest.approx(difference, rel=1e-6, abs=1e-8)


def test_gradient_of_quadratic_form():
    """No square matrix is made."""
    cost = Y @ solve(FORMS["of known size"], Y)
    ours = compile_ours(INPUTS, pytensor.grad(cost, [D, E, F, Y]), EXACT)
    made = [out for node in ours.maker.fgraph.toposort() for out in node.outputs]
    matrices = [one for one in made if one.type.ndim > 1 and not any(one.type.broadcastable)]
    assert {one.type.shape for one in matrices} == {(5, N)}


def test_gradient_that_is_needed_whole():
    matrix = FORMS["five diagonals"]
    ours = compile_ours(INPUTS, [matrix, *pytensor.grad(density(matrix), [matrix, E])], EXACT)
    given = values()
    whole, by_matrix, by_diagonal = ours(*given)
    expected = gradient_by_matrix(whole, given[3])
    np.testing.assert_allclose(by_matrix, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(by_diagonal, np.diagonal(expected, 2), rtol=1e-9, atol=1e-9)


def test_random_diagonals():
    rng = np.random.default_rng(0)
    main, right = pt.dvector("main", shape=(70,)), np.ones(70)
    for _ in range(8):
        # One that is not beside the main one, and that not all of which is in the storage.
        offsets = [*rng.choice(np.arange(-4, 5), 4, replace=False), rng.choice([-4, -2, 2])]
        matrix = pt.diag(main)
        for at in offsets:
            matrix = matrix + pt.diag(main[abs(at) :], int(at)) * at
        ours = compile_ours([main], [matrix, solve(matrix, right), *slogdet(matrix)], EXACT)
        assert is_on_diagonals(ours)
        whole, solution, sign, logarithm = ours(rng.normal(size=70))
        # They may be close to singular.
        sizes = np.abs(whole) @ np.abs(solution) + right
        assert (np.abs(whole @ solution - right) <= 1e-12 * sizes.max()).all()
        wanted = np.linalg.slogdet(whole)
        near = 1e-14 * np.linalg.cond(whole)
        assert near > 1e-3 or (sign == wanted[0] and abs(logarithm - wanted[1]) <= near)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_short_ones(n):
    """As short as what is stored of them."""
    matrix = structured(A, banded=(2, 2))
    outputs = [*slogdet(matrix), solve(matrix, Y), solve(matrix, Z), inv(matrix)]
    given = values(4)
    given[3:5] = given[3][:n], given[4][:n]
    given[-1] = given[-1][:n, :n]
    assert is_on_diagonals(compare(outputs, given))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_too_short_for_what_is_said(n):
    ours, stock = compile_both(INPUTS, [slogdet(FORMS["said"])[1]], EXACT)
    given = values(4)
    given[-1] = given[-1][:n, :n]
    for function in ours, stock:
        with pytest.raises(AssertionError, match="has at least 3 rows"):
            function(*given)
    known = structured(A, shape=(n, None), banded=(3, 2))
    compare([slogdet(known)[1], solve(known, Y[:n])], given)


@pytest.mark.parametrize("offset", [2, 12])
def test_diagonal_that_begins_outside(offset):
    """An empty one makes a matrix as large as its offset."""
    matrix = pt.diag(D) + pt.diag(E, -1) + pt.diag(F, offset)
    ours, stock = compile_both([D, E, F], [slogdet(matrix)[1]], EXACT)
    assert is_on_diagonals(ours)
    fits = np.ones(offset), np.ones(offset - 1), np.ones(0)
    np.testing.assert_allclose(ours(*fits), stock(*fits), atol=1e-14)
    with pytest.raises(ValueError, match="lengths of matrices"):
        ours(np.ones(1), np.ones(0), np.ones(0))


def test_diagonal_without_elements():
    matrix = FORMS["five diagonals"]
    compare([slogdet(matrix)[1], solve(matrix, Y)], values(2))


@pytest.mark.parametrize("mode", ["NUMBA", "CVM"])
def test_compiled(mode):
    matrix = FORMS["of known size"]
    outputs = [slogdet(matrix)[1], solve(matrix.T, Z)]
    assert is_on_diagonals(compare(outputs, values(), get_mode(mode)))


def test_lengths_that_do_not_fit():
    matrix = FORMS["five diagonals"]
    ours = compile_ours(INPUTS, [solve(matrix, Y), slogdet(matrix)[1]], EXACT)
    for at in range(4):
        given = values()
        given[at] = given[at][:-2]
        with pytest.raises(ValueError, match="lengths of matrices"):
            ours(*given)


ROWS = pt.lscalar("rows")


@pytest.mark.parametrize("known", [None, N])
@pytest.mark.parametrize(
    "part",
    [
        C * pt.eye(ROWS),
        C * pt.eye(ROWS, k=2),
        pt.eye(ROWS, k=2).T * C,
        pt.eye(ROWS) * D[None, :],
        pt.eye(ROWS) * pt.full((ROWS,), C)[:, None],
        pt.diag(pt.full((ROWS,), C)),
        pt.diag(pt.full((ROWS - 2,), C), 2),
    ],
)
def test_part_that_does_not_fit(part, known):
    """PyTensor adds some of them to a part of the matrix."""
    main = pt.specify_shape(D, (known,))
    matrix = pt.diag(main) + pt.diag(E, -2) + part
    ours, stock = compile_both([*INPUTS, ROWS], [solve(matrix, Y)], EXACT)
    assert is_on_diagonals(ours)
    for mine, theirs in zip(ours(*values(), N), stock(*values(), N), strict=True):
        np.testing.assert_allclose(mine, theirs)
    for other in (N - 1, N + 1):
        with pytest.raises((AssertionError, ValueError)):
            ours(*values(), other)


def test_identities_alone():
    matrix = pt.eye(ROWS) * C + pt.eye(ROWS, k=2) - pt.eye(ROWS, k=-3)
    ours, stock = compile_both([*INPUTS, ROWS], [solve(matrix, Y), slogdet(matrix)[1]], EXACT)
    assert is_on_diagonals(ours)
    for mine, theirs in zip(ours(*values(), N), stock(*values(), N), strict=True):
        np.testing.assert_allclose(mine, theirs)


UNSIGNED = pytest.param(
    "uint64",
    marks=pytest.mark.skipif(
        pytensor.__version__.startswith("3.0."), reason="PyTensor 3.0 takes no such number of rows"
    ),
)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", UNSIGNED])
def test_identities_that_begin_outside(dtype):
    rows = pt.scalar("rows", dtype=dtype)
    for offsets in (2, -3), (1, -1):
        matrix = pt.eye(rows, k=offsets[0]) + C * pt.eye(rows, k=offsets[1])
        ours, stock = compile_both([C, rows], [det(matrix)], EXACT)
        for size in range(6):
            given = 2.0, np.array(size, dtype)
            np.testing.assert_allclose(ours(*given), stock(*given), atol=1e-14)


def test_right_hand_side_that_cannot_fit():
    for offset in (1, 2):
        main = pt.specify_shape(D, (N,))
        matrix = pt.diag(main) + pt.diag(E, offset) + pt.diag(E, -offset)
        f = compile_ours([D, E, Y], [solve(matrix, pt.specify_shape(Y, (4,)))], EXACT)
        with pytest.raises((ValueError, IndexError)):
            f(np.ones(N), np.ones(N - offset), np.ones(4))


@pytest.mark.parametrize("assumed", ["pos", "sym", "tridiagonal"])
@pytest.mark.parametrize("form", ["one triangle", "five diagonals"])
def test_solves_that_do_not_read_all(assumed, form):
    """They read one triangle, or three diagonals, of a matrix that has other elements."""
    outputs = [solve(FORMS[form], b, assume_a=assumed, lower=True) for b in (Y, Z)]
    given = values()
    given[0] = np.abs(given[0]) + 8
    assert not is_on_diagonals(compare(outputs, given))


def test_solves_with_symmetric_ones():
    """What is read of them is the same as all."""
    by_form = pt.diag(D) + pt.diag(E, -2) / C + pt.diag(E, 2) / C
    said = structured(A, banded=(2, 2), symmetric=True)
    given = values()
    given[0] = np.abs(given[0]) + 8
    given[-1] = given[-1] + given[-1].T + 12 * np.eye(N)
    for matrix, assumed in ((by_form, "sym"), (said, "sym"), (said, "gen")):
        ours = compare([solve(matrix, Y, assume_a=assumed)], given)
        assert is_on_diagonals(ours), assumed


def test_solves_that_suppose_a_definite_matrix():
    """They give NaN of others, which an LU factorization does not see."""
    symmetric = pt.diag(D) + pt.diag(E, -2) + pt.diag(E, 2)
    given = values()
    given[0] = -np.abs(given[0]) - 8
    ours = compare([solve(symmetric, Y, assume_a="pos")], given)
    assert not is_on_diagonals(ours)


def test_log_determinant_that_overflows():
    logarithm = slogdet(FORMS["five diagonals"])[1]
    ours = compile_ours(INPUTS, [logarithm, pytensor.grad(logarithm, D)], EXACT)
    for scale in 1e-5, 1e5:
        given = values(100)
        given[:3] = scale * np.ones(100), np.zeros(98), np.zeros(99)
        value, gradient = ours(*given)
        assert value == pytest.approx(100 * np.log(scale))
        np.testing.assert_allclose(gradient, np.ones(100) / scale)


def test_singular_and_not_finite():
    matrix = FORMS["five diagonals"]
    sign, logarithm = slogdet(matrix)
    ours = compile_ours(INPUTS, [sign, logarithm, solve(matrix, Y), inv(matrix)], EXACT)
    given = values()
    given[0], given[1], given[2] = np.zeros(N), np.zeros(N - 2), np.zeros(N - 1)
    sign, logarithm, *others = ours(*given)
    assert (sign, logarithm) == (0, -np.inf)
    assert all(np.isnan(one).all() for one in others)
    for at in range(3):
        given = values()
        given[at][5] = np.nan
        assert all(np.isnan(one).all() for one in ours(*given))


def wide(offset, known=None):
    main = D if known is None else pt.specify_shape(D, (known,))
    return pt.diag(main) + pt.diag(E, offset) + pt.diag(F, -offset)


def test_fires_where_there_are_few_diagonals():
    """Of the size, if that is known; otherwise of any, unless the band is said."""
    for known, offset, is_few in (
        (None, 5, True),
        (None, 6, False),
        (34, 2, False),
        (35, 2, True),
        (1000, 66, True),
        (1000, 67, False),
    ):
        ours = compile_ours(INPUTS, [slogdet(wide(offset, known))[1]], EXACT)
        assert is_on_diagonals(ours) is is_few, (known, offset)
    said = 2 * structured(A, banded=(8, 9)) + pt.diag(D)
    assert is_on_diagonals(compare([slogdet(said)[1]], values(40)))
    said = structured(A, shape=(60, None), banded=(8, 9))
    assert not is_on_diagonals(compile_ours(INPUTS, [slogdet(said)[1]], EXACT))


def test_left_alone():
    single, whole_numbers = pt.fmatrix("single"), pt.lmatrix("whole numbers")
    for outputs in (
        [slogdet(pt.diag(D) + pt.diag(E, 2) + pt.outer(Y, Y))[1]],
        [solve(pt.diag(D) + pt.diag(E, 1), Y)],
        [solve(structured(single, banded=(2, 2)), Y)],
        [det(structured(whole_numbers, banded=(2, 2)))],
        [pt.linalg.cholesky(FORMS["five diagonals"])],
        [det(pt.stack([FORMS["five diagonals"]] * 2))],
        [det(pt.constant(np.ones((40, 40))) * C)],
        # Zero but for more diagonals than are looked for.
        [det(pt.constant(np.diag(np.ones(40)) + np.eye(40)[::-1]) * C)],
    ):
        ours = compile_ours([*INPUTS, single, whole_numbers], outputs, EXACT)
        assert not is_on_diagonals(ours)


def test_single_precision():
    single, right = pt.fmatrix("single"), pt.fvector("right")
    matrix = structured(single, banded=(2, 2))
    outputs = [solve(matrix, right), slogdet(matrix)[1]]
    ours, stock = compile_both([single, right], outputs, EXACT)
    assert is_on_diagonals(ours)
    given = (whole() + 4 * np.eye(N)).astype("float32"), np.ones(N, "float32")
    for mine, theirs in zip(ours(*given), stock(*given), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-4)


@pytest.mark.parametrize("shift", [1e-2, 1e-6, 1e-10])
def test_rounding(shift):
    """The error is at most ten times that of an LU factorization of the whole."""
    n = 60
    rng = np.random.default_rng(1)
    second = np.diff(np.eye(n + 1), axis=1)[:n]
    # A fourth difference.
    matrix = second @ second.T @ second @ second.T + shift * np.eye(n)
    given = [*values(n)[:3], rng.normal(size=n), np.ones((n, 1)), 1.0, matrix]
    said = structured(A, banded=(2, 2))
    ours, stock = compile_both(INPUTS, [solve(said, Y), slogdet(said)[1]], EXACT)
    assert is_on_diagonals(ours)
    references = refined(matrix, given[3]), log_determinant(matrix)
    for mine, theirs, exact in zip(ours(*given), stock(*given), references, strict=True):
        exact = np.atleast_1d(np.asarray(exact, dtype=object))
        bound = max(10 * error(np.atleast_1d(theirs), exact), 1e-14)
        assert error(np.atleast_1d(mine), exact) <= bound
