"""Work on triangular matrices and on their products: as stock's, without a factorization."""

import warnings

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.assumptions import assume
from pytensor.compile.mode import Mode, get_mode
from pytensor.tensor.linalg import (
    cholesky,
    det,
    inv,
    kron,
    slogdet,
    solve,
    solve_triangular,
)

from support.linalg.rules import (
    ORACLE,
    OTHER_BACKENDS,
    check,
    compile_both,
    compile_stock,
    cubic,
    estimated,
    positive_definite,
)

N = 5
K, A, B = (pt.dmatrix(name, shape=(N, N)) for name in "KAB")
V = pt.dvector("v", shape=(N * (N + 1) // 2,))
Y = pt.dvector("y", shape=(N,))
X = pt.dmatrix("X", shape=(N, 3))
INPUTS = [K, A, B, V, Y, X]
RNG = np.random.default_rng(3)
ROWS, COLUMNS = np.tril_indices(N)
PLACES = np.arange(N)


def values(dtype="float64"):
    rng = np.random.default_rng(3)
    # With negative numbers on the diagonals.
    packed = rng.normal(size=V.type.shape)
    packed[ROWS == COLUMNS] = [1.5, -2, 1, -1, 3]
    made = [positive_definite(N), *(rng.normal(size=(N, N)) + 3 * np.eye(N) for _ in "AB"), packed]
    made += [rng.normal(size=N), rng.normal(size=(N, 3))]
    return [one.astype(dtype) for one in made]


PACKED = pt.set_subtensor(pt.zeros((N, N))[ROWS, COLUMNS], V)
POSITIVE = pt.set_subtensor(PACKED[PLACES, PLACES], pt.softplus(PACKED[PLACES, PLACES]))
FORMS = {
    "packed": PACKED,
    "packed, positive diagonal": POSITIVE,
    "packed, upper": pt.set_subtensor(pt.zeros((N, N))[COLUMNS, ROWS], V),
    "tril": pt.tril(A),
    "triu": pt.triu(A),
    "product": pt.tril(A) @ pt.tril(B),
    "product of both": pt.tril(A) @ pt.triu(B),
    "L L'": PACKED @ PACKED.T,
    "L' L": PACKED.T @ PACKED,
    "U U'": pt.triu(A) @ pt.triu(A).T,
    "factor": cholesky(K),
    "upper factor": cholesky(K, lower=False),
    "U U' of a factor": cholesky(K, lower=False) @ cholesky(K, lower=False).T,
    "transposed": (PACKED @ pt.triu(A)).T,
    "Kronecker product": kron(PACKED, pt.tril(A)),
    "scaled": 3 * pt.tril(A) / pt.exp(Y[:, None]),
}
GENERAL = {"LUFactor", "MatrixInverse", "Solve", "Det", "SLogDet", "LUInverse", "CholeskySolve"}


def work_on(matrix):
    n = matrix.type.shape[0]
    right = pt.concatenate([X] * (n // N), axis=0)
    vector = pt.concatenate([Y] * (n // N))
    return {
        "solve": [solve(matrix, right)],
        "solve for a vector": [solve(matrix, vector)],
        "determinant": [det(matrix)],
        "logarithm": list(slogdet(matrix)),
        "inverse": [inv(matrix)],
        "product with the inverse": [inv(matrix) @ right, right.T @ inv(matrix).T],
        "all": [solve(matrix.T, right), *slogdet(matrix), inv(matrix)],
    }


ALONE = ["packed", "L L'", "product of both", "Kronecker product"]


@pytest.mark.parametrize("work", work_on(A))
@pytest.mark.parametrize("form", ALONE)
def test_work(form, work):
    ours, stock = compile_both(INPUTS, work_on(FORMS[form])[work])
    for mine, theirs in zip(ours(*values()), stock(*values()), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-9)
    assert not GENERAL & set(cubic(ours))
    # The factors of a Kronecker product are smaller.
    assert estimated(ours) <= estimated(stock) or form == "Kronecker product"


@pytest.mark.parametrize("form", FORMS)
def test_all_work_at_once(form):
    outputs = [one for some in work_on(FORMS[form]).values() for one in some]
    ours, stock = compile_both(INPUTS, outputs)
    # From an LU factorization, stock's rewriters in PyTensor 3.0 lose the sign of a determinant.
    as_it_is = compile_stock(INPUTS, outputs, Mode("py", optimizer=None))
    for mine, theirs in zip(ours(*values()), as_it_is(*values()), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-9)
    assert not GENERAL - {"CholeskySolve"} & set(cubic(ours))
    assert cubic(ours)["Cholesky"] <= cubic(stock)["Cholesky"]
    assert estimated(ours) <= estimated(stock)


@pytest.mark.parametrize("mode", OTHER_BACKENDS)
def test_modes(mode):
    outputs = [solve(PACKED, X), *slogdet(PACKED @ PACKED.T), inv(pt.triu(A))]
    ours, _ = check(INPUTS, outputs, values(), mode=get_mode(mode), stock_mode=ORACLE)
    assert not GENERAL & set(ours)


# Matrices of unknown structure, or with assumptions that contradict their expressions.
OTHERS = {
    "neither": [slogdet(A)[1]],
    "symmetric": [solve(pt.tril(A), Y, assume_a="sym")],
    "sum": [slogdet(PACKED + A)[1]],
    "three of both": [inv(PACKED @ pt.triu(A) @ PACKED)],
}


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_left_alone(name):
    ours, stock = check(INPUTS, OTHERS[name], values(), rtol=1e-8)
    assert ours == stock


def test_what_is_said():
    known = assume(A, lower_triangular=True)
    given = values()
    given[1] = np.tril(given[1])
    outputs = [inv(known), *slogdet(known @ known.T), solve(known @ known.T, X)]
    ours, _ = check(INPUTS, outputs, given, rtol=1e-8)
    assert not GENERAL & set(ours)


@pytest.mark.parametrize("lower", [True, False])
def test_factor_of_a_product(lower):
    """Cholesky's has a positive diagonal, whatever the one has that it is made of."""
    ours, _ = check(INPUTS, [cholesky(PACKED @ PACKED.T, lower=lower)], values())
    assert not ours
    upper = pt.triu(A)
    ours, _ = check(INPUTS, [cholesky(upper.T @ upper, lower=lower)], values())
    assert not ours
    # That of U U' is another matrix.
    ours, stock = check(INPUTS, [cholesky(upper @ upper.T, lower=lower)], values())
    assert ours == stock


def test_factor_of_a_singular_product():
    """Where the factorization fails, no element is a number, in no column."""
    lower = pt.tril(A)
    ours, stock = compile_both([A], [cholesky(lower @ lower.T)], ORACLE)
    assert not cubic(ours)
    singular = np.ones((N, N))
    singular[2, 2] = 0
    for function in ours, stock:
        assert np.isnan(function(singular)[0]).all()


def test_batches():
    stack = pt.dtensor3("stack", shape=(2, N, N))
    rows = pt.dmatrix("rows", shape=(2, V.type.shape[0]))
    packed = pt.zeros((2, N, N))[:, ROWS, COLUMNS].set(rows)
    right = pt.dtensor3("right", shape=(2, N, 3))
    rng = np.random.default_rng(5)
    given = [
        rng.normal(size=(2, N, N)) + 3 * np.eye(N),
        rng.normal(size=rows.type.shape) + (ROWS == COLUMNS) * 3,
        rng.normal(size=(2, N, 3)),
    ]
    for matrix in (pt.tril(stack), packed, packed @ packed.mT, cholesky(packed @ packed.mT)):
        outputs = [solve(matrix, right), det(matrix), *slogdet(matrix), inv(matrix)]
        ours, _ = check([stack, rows, right], outputs, given, rtol=1e-8)
        assert not GENERAL & set(ours)
    # One matrix for a stack of right-hand sides.
    outputs = [solve(packed[0], right), inv(packed[0]) @ right]
    check([stack, rows, right], outputs, given, rtol=1e-8)


def of_unknown_size(dtype):
    matrix, right = pt.matrix("matrix", dtype=dtype), pt.matrix("right", dtype=dtype)
    lower = pt.tril(matrix)
    outputs = [solve(lower, right), det(lower), *slogdet(lower), inv(lower)]
    return compile_both([matrix, right], outputs, ORACLE)


OF_UNKNOWN_SIZE = {dtype: of_unknown_size(dtype) for dtype in ("float64", "float32")}
NUMBERS = st.sampled_from([0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 1e200, np.nan, np.inf])


@given(st.data(), st.sampled_from(sorted(OF_UNKNOWN_SIZE)), st.integers(0, 4))
def test_odd_numbers(data, dtype, n):
    """Zeros on the diagonal, what is not finite, no rows, one row: as stock's, or not a number."""
    numbers = data.draw(st.lists(NUMBERS, min_size=n * n, max_size=n * n))
    ours, stock = OF_UNKNOWN_SIZE[dtype]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matrix = np.array(numbers).reshape(n, n).astype(dtype)
        mine = ours(matrix, np.ones((n, 2), dtype))
        exact = np.prod(np.diagonal(matrix))
        try:
            theirs = stock(matrix, np.ones((n, 2), dtype))
        except np.linalg.LinAlgError:
            # A singular matrix has no inverse: ours is not finite.
            assert not np.isfinite(mine[-1]).all()
            return
    is_regular = np.isfinite(matrix).all() and exact and np.abs(matrix).max(initial=0) < 1e9
    for one, other in zip(mine, theirs, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        if is_regular:
            rounding = 1e-4 if dtype == "float32" else 1e-9
            bound = rounding * np.abs(other).max(initial=0)
            np.testing.assert_allclose(one, other, rtol=rounding, atol=bound)
    # Where stock's elimination cancels, a determinant is not 0 that is.
    np.testing.assert_allclose(mine[1], exact, rtol=1e-5)


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (0, 1)])
def test_matrices_that_are_not_square(shape):
    matrix = pt.dmatrix("matrix")
    lower = pt.tril(matrix)
    for output in det(lower), inv(lower), solve(lower, pt.ones((shape[0], 1))):
        for function in compile_both([matrix], [output], ORACLE):
            with pytest.raises(ValueError, match=r"square|length|differ|shape|compute"):
                function(np.ones(shape))
    # That of a product of such may be square.
    gram = lower @ lower.T
    ours, stock = compile_both([matrix], [det(gram), *slogdet(gram)], ORACLE)
    for one, other in zip(ours(np.ones(shape)), stock(np.ones(shape)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def density(matrix):
    return Y @ inv(matrix) @ Y + slogdet(matrix)[1]


def by_solve(matrix):
    return Y @ solve(matrix, Y) - 3 * pt.sqr(slogdet(matrix)[1])


@pytest.mark.parametrize("cost", [density, by_solve])
@pytest.mark.parametrize("factor", [PACKED, POSITIVE, pt.tril(A)])
def test_gradients(factor, cost):
    """Value and gradient by what the factor is written from take no cubic work."""
    value = cost(factor @ factor.T)
    gradients = pytensor.grad(value, [V, A, Y], disconnected_inputs="ignore")
    ours, _ = check(INPUTS, [value, *gradients], values(), ORACLE, 1e-8)
    assert not ours


@pytest.mark.parametrize("factor", [PACKED, POSITIVE, pt.triu(A), cholesky(K)])
def test_gradient_of_a_triangular_matrix_alone(factor):
    value = slogdet(factor)[1] + solve(factor, Y).sum()
    gradients = pytensor.grad(value, [V, A, K], disconnected_inputs="ignore")
    ours, _ = check(INPUTS, [value, *gradients], values(), ORACLE, 1e-8)
    assert not GENERAL & set(ours)


@pytest.mark.parametrize("offsets", [(0, -1), (0, 1), (0, -1, -2), (0, 1, 3), (0, -1, 1, 2)])
def test_gradients_of_bands(offsets):
    """By the diagonals of bands on one side, and on both: no cubic work."""
    n = 40
    rng = np.random.default_rng(2)
    diagonals = [pt.dvector(shape=(n - abs(at),)) for at in offsets]
    matrix = pt.add(*(pt.diag(one, at) for one, at in zip(diagonals, offsets, strict=True)))
    observed = pt.dvector("observed", shape=(n,))
    given = [rng.normal(size=n - abs(at)) + 4 * (at == 0) for at in offsets] + [np.ones(n)]
    for cost in slogdet(matrix)[1], observed @ inv(matrix) @ observed + slogdet(matrix.T)[1]:
        outputs = [cost, *pytensor.grad(cost, diagonals)]
        ours, _ = check([*diagonals, observed], outputs, given, ORACLE, 1e-8)
        assert not ours


def test_gradient_that_is_read_as_a_whole():
    """By a factor that is triangular as somebody says, the gradient is the whole of it."""
    known = assume(A, lower_triangular=True)
    value = density(known @ known.T)
    given = values()
    given[1] = np.tril(given[1])
    check(INPUTS, [value, pytensor.grad(value, A)], given, rtol=1e-8)


def test_gradient_against_differences():
    def value(packed):
        factor = pt.set_subtensor(pt.zeros((N, N))[ROWS, COLUMNS], packed)
        covariance = factor @ factor.T
        vector = pt.constant(values()[4])
        return vector @ inv(covariance) @ vector + slogdet(covariance)[1]

    pytensor.gradient.verify_grad(value, [values()[3]], rng=np.random.default_rng(0), mode=ORACLE)


def test_sparse_variational_gaussian_process():
    """The bound that ptgp's SVGP maximizes, with q(u) = N(m, L L') and L from a vector."""
    points = pt.dmatrix("points", shape=(20, 2))
    inducing = pt.dmatrix("inducing", shape=(N, 2))
    observed = pt.dvector("observed", shape=(20,))
    scale, noise = pt.dscalars("scale", "noise")

    def kernel(a, b):
        squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
        return pt.exp(-0.5 * squares / pt.exp(scale) ** 2)

    factor = cholesky(kernel(inducing, inducing) + 1e-6 * pt.eye(N))
    white = solve_triangular(factor, kernel(inducing, points), lower=True)
    covariance = POSITIVE @ POSITIVE.T
    mean = white.T @ Y
    variance = 1 - (white**2).sum(axis=0) + ((white.T @ POSITIVE) ** 2).sum(axis=1)
    fit = -0.5 * (((observed - mean) ** 2 + variance) / pt.exp(noise)).sum() - 10 * noise
    distance = 0.5 * (pt.trace(covariance) + Y @ Y - N - slogdet(covariance)[1])
    bound = fit - distance
    inputs = [points, inducing, observed, scale, noise, Y, V]
    given = [RNG.normal(size=(20, 2)), RNG.normal(size=(N, 2)), RNG.normal(size=20)]
    given += [0.1, 0.2, *(values()[at] for at in (4, 3))]
    factorizations = ("Cholesky", "LUFactor", "Det", "SLogDet", "MatrixInverse", "LUInverse")
    for outputs in [bound], [bound, *pytensor.grad(bound, inputs[1:])]:
        ours, stock = check(inputs, outputs, given, rtol=1e-7)
        assert sum(ours[one] for one in factorizations) == ours["Cholesky"] == 1
        assert sum(stock[one] for one in factorizations) > 1
        assert ours["CholeskyInverse"] == 0
