"""Gradients by the factors of Kronecker products are made without the gradient by the product."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.linalg import inv, kron, slogdet, solve

import pytensor_fuse
from pytensor_fuse._linalg.structure.kronecker import TracedOut
from pytensor_fuse._linalg.structure.summands import structured_sum
from support.linalg.rules import OTHER_BACKENDS, PYTHON, compile_both, only_linalg
from support.switching import switched

LEFT, RIGHT, COLUMNS = 8, 7, 3
N = LEFT * RIGHT
EXACT = PYTHON.excluding("inplace", "fusion")

A = pt.dmatrix("a", shape=(LEFT, LEFT))
B = pt.dmatrix("b", shape=(RIGHT, RIGHT))
Y = pt.dvector("y", shape=(N,))
TABLE = pt.dmatrix("table", shape=(N, COLUMNS))
NOISE = pt.dscalar("noise")
INPUTS = [A, B, Y, TABLE, NOISE]
RNG = np.random.default_rng(5)
VALUES = [
    RNG.normal(size=(LEFT, LEFT)),
    RNG.normal(size=(RIGHT, RIGHT)),
    RNG.normal(size=N),
    RNG.normal(size=(N, COLUMNS)),
    np.array(0.3),
]
MATRICES = {
    "plain": kron(A, B),
    "scaled": pt.exp(NOISE) * kron(A, B),
    "shifted": kron(A @ A.T, B.T @ B) + pt.exp(NOISE) * pt.eye(N),
    "shifted and scaled": pt.exp(NOISE) * kron(A @ A.T, B + B.T) / 3 - 0.1 * pt.eye(N),
}
QUADRATIC = {
    "solve": lambda k: Y @ solve(k, Y),
    "inverse": lambda k: Y @ inv(k) @ Y,
    "columns": lambda k: (TABLE * solve(k, TABLE)).sum(),
    "inverse and columns": lambda k: (TABLE * (inv(k) @ TABLE)).sum(),
    "none": lambda k: Y.sum() + TABLE.sum(),
}


def log_density(k, form="solve"):
    return -0.5 * (QUADRATIC[form](k) + slogdet(k)[1])


def compare(value, mode=EXACT, wrt=(A, B)):
    outputs = [value, *pytensor.grad(value, [*wrt], disconnected_inputs="ignore")]
    ours, stock = compile_both(INPUTS, outputs, mode)
    for mine, theirs in zip(ours(*VALUES), stock(*VALUES), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9 * np.abs(theirs).max())
    return ours


def longest(function):
    """Return the number of elements of the largest array."""
    found = 0
    for node in function.maker.fgraph.apply_nodes:
        for variable in (*node.inputs, *node.outputs):
            shape = getattr(variable.type, "shape", ())
            # Lengths that no type says are the numbers of pivots.
            found = max(found, int(np.prod([1 if n is None else n for n in shape])))
    return found


def is_small(function):
    return longest(function) <= N * COLUMNS


@pytest.mark.parametrize("form", QUADRATIC)
@pytest.mark.parametrize("matrix", MATRICES)
def test_value_and_gradient(matrix, form):
    value = log_density(MATRICES[matrix], form)
    assert is_small(compare(value, wrt=[A, B, NOISE]))


@pytest.mark.parametrize("backend", OTHER_BACKENDS)
def test_other_backends(backend):
    value = log_density(MATRICES["shifted"], "columns")
    outputs = pytensor.grad(value, [A, NOISE])
    with pytensor_fuse.enabled(False):
        stock = pytensor.function(INPUTS, outputs, mode=EXACT, on_unused_input="ignore")
        with switched(**only_linalg()):
            ours = pytensor.function(
                INPUTS, outputs, mode=get_mode(backend), on_unused_input="ignore"
            )
    assert is_small(ours)
    for mine, theirs in zip(ours(*VALUES), stock(*VALUES), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9 * np.abs(theirs).max())


def test_kernels_of_the_factors():
    theta, other = pt.dscalar("theta"), pt.dscalar("other")
    x, z = (pt.constant(RNG.normal(size=n)) for n in (LEFT, RIGHT))
    k, m = (
        pt.exp(-(((v[:, None] - v[None, :]) / t) ** 2)) + 0.1 * pt.eye(n)
        for v, t, n in ((x, theta, LEFT), (z, other, RIGHT))
    )
    inputs = [theta, other, NOISE, Y]
    for matrix in (kron(k, m), pt.exp(NOISE) * kron(k, m) + 0.2 * pt.eye(N)):
        value = log_density(matrix)
        wrt = [theta, other, NOISE] if "noise" in str(matrix) else [theta, other]
        gradient = pytensor.grad(value, wrt, disconnected_inputs="ignore")
        ours, stock = compile_both(inputs, [value, *gradient], EXACT)
        at = [0.7, 1.1, 0.3, VALUES[2]]
        assert is_small(ours)
        mine = ours(*at)
        np.testing.assert_allclose(mine, stock(*at), rtol=1e-8)
        for i, derivative in enumerate(mine[1:]):
            step = 1e-6
            up, down = (
                ours(*[v + s * step if j == i else v for j, v in enumerate(at)])[0] for s in (1, -1)
            )
            np.testing.assert_allclose(derivative, (up - down) / (2 * step), rtol=1e-5, atol=1e-6)


def test_gradient_by_one_factor():
    for wrt in ([A], [B]):
        assert is_small(compare(log_density(MATRICES["plain"]), wrt=wrt))


SUMMANDS = {
    "identity": lambda: NOISE * pt.eye(N),
    "diagonal": lambda: pt.diag(Y),
    "outer product": lambda: Y[:, None] * (2 * Y)[None, :],
    "thin product": lambda: TABLE @ (TABLE * 2 + 1).T,
    "product": lambda: kron(A, B),
    "transpose": lambda: kron(A, B).T,
    "inverse": lambda: inv(kron(A, B)),
    "inverse of a transpose": lambda: inv(kron(A, B).T),
    "inverse of a multiple": lambda: inv(kron(A, B) / NOISE),
    "shifted": lambda: inv(kron(A @ A.T, B @ B.T) + NOISE * pt.eye(N)),
    "sum": lambda: -inv(kron(A, B)) / 3 - NOISE * pt.diag(Y) + kron(A.T, B) * 2,
}


@pytest.mark.parametrize("summand", SUMMANDS)
def test_formulas_against_the_whole_matrix(summand):
    matrix = SUMMANDS[summand]()
    fgraph = FunctionGraph(outputs=[matrix], clone=False)
    known = structured_sum(fgraph, matrix)
    vector, columns = Y[:, None], TABLE
    found = [
        known.partial_trace(TracedOut(B, (LEFT, RIGHT), keeps_left=True)),
        known.partial_trace(TracedOut(A, (LEFT, RIGHT), keeps_left=False)),
        known.diagonal(),
        known.trace(),
        known.times(columns),
        known.times(vector),
        known.turned().times(columns),
        known.times_elements_of(structured_sum(fgraph, kron(A, B))),
    ]
    mode = Mode("py", None)
    whole, *mine = pytensor.function(
        INPUTS, [matrix, *found], mode=mode, on_unused_input="ignore", accept_inplace=True
    )(*VALUES)
    a, b, y, table, _ = VALUES
    parts = whole.reshape(LEFT, RIGHT, LEFT, RIGHT)
    expected = [
        np.einsum("ikjl,kl->ij", parts, b),
        np.einsum("ikjl,ij->kl", parts, a),
        np.diagonal(whole),
        np.trace(whole),
        whole @ table,
        whole @ y[:, None],
        whole.T @ table,
        (whole * np.kron(a, b)).sum(),
    ]
    for one, other in zip(mine, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())


def test_gradients_of_other_functions():
    k = kron(A, B)
    weights = pt.constant(RNG.normal(size=N))
    for value in ((k @ Y * weights).sum(), pt.trace(k), (k * kron(B, A)).sum()):
        compare(value)
    assert is_small(compare((k @ Y * weights).sum()))


def test_left_alone():
    k = kron(A, B)
    # Of what is multiplied elementwise with a matrix of any kind, nothing is known.
    weights = pt.constant(RNG.normal(size=(N, N)))
    ours = compare((k * weights).sum() + log_density(k))
    assert longest(ours) >= N * N
    # Rows and columns of other lengths.
    wide, high = pt.dmatrix("wide", shape=(2, 6)), pt.dmatrix("high", shape=(6, 2))
    square = kron(wide, high) + pt.eye(12)
    y = pt.constant(RNG.normal(size=12))
    value = -0.5 * (y @ solve(square, y) + slogdet(square)[1])
    ours, stock = compile_both([wide, high], [value, *pytensor.grad(value, [wide, high])], EXACT)
    at = [RNG.normal(size=(2, 6)), RNG.normal(size=(6, 2))]
    for mine, theirs in zip(ours(*at), stock(*at), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8)
    # Another way to cut the whole into factors.
    value = (inv(kron(B, A)) * k).sum() + log_density(k)
    compare(value)


def test_nan_and_singular_factors():
    value = log_density(MATRICES["plain"])
    outputs = [value, *pytensor.grad(value, [A, B])]
    ours, _ = compile_both(INPUTS, outputs, EXACT)
    at = list(VALUES)
    for broken in (0, 1):
        bad = [np.array(one) for one in at]
        bad[broken][0, 0] = np.nan
        try:
            results = ours(*bad)
        except (np.linalg.LinAlgError, ValueError):
            continue
        for one in results:
            assert np.isnan(one).any()
