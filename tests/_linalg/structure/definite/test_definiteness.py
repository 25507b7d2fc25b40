"""Matrices that are definite, or semidefinite, by their form, and such as only look like it."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.graph.traversal import explicit_graph_inputs
from pytensor.tensor.linalg import cholesky, inv

from pytensor_fuse._linalg.structure.definite.definiteness import Definiteness, definiteness
from support.effort import examples
from support.linalg.structures import as_it_is

UNKNOWN, SEMIDEFINITE, USUALLY_DEFINITE, DEFINITE = Definiteness

N = 6
X, Y = pt.dmatrices("X", "Y")
x, v = pt.dvectors("x", "v")
a, b, c = pt.dscalars("a", "b", "c")
EYE = pt.eye(X.shape[0])
DIFFERENCE = x[:, None] - x[None, :]
SQUARES = (X**2).sum(axis=1)
FORM = SQUARES[:, None] + SQUARES[None, :] - 2 * X @ X.T
SQUARED = pt.maximum(FORM, 0)
DISTANCE = pt.sqrt(pt.clip(FORM, 0.0, np.inf) + 1e-12)
SMOOTH = pt.exp(-0.5 * DIFFERENCE**2 / a**2)
RATIO = np.sqrt(5) * DISTANCE / pt.exp(a)
KERNELS = {
    "squared exponential": SMOOTH,
    "of points": pt.exp(-0.5 * SQUARED / a**2),
    "of points, not cut off": pt.exp(-0.5 * FORM / a**2),
    "of any function of rows": pt.exp(x[:, None] + x[None, :] + X @ X.T),
    "exponential": pt.exp(-DISTANCE),
    "exponential in one dimension": pt.exp(-abs(DIFFERENCE) / pt.exp(a)),
    "of a power of the distance": pt.exp(-(SQUARED**0.75)),
    "Matern 3/2": (1 + RATIO) * pt.exp(-RATIO),
    "Matern 5/2": (1 + RATIO + RATIO**2 / 3) * pt.exp(-RATIO),
    "periodic": pt.exp(-2 * pt.sin(np.pi * DIFFERENCE / b) ** 2 / a**2),
    "rational quadratic": (1 + 0.5 * SQUARED / (pt.exp(b) * a**2)) ** (-pt.exp(b)),
    "cosine": pt.cos(a * DIFFERENCE),
    "logarithm": pt.exp(-pt.log1p(SQUARED)),
    "linear": b**2 * (x - c)[:, None] * (x - c)[None, :],
}
FORMS = [
    *((kernel, SEMIDEFINITE) for kernel in KERNELS.values()),
    *((b**2 * kernel + pt.exp(c) * EYE, DEFINITE) for kernel in KERNELS.values()),
    (X @ X.T, SEMIDEFINITE),
    (X.T @ X, SEMIDEFINITE),
    (-X @ (-X.T) + X @ X.T, SEMIDEFINITE),
    (X @ X.T + 0.1 * EYE, DEFINITE),
    (X @ X.T + 1e-12 * EYE, SEMIDEFINITE),
    (X @ X.T + a**2 * EYE, USUALLY_DEFINITE),
    (X @ X.T + abs(a) * EYE, USUALLY_DEFINITE),
    (X @ X.T + (a**2 + 0.5) * EYE, DEFINITE),
    (X @ X.T + pt.softplus(a) * EYE, DEFINITE),
    (X @ X.T + pt.maximum(a, 0) * EYE, SEMIDEFINITE),
    (X @ X.T + pt.maximum(a, 0) ** 2 * EYE, SEMIDEFINITE),
    (X @ X.T + pt.exp(a) / b**2 * EYE, USUALLY_DEFINITE),
    (X @ X.T + pt.diag(pt.exp(x)), DEFINITE),
    (X @ X.T + pt.diag(x**2), USUALLY_DEFINITE),
    (X @ X.T + x[:, None] ** 2 * EYE, USUALLY_DEFINITE),
    (X @ X.T + EYE * pt.exp(x), DEFINITE),
    (X @ (Y @ Y.T + EYE) @ X.T, SEMIDEFINITE),
    (X.T @ (Y @ Y.T + EYE) @ X, SEMIDEFINITE),
    (SMOOTH * (X @ X.T), SEMIDEFINITE),
    (SMOOTH * ((1 + RATIO) * pt.exp(-RATIO)) * (X @ X.T), SEMIDEFINITE),
    (X @ X.T + pt.alloc(pt.exp(a), X.shape[0], X.shape[0]), SEMIDEFINITE),
    ((SMOOTH + EYE) * (X @ X.T + EYE), DEFINITE),
    ((SMOOTH + EYE) ** 2, DEFINITE),
    (pt.outer(pt.exp(x), pt.exp(x)) * (SMOOTH + EYE), DEFINITE),
    (pt.outer(x, x) * (SMOOTH + EYE), USUALLY_DEFINITE),
    (x[:, None] * (SMOOTH + EYE) * x[None, :], USUALLY_DEFINITE),
    ((SMOOTH + EYE).T, DEFINITE),
    (inv(X @ X.T + EYE), DEFINITE),
    (cholesky(X @ X.T + EYE) @ cholesky(X @ X.T + EYE).T, DEFINITE),
    (pt.linalg.kron(SMOOTH + EYE, X @ X.T), SEMIDEFINITE),
    (pt.linalg.block_diag(SMOOTH + EYE, EYE), DEFINITE),
    (pt.exp(a) * pt.constant(np.eye(3) + 0.1) + pt.eye(3), DEFINITE),
]


@pytest.mark.parametrize("at", range(len(FORMS)))
def test_forms(at):
    matrix, known = FORMS[at]
    assert definiteness(matrix) is known


def smallest(matrix, values):
    """Return the smallest eigenvalue, and the largest absolute one."""
    inputs = list(explicit_graph_inputs([matrix]))
    function = pytensor.function(inputs, matrix, mode=as_it_is("py"))
    computed = function(*(values[one.name] for one in inputs))
    np.testing.assert_allclose(computed, computed.T, rtol=1e-9, atol=1e-11)
    eigenvalues = np.linalg.eigvalsh((computed + computed.T) / 2)
    return eigenvalues[0], np.abs(eigenvalues).max()


def numbers(seed, scale):
    rng = np.random.default_rng(seed)
    return {
        "X": scale * rng.normal(size=(N, N)),
        "Y": scale * rng.normal(size=(N, N)),
        "x": scale * rng.normal(size=N),
        **{name: rng.uniform(-1.5, 1.5) for name in "abc"},
    }


@examples(2)
@given(
    st.sampled_from(range(len(FORMS))),
    st.integers(0, 10**6),
    st.sampled_from([0.1, 1, 3]),
)
def test_no_form_is_indefinite(at, seed, scale):
    matrix, known = FORMS[at]
    low, high = smallest(matrix, numbers(seed, scale))
    assert low >= -(1e-12 if known is DEFINITE else 1e-10) * high


LEAVES = [*KERNELS.values(), X @ X.T, EYE, pt.diag(pt.exp(x)), X, SMOOTH - EYE]
STEPS = [
    lambda one, other: one + other,
    lambda one, other: one - other,
    lambda one, other: one * other,
    lambda one, other: other @ one @ other.T,
    lambda one, other: one @ other @ one.T,
    lambda one, _: one * b,
    lambda one, _: b**2 * one,
    lambda one, _: one / pt.exp(b),
    lambda one, _: one * x[:, None] * x[None, :],
    lambda one, _: one * x[:, None],
    lambda one, _: one + b,
    lambda one, _: one.T @ one,
    lambda one, _: pt.exp(-one),
    lambda one, _: pt.sqr(one),
]


@examples(2)
@given(
    st.sampled_from(LEAVES),
    st.lists(st.tuples(st.sampled_from(STEPS), st.sampled_from(LEAVES)), max_size=3),
    st.integers(0, 10**6),
)
def test_what_is_claimed_of_random_expressions(leaf, steps, seed):
    matrix = leaf
    for step, other in steps:
        matrix = step(matrix, other)
    known = definiteness(matrix)
    if known is UNKNOWN:
        return
    low, high = smallest(matrix, numbers(seed, 0.5))
    assert low >= -1e-9 * high


OTHERS = [
    X,
    X + X.T,
    X @ X,
    X @ Y.T,
    X @ X.T - 0.1 * EYE,
    X @ X.T + a * EYE,
    X @ X.T + a**3 * EYE,
    X @ X.T + a * b * EYE,
    X @ X.T + pt.log(a) * EYE,
    X @ X.T + pt.eye(X.shape[0], X.shape[0], k=1),
    X @ X.T + pt.diag(x),
    X @ X.T + x[:, None] * EYE,
    X @ X.T + pt.diag(pt.exp(x), k=1),
    X @ X.T + pt.exp(x),
    X @ X.T + pt.exp(x)[:, None],
    X @ X.T + X,
    X @ (Y + Y.T) @ X.T,
    X @ (Y @ Y.T) @ Y.T,
    X @ (Y @ Y.T) @ X,
    SMOOTH - X @ X.T,
    SMOOTH / a,
    pt.outer(x, v) * SMOOTH,
    x[:, None] * SMOOTH * v[None, :],
    DIFFERENCE,
    pt.sin(DIFFERENCE),
    SQUARED,
    pt.exp(DIFFERENCE**2),
    pt.exp(-DIFFERENCE),
    pt.exp(-(DIFFERENCE**2) / a),
    pt.exp(-(DIFFERENCE**4)),
    pt.exp(-abs(DIFFERENCE**3)),
    pt.exp(-((x[:, None] - v[None, :]) ** 2)),
    pt.exp(-((x[:, None] + x[None, :]) ** 2)),
    pt.exp(-((x[:, None] - 2 * x[None, :]) ** 2)),
    pt.exp(-(SQUARED**2)),
    pt.exp(-pt.clip(FORM, 0, 1)),
    pt.exp(-pt.maximum(FORM, 0.1)),
    pt.exp(-pt.maximum(x[:, None] + x[None, :] - 2 * X @ X.T, 0)),
    pt.exp(-(SQUARES[:, None] + x[None, :] - 2 * X @ X.T)),
    pt.exp(-(SQUARES[:, None] + SQUARES[None, :] + 2 * X @ X.T)),
    pt.exp(-pt.sqrt(SQUARES[:, None] + SQUARES[None, :] - X @ X.T)),
    pt.exp(-pt.sqrt(x[:, None] + x[None, :] - 2 * X @ X.T)),
    (1 + 2 * RATIO) * pt.exp(-RATIO),
    (1 + RATIO + RATIO**2) * pt.exp(-RATIO),
    (1 + RATIO + RATIO**3 / 3) * pt.exp(-RATIO),
    (1 + RATIO) * pt.exp(RATIO),
    (1 - SQUARED) ** (-pt.exp(b)),
    (1 + SQUARED) ** pt.exp(b),
    (1 + SQUARED) ** (-b),
    pt.cos(x[:, None] + x[None, :]),
    pt.cos(DIFFERENCE**2),
    X @ X.T + pt.alloc(a, X.shape[0], X.shape[0]),
    SMOOTH * (1 + RATIO),
    pt.sqrt(X @ X.T),
    abs(X @ X.T),
    pt.maximum(X @ X.T, 0),
    inv(X),
    pt.constant(np.array([[1.0, 2], [2, 1]])),
    pt.constant(np.array([[2.0, 1], [0, 2]])),
    pt.constant(np.zeros((2, 2))),
]


@pytest.mark.parametrize("at", range(len(OTHERS)))
def test_what_only_looks_like_it(at):
    assert definiteness(OTHERS[at]) is UNKNOWN


def test_other_kinds_of_numbers():
    for dtype in ["float32", "complex128", "int64"]:
        matrix = pt.matrix("m", dtype=dtype)
        assert definiteness(matrix @ matrix.T + pt.eye(3, dtype=dtype)) is UNKNOWN
    stack = pt.dtensor3("stack")
    assert definiteness(stack @ stack.mT + pt.eye(3)) is UNKNOWN
    whole = pt.lscalar("whole")
    # The square of a large integer is negative.
    assert definiteness(X @ X.T + whole**2 * EYE) is UNKNOWN


def single_precision():
    single = pt.fmatrix("single")
    squares = (single**2).sum(axis=1)
    distances = pt.maximum(squares[:, None] + squares[None, :] - 2 * single @ single.T, 0)
    return pt.exp(-0.5 * distances) + 1e-2 * pt.eye(single.shape[0], dtype="float64")


ONE = pt.dmatrix("one", shape=(1, 1))
NOT_CLAIMED = {
    "a kernel in single precision": single_precision(),
    "a number that is 0 as an integer": X @ X.T
    + pt.constant(0.5).astype("int64") * pt.eye(X.shape[0]),
    "a number that overflows": X @ X.T + pt.constant(200).astype("int8") * pt.eye(X.shape[0]),
    "blocks that are not square": pt.linalg.block_diag(pt.ones((2, 3)), pt.ones((3, 2)))
    + pt.eye(5),
    "identities that are not square": pt.linalg.kron(pt.eye(2, 3), pt.eye(3, 2)) + pt.eye(6),
    "a column of an identity": X @ X.T + pt.eye(X.shape[0], 1),
    "a column of an identity, scaled": X @ X.T + pt.exp(x)[:, None] * pt.eye(X.shape[0], 1),
    "distances that are rounded": pt.exp(
        -0.5 * pt.sum((X[:, None, :] - X[None, :, :]) ** 2, axis=2, dtype="int64")
    )
    + 1e-2 * EYE,
    "squares that are rounded": pt.exp(
        -pt.sqrt(
            pt.sum(X**2, axis=1, dtype="int64")[:, None]
            + pt.sum(X**2, axis=1, dtype="int64")[None, :]
            - 2 * X @ X.T
        )
    )
    + 1e-2 * EYE,
    "a number as a factor": X @ X.T + cholesky(ONE) @ cholesky(ONE).T,
    "squares of another matrix": pt.exp(
        -pt.sqrt(
            ((X @ Y) ** 2).sum(axis=1)[:, None] + ((X @ Y) ** 2).sum(axis=1)[None, :] - 2 * X @ X.T
        )
    )
    + pt.eye(X.shape[0]),
}


@pytest.mark.parametrize("name", NOT_CLAIMED)
def test_what_a_review_has_found(name):
    assert definiteness(NOT_CLAIMED[name]) < USUALLY_DEFINITE
