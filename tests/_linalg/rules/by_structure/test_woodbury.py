"""Work on a diagonal and a thin product is done on a matrix as small as the product is thin."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.mode import get_mode
from pytensor.graph.traversal import ancestors
from pytensor.tensor.linalg import det, inv, slogdet, solve

from support import extended
from support.effort import IS_DEEP, examples
from support.linalg.rules import ORACLE, OTHER_BACKENDS, compile_both

N, K = 30, 3
U = pt.dmatrix("U", shape=(N, K))
X = pt.dmatrix("X", shape=(K, N))
LOGS = pt.dvector("logs", shape=(N,))
WEIGHTS = pt.dvector("weights", shape=(K,))
SMALL = pt.dmatrix("small", shape=(K, K))
V = pt.dvector("v", shape=(N,))
SCALE, NOISE = pt.dscalars("scale", "noise")
Y = pt.dvector("y", shape=(N,))

RNG = np.random.default_rng(3)
VALUES = {
    U: RNG.normal(size=(N, K)),
    X: RNG.normal(size=(K, N)),
    LOGS: RNG.normal(size=N),
    WEIGHTS: RNG.normal(size=K),
    SMALL: RNG.normal(size=(K, K)),
    V: RNG.normal(size=N),
    SCALE: np.array(1.3),
    NOISE: np.array(-0.4),
    Y: RNG.normal(size=N),
}
DIAGONAL = pt.diag(pt.exp(LOGS))
IDENTITY = pt.eye(N)

FORMS = {
    "diagonal": (DIAGONAL + U @ U.T, [U, LOGS]),
    "identity": (U @ U.T + pt.exp(NOISE) * IDENTITY, [U, NOISE]),
    "turned": (X.T @ X + (NOISE**2 + 0.1) * IDENTITY, [X, NOISE]),
    "column": (IDENTITY * pt.exp(LOGS)[:, None] + U @ U.T, [U, LOGS]),
    "scaled": (SCALE**2 * (U @ U.T) + DIAGONAL, [U, LOGS, SCALE]),
    "scaled factor": ((SCALE**2 * U) @ U.T + DIAGONAL, [U, LOGS, SCALE]),
    "divided": (U @ U.T / pt.exp(SCALE) + DIAGONAL, [U, LOGS, SCALE]),
    "weighted": ((U * pt.exp(WEIGHTS)) @ U.T + DIAGONAL, [U, LOGS, WEIGHTS]),
    "weighted on the right": (U @ (pt.exp(WEIGHTS) * U).T + DIAGONAL, [U, LOGS, WEIGHTS]),
    "weights": (U @ pt.diag(pt.exp(WEIGHTS)) @ U.T + DIAGONAL, [U, LOGS, WEIGHTS]),
    "square inside": (U @ (SMALL @ SMALL.T) @ U.T + DIAGONAL, [U, LOGS, SMALL]),
    "vector": (DIAGONAL + pt.outer(V, V), [LOGS, V]),
    "two": (DIAGONAL + U @ U.T + pt.outer(V, V), [U, LOGS, V]),
    "two diagonals": (DIAGONAL + U @ U.T + 0.5 * IDENTITY, [U, LOGS]),
    "constant": (pt.diag(np.linspace(1, 2, N)) + U @ U.T, [U]),
}


def density(matrix, *, inverse=False):
    quadratic = Y @ inv(matrix) @ Y if inverse else Y @ solve(matrix, Y)
    return -0.5 * (quadratic + slogdet(matrix)[1])


def compare(inputs, outputs, mode=ORACLE, rtol=1e-9):
    ours, stock = compile_both(inputs, outputs, mode, ORACLE)
    values = [VALUES[one] for one in inputs]
    for mine, theirs in zip(ours(*values), stock(*values), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=1e-9)
    return ours


def large(function):
    """Return what the function computes that has as many rows and columns as the matrix."""
    return [
        (str(node.op), variable.type.shape)
        for node in function.maker.fgraph.toposort()
        for variable in node.outputs
        if variable.type.ndim == 2
        and all(length is None or length >= N for length in variable.type.shape)
    ]


def names(function):
    return [str(node.op) for node in function.maker.fgraph.toposort()]


@pytest.mark.parametrize(
    ("form", "inverse"),
    [*((form, False) for form in FORMS), ("diagonal", True), ("identity", True), ("two", True)],
)
def test_density_and_gradient(form, inverse):
    matrix, parameters = FORMS[form]
    cost = density(matrix, inverse=inverse)
    inputs = [*parameters, Y]
    ours = compare(inputs, [cost, *pytensor.grad(cost, inputs)])
    # The gradient of a product with a constant identity, row by row, is not looked through.
    assert form == "column" or not large(ours)
    factors = [
        node.outputs[0].type.shape
        for node in ours.maker.fgraph.toposort()
        if "Cholesky{" in str(node.op) or "LU" in str(node.op)
    ]
    # A factor of one element is a square root.
    assert set(factors) == {"vector": set(), "two": {(K + 1, K + 1)}}.get(form, {(K, K)})
    # Where the diagonal is no number, it is factorized twice.
    most = 1 if form in ("identity", "turned") else 2
    assert len(factors) <= most or form == "constant"


# The second takes the compilers three times as long.
@pytest.mark.parametrize("form", ["identity", "two"] if IS_DEEP else ["identity"])
@pytest.mark.parametrize("backend", OTHER_BACKENDS)
def test_other_backends(form, backend):
    matrix, parameters = FORMS[form]
    cost = density(matrix)
    ours = compare([*parameters, Y], [cost, *pytensor.grad(cost, parameters)], get_mode(backend))
    assert not large(ours)


LEFT = {
    "sign not known": pt.diag(LOGS) + U @ U.T,
    "negative": U @ U.T - pt.exp(NOISE) * IDENTITY,
    "at least 0": pt.diag(LOGS**2) + U @ U.T,
    "subtracted": DIAGONAL - U @ U.T,
    "weights of any sign": (U * WEIGHTS) @ U.T + DIAGONAL,
    "scale of any sign": NOISE * (U @ U.T) + DIAGONAL,
    "not symmetric": DIAGONAL + U @ X,
    "repeated": pt.exp(LOGS) + U @ U.T,
    "off the diagonal": pt.diag(pt.exp(LOGS[1:]), k=1)[:N, :N] + U @ U.T,
    "more than half": DIAGONAL + pt.tile(U, (1, 5)) @ pt.tile(U, (1, 5)).T,
}


@pytest.mark.parametrize("form", LEFT)
def test_left_alone(form):
    inputs = [U, X, LOGS, NOISE, WEIGHTS, Y]
    matrix = LEFT[form]
    mode = ORACLE.excluding("linalg_work_on_definite_matrix")
    ours, stock = compile_both(inputs, [solve(matrix, Y), det(matrix), inv(matrix)], mode)
    assert "Cholesky{" not in " ".join(names(ours)) or names(ours) == names(stock)
    assert any("LU" in name or "Solve{" in name for name in names(ours))


def test_sizes_that_are_not_known():
    u, logs = pt.dmatrix("u"), pt.dvector("logs")
    matrix = pt.diag(pt.exp(logs)) + u @ u.T
    mode = ORACLE.excluding("linalg_work_on_definite_matrix")
    ours, _ = compile_both([u, logs, Y], [solve(matrix, Y)], mode)
    assert not any("CholeskySolve" in name for name in names(ours))


def test_no_columns():
    empty = pt.dmatrix("empty", shape=(N, 0))
    matrix = DIAGONAL + empty @ empty.T
    VALUES[empty] = np.zeros((N, 0))
    compare([empty, LOGS, Y], [solve(matrix, Y), slogdet(matrix)[1]])


def test_each_rule_alone():
    matrix, parameters = FORMS["diagonal"]
    rules = {
        "woodbury_solve": solve(matrix, Y),
        "woodbury_inverse": inv(matrix),
        "determinant_lemma": slogdet(matrix)[1],
        "product_with_structured_sum": inv(matrix) @ U,
        "diagonal_of_structured_sum": pt.diagonal(inv(matrix)),
        "sum_of_structured_product": (inv(matrix) * IDENTITY).sum(),
    }
    for rule, output in rules.items():
        others = [f"linalg_{other}" for other in rules if other != rule]
        ours = compare([*parameters, Y], [output], ORACLE.excluding(*others))
        assert "Cholesky{lower=True, overwrite_a=False}" in names(ours), rule
        left = compare([*parameters, Y], [output], ORACLE.excluding(f"linalg_{rule}", *others))
        assert not large(ours) or rule == "woodbury_inverse"
        assert large(left), rule


def test_determinants():
    matrix, parameters = FORMS["identity"]
    sign, logarithm = slogdet(matrix)
    outputs = [det(matrix), sign, logarithm, pt.log(det(matrix)), pt.sign(det(matrix.T))]
    assert not large(compare(parameters, outputs))


def test_log_determinant_that_overflows():
    logs = pt.dvector("logs", shape=(400,))
    thin = pt.dmatrix("thin", shape=(400, 2))
    logarithm = slogdet(pt.diag(pt.exp(logs)) + thin @ thin.T)[1]
    ours, _ = compile_both([logs, thin], [logarithm], ORACLE)
    [value] = ours(np.full(400, 5.0), np.zeros((400, 2)))
    assert value == pytest.approx(2000)


def test_matrices_of_right_hand_sides():
    matrix, parameters = FORMS["two"]
    right = pt.dmatrix("right", shape=(N, 2))
    VALUES[right] = RNG.normal(size=(N, 2))
    inputs = [*parameters, right]
    for output in (solve(matrix, right), inv(matrix) @ right, right.T @ inv(matrix)):
        assert not large(compare(inputs, [output]))
    compare([*parameters, Y], [inv(matrix), solve(matrix, pt.outer(Y, Y))])


def test_not_a_number():
    matrix, parameters = FORMS["diagonal"]
    cost = density(matrix)
    ours, _ = compile_both([*parameters, Y], [cost, *pytensor.grad(cost, parameters)], ORACLE)
    value, by_thin, _ = ours(VALUES[U] * np.nan, VALUES[LOGS], VALUES[Y])
    assert np.isnan(value)
    assert np.isnan(by_thin).all()


def test_rank_zero_scale():
    """Where the scale of the low rank is 0, a diagonal is left."""
    matrix, parameters = FORMS["scaled"]
    inputs = [*parameters, Y]
    cost = density(matrix)
    ours, stock = compile_both(inputs, [cost, *pytensor.grad(cost, inputs)], ORACLE)
    values = [np.array(0.0) if one is SCALE else VALUES[one] for one in inputs]
    for mine, theirs in zip(ours(*values), stock(*values), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10)


def test_float32():
    u, y = pt.fmatrix("u", shape=(N, K)), pt.fvector("y", shape=(N,))
    matrix = pt.eye(N, dtype="float32") * np.float32(0.5) + u @ u.T
    ours, stock = compile_both([u, y], [solve(matrix, y), slogdet(matrix)[1]], ORACLE)
    values = [VALUES[U].astype("float32"), VALUES[Y].astype("float32")]
    for mine, theirs in zip(ours(*values), stock(*values), strict=True):
        assert mine.dtype == theirs.dtype == "float32"
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-5)
    assert not large(ours)


def test_ridge_regression_with_more_columns_than_rows():
    matrix, _ = FORMS["turned"]
    y = pt.dvector("y", shape=(K,))
    VALUES[y] = RNG.normal(size=K)
    weights = solve(matrix, X.T @ y)
    evidence = (weights**2).sum() + slogdet(matrix)[1]
    ours = compare([X, NOISE, y], [weights, evidence, pytensor.grad(evidence, NOISE)])
    assert not large(ours)


def exact_density(diagonal, thin, y):
    """Return the quadratic form, log-determinant and gradients in extended precision."""
    u = extended.extended(thin)
    matrix = np.diag(extended.extended(diagonal)) + u @ u.T
    factors = extended.factored(matrix)
    alpha = extended.solved(factors, extended.extended(y[:, None]))[:, 0]
    inverse = extended.solved(factors, np.eye(len(y)))
    logarithm = extended.log_determinant(matrix)
    by_thin = np.outer(alpha, alpha @ u) - inverse @ u
    return [extended.extended(y) @ alpha, logarithm, alpha**2 - np.diagonal(inverse), by_thin]


def by_hand(diagonal, thin, y):
    """Return the same by Woodbury's identity as it is written in textbooks."""
    scaled = thin / diagonal[:, None]
    inner = np.eye(thin.shape[1]) + thin.T @ scaled
    half = np.linalg.solve(inner, scaled.T).T
    alpha = y / diagonal - half @ (thin.T @ (y / diagonal))
    logarithm = np.log(diagonal).sum() + np.linalg.slogdet(inner)[1]
    of_inverse = 1 / diagonal - (half * scaled).sum(axis=1)
    return [y @ alpha, logarithm, alpha**2 - of_inverse, np.outer(alpha, alpha @ thin) - half]


@pytest.fixture(scope="module")
def density_20():
    """Quadratic form, log-determinant and gradients of a density, by ours and by stock."""
    n = 20
    thin, diagonal, y = (
        pt.dmatrix("thin", shape=(n, 2)),
        pt.dvector("diagonal", shape=(n,)),
        pt.dvector("y", shape=(n,)),
    )
    matrix = pt.diag(abs(diagonal) + 1e-200) + thin @ thin.T
    quadratic, logarithm = y @ solve(matrix, y), slogdet(matrix)[1]
    outputs = [quadratic, logarithm]
    outputs += [-one for one in pytensor.grad(quadratic + logarithm, [diagonal])]
    outputs += [-0.5 * one for one in pytensor.grad(quadratic + logarithm, [thin])]
    return compile_both([diagonal, thin, y], outputs, ORACLE)


def ill_conditioned(kind, condition, rng, n=20):
    """Return a diagonal, a thin matrix and a vector."""
    u = rng.normal(size=(n, 2))
    d = np.full(n, np.linalg.norm(u, 2) ** 2 / condition)
    if kind == "uneven":
        d = np.geomspace(1 / condition, 1, n)
    elif kind == "one small":
        # The matrix is well conditioned, what is inside of it is not.
        d = np.where(np.arange(n) == 3, 1 / condition, 1.0)
    elif kind == "two small":
        d = np.where(np.arange(n) % 7 == 3, 1 / condition, 1.0)
    elif kind == "one large":
        d = np.ones(n)
        u[3] *= np.sqrt(condition)
    return d, u, u @ rng.normal(size=2) if kind == "in the span" else rng.normal(size=n)


@pytest.mark.parametrize("condition", [1e2, 1e5, 1e8, 1e12])
@pytest.mark.parametrize(
    "kind", ["noise", "in the span", "uneven", "one small", "two small", "one large"]
)
def test_rounding(kind, condition, density_20):
    """At most 10 times the error by hand and of stock, whichever is less."""
    ours, stock = density_20
    errors = []
    for seed in range(2):
        given = ill_conditioned(kind, condition, np.random.default_rng(seed))
        exact = exact_density(*given)
        found = [ours(*given), stock(*given), by_hand(*given)]
        errors.append(
            [[extended.error(a, b) for a, b in zip(one, exact, strict=True)] for one in found]
        )
    mine, theirs, hand = np.max(errors, axis=0)
    assert (mine <= 10 * np.maximum(np.minimum(theirs, hand), 4e-15)).all(), (mine, theirs, hand)


@st.composite
def matrices(draw):
    """Draw sums of diagonals and thin products, which may be known or not."""
    diagonals = [DIAGONAL, pt.exp(NOISE) * IDENTITY, 0.5 * IDENTITY, pt.diag(LOGS**2)]
    thin = [U @ U.T, X.T @ X, pt.outer(V, V), SCALE**2 * (U @ U.T), (U * WEIGHTS**2) @ U.T]
    parts = draw(st.lists(st.sampled_from(diagonals), min_size=1, max_size=2))
    parts += draw(st.lists(st.sampled_from(thin), min_size=1, max_size=2))
    result = sum(draw(st.permutations(parts)))
    return result.T if draw(st.booleans()) else result


@examples(0.5)
@given(matrices(), st.sampled_from(["solve", "inv", "trace", "entries"]))
def test_random_forms(matrix, kind):
    outputs = {
        "solve": density(matrix),
        "inv": density(matrix, inverse=True),
        "trace": pt.diagonal(inv(matrix)).sum(),
        "entries": (inv(matrix) ** 2).sum() + det(matrix / 2),
    }
    cost = outputs[kind]
    inputs = [U, X, V, LOGS, SCALE, NOISE, WEIGHTS, Y]
    gradients = pytensor.grad(cost, inputs, disconnected_inputs="ignore")
    compare(inputs, [cost, *gradients], rtol=1e-7)


def test_sums_of_thin_products_that_are_not_square():
    first, second = pt.dmatrix("p", shape=(40, 3)), pt.dmatrix("q", shape=(3, None))
    third, fourth = pt.dmatrix("r", shape=(40, 2)), pt.dmatrix("s", shape=(2, None))
    total = first @ second + third @ fourth
    outputs = [pt.diagonal(total), pt.trace(total)]
    ours, stock = compile_both([first, second, third, fourth], outputs, ORACLE)
    values = [RNG.normal(size=shape) for shape in [(40, 3), (3, 30), (40, 2), (2, 30)]]
    for mine, theirs in zip(ours(*values), stock(*values), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)


ROWS = pt.lscalar("rows")
FREE = pt.dvector("free")
FILLED = pt.diag(pt.full((ROWS,), pt.exp(NOISE)))


@pytest.mark.parametrize(
    "matrix",
    [
        FILLED + U @ U.T,
        pt.eye(ROWS) * pt.exp(LOGS)[None, :] + U @ U.T,
        DIAGONAL + FILLED + U @ U.T,
        DIAGONAL + FILLED,
        DIAGONAL + pt.eye(ROWS) * FREE[None, :],
        pt.diag(pt.exp(FREE)) + DIAGONAL,
        pt.diag(FREE**2) + pt.eye(N),
    ],
)
def test_diagonals_that_do_not_fit(matrix):
    outputs = [slogdet(matrix)[1], solve(matrix, Y), inv(matrix), pt.trace(matrix)]
    given = {ROWS: N, FREE: np.linspace(1, 2, N)}
    for output in outputs:
        inputs = [one for one in (*VALUES, *given) if one in set(ancestors([output]))]
        ours, stock = compile_both(inputs, [output], ORACLE)

        def call(function, changed, inputs=inputs):
            return function(*({**VALUES, **given, **changed}[one] for one in inputs))

        np.testing.assert_allclose(call(ours, {}), call(stock, {}), rtol=1e-8, atol=1e-10)
        for n in N - 1, N + 1:
            with pytest.raises((AssertionError, ValueError, IndexError)):
                call(ours, {ROWS: n, FREE: np.ones(n)})
