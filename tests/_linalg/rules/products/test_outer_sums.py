"""One factor serves many rows of data: sums of outer products, and the gradient by the factor."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.replace import clone_replace
from pytensor.tensor.linalg import cholesky, solve_triangular

from support.linalg.rules import PYTHON, check, compile_both, positive_definite

N, K = 5, 7
A, ROWS, OTHERS = pt.dmatrices("A", "rows", "others")
W, C = pt.dvector("w"), pt.dscalar("c")
L = cholesky(A)
RNG = np.random.default_rng(3)
VALUES = [
    positive_definite(N),
    RNG.normal(size=(K, N)),
    RNG.normal(size=(K, N)),
    RNG.uniform(size=K),
    0.7,
]
INPUTS = [A, ROWS, OTHERS, W, C]


def whitened(rows):
    return solve_triangular(L, rows, lower=True, b_ndim=1)


def log_det():
    # Twice: in Python, stock's reciprocals are of single precision.
    return 2 * pt.log(pt.diagonal(L)).sum()


EACH_ALIKE = {
    "rows": -0.5 * (whitened(ROWS) ** 2).sum() - K * log_det(),
    "columns": -0.5 * (solve_triangular(L, ROWS.T, lower=True) ** 2).sum() - K * log_det(),
    "negative": 2.5 * (whitened(ROWS) ** 2).sum() + log_det(),
}
WEIGHTED = {
    "weights": (W * (whitened(ROWS) ** 2).sum(axis=1)).sum() + log_det(),
    "weight": C * (whitened(ROWS) ** 2).sum() + log_det(),
    "heavy tails": pt.log1p((whitened(ROWS) ** 2).sum(axis=1) / 4).sum() + log_det(),
    "columns with weights": (W * solve_triangular(L, ROWS.T, lower=True) ** 2).sum() + log_det(),
}
OPEN = {
    "weights of elements": (whitened(ROWS) ** 2 * OTHERS).sum() + log_det(),
    "other rows": (whitened(ROWS) * whitened(OTHERS)).sum() + log_det(),
    "another function": pt.exp(whitened(ROWS)).sum() + log_det(),
}


def with_gradient(cost):
    return [cost, *pytensor.grad(cost, [A, ROWS], disconnected_inputs="ignore")]


@pytest.mark.parametrize("name", EACH_ALIKE)
def test_rows_alike(name):
    ours, _ = check(INPUTS, with_gradient(EACH_ALIKE[name]), VALUES)
    products = sum(n for op, n in ours.items() if op.startswith("Dot"))
    assert (ours["Cholesky"], ours["CholeskyInverse"], ours["SolveTriangular"]) == (1, 1, 2)
    assert products == 1


@pytest.mark.parametrize("name", WEIGHTED)
def test_rows_with_weights(name):
    ours, stock = check(INPUTS, with_gradient(WEIGHTED[name]), VALUES)
    assert ours["SolveTriangular"] == 3 < stock["SolveTriangular"]


@pytest.mark.parametrize("name", OPEN)
def test_what_has_no_closed_form_stays(name):
    ours, stock = check(INPUTS, with_gradient(OPEN[name]), VALUES)
    assert ours["SolveTriangular"] == stock["SolveTriangular"] > 0


@pytest.mark.parametrize("k", [2, 30])
def test_known_sizes(k):
    """What is solved for is the shorter side."""
    a, rows, w = pt.dmatrix("a", shape=(N, N)), pt.dmatrix("rows", shape=(k, N)), pt.dvector("w")
    cost = clone_replace(WEIGHTED["weights"], {A: a, ROWS: rows, W: w})
    values = [VALUES[0], RNG.normal(size=(k, N)), RNG.uniform(size=k)]
    ours, _ = compile_both([a, rows, w], [cost, *pytensor.grad(cost, [a])])
    check([a, rows, w], [cost, *pytensor.grad(cost, [a])], values)
    solves = [node for node in ours.maker.fgraph.toposort() if "Solve" in str(node.op)]
    assert sorted(node.outputs[0].type.shape[1] for node in solves) == sorted([k, k, min(k, N)])


def test_weight_of_zero():
    check(INPUTS, with_gradient(WEIGHTED["weight"]), [*VALUES[:-1], 0.0])


@pytest.mark.parametrize("name", ["rows", "weights"])
def test_few_rows(name):
    ours, stock = compile_both(INPUTS, with_gradient({**EACH_ALIKE, **WEIGHTED}[name]))
    for k in 0, 1:
        values = [VALUES[0], VALUES[1][:k], VALUES[2][:k], VALUES[3][:k], 0.7]
        for mine, theirs in zip(ours(*values), stock(*values), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-12)


def test_against_differences():
    known = {ROWS: pt.constant(VALUES[1]), W: pt.constant(VALUES[3])}

    def cost(square):
        symmetric = square @ square.T + pt.eye(N)
        return clone_replace(WEIGHTED["weights"], {A: symmetric, **known})

    square = RNG.normal(size=(N, N))
    pytensor.gradient.verify_grad(cost, [square], rng=np.random.default_rng(0), mode=PYTHON)


def test_matrix_that_is_not_positive_definite():
    indefinite = np.diag([1.0, -1, 1, 1, 1])
    ours, stock = compile_both(INPUTS, with_gradient(EACH_ALIKE["rows"])[:2])
    for mine, theirs in zip(
        ours(indefinite, *VALUES[1:]), stock(indefinite, *VALUES[1:]), strict=True
    ):
        np.testing.assert_array_equal(np.isnan(mine), np.isnan(theirs))


X, Y = pt.dmatrices("x", "y")
M = pt.dmatrix("m", shape=(None, None))
OUTER_SUMS = {
    "rows": (X[:, :, None] * Y[:, None, :]).sum(axis=0),
    "turned": (X[:, None, :] * Y[:, :, None]).sum(axis=0),
    "with numbers": (C * X[:, :, None] * Y[:, None, :] * W[:, None, None]).sum(axis=0),
    "of columns": (X.T[:, :, None] * Y.T[None, :, :].dimshuffle(1, 0, 2)).sum(axis=0).T,
    "masked": (X[:, :, None] * Y[:, None, :] * M[None, :, :]).sum(axis=0),
    "along the last axis": (X.T[:, None, :] * Y.T[None, :, :]).sum(axis=2),
    "masked by a triangle": (pt.tril(X[:, :, None] * Y[:, None, :])).sum(axis=0),
}


def products_and_stacks(function):
    names = [type(node.op).__name__ for node in function.maker.fgraph.apply_nodes]
    stacks = [v for node in function.maker.fgraph.apply_nodes for v in node.outputs]
    return sum("Dot" in name or "Gemm" in name for name in names), max(
        getattr(v.type, "ndim", 0) for v in stacks
    )


@pytest.mark.parametrize("name", OUTER_SUMS)
def test_sums_of_outer_products(name):
    # The rule looks at graphs with solves alone.
    outputs = [OUTER_SUMS[name], pt.linalg.solve(A, A[0])]
    inputs = [X, Y, M, W, C, A]
    m = RNG.normal(size=(K, K) if name == "of columns" else (N, N))
    values = [VALUES[1], VALUES[2], m, *VALUES[3:], VALUES[0]]
    ours, stock = compile_both(inputs, outputs)
    for mine, theirs in zip(ours(*values), stock(*values), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11)
    products, ndim = products_and_stacks(ours)
    assert products == 1
    assert ndim == 2 or name == "of columns"


OTHER_SUMS = {
    "over two axes": (X[:, :, None] * Y[:, None, :]).sum(axis=(0, 1)),
    "over an axis of one": (X[:, :, None] * Y[:, None, :]).sum(axis=1),
    "whole stacks": (pt.exp(X[:, :, None] + Y[:, None, :]) * X[:, :, None]).sum(axis=0),
    "of sums": (X[:, :, None] + Y[:, None, :]).sum(axis=0),
    "in single precision": (X[:, :, None].astype("float32") * Y[:, None, :].astype("float32")).sum(
        axis=0
    ),
}


@pytest.mark.parametrize("name", OTHER_SUMS)
def test_other_sums(name):
    outputs = [OTHER_SUMS[name], pt.linalg.solve(A, A[0])]
    ours, stock = compile_both([X, Y, A], outputs)
    values = [VALUES[1], VALUES[2], VALUES[0]]
    for mine, theirs in zip(ours(*values), stock(*values), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5 if "single" in name else 1e-11)
    assert products_and_stacks(ours) == products_and_stacks(stock)


def test_sum_whose_summands_are_used():
    stack = X[:, :, None] * Y[:, None, :]
    outputs = [stack.sum(axis=0), stack, pt.linalg.solve(A, A[0])]
    ours, _ = compile_both([X, Y, A], outputs)
    assert products_and_stacks(ours)[0] == 0
