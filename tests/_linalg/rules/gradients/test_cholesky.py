"""The gradient of a Cholesky factorization in closed form."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.replace import clone_replace
from pytensor.tensor.linalg import cho_solve, cholesky, solve_triangular

from support.linalg.rules import PYTHON, check, compile_both, positive_definite

N = 6
A = pt.dmatrix("A")
Y, Z = pt.dvectors("y", "z")
C = pt.dscalar("c")
RNG = np.random.default_rng(7)
VALUES = [positive_definite(N), RNG.normal(size=N), RNG.normal(size=N), 0.7]
L = cholesky(A)


def log_det(factor):
    return pt.log(pt.diagonal(factor)).sum()


def whitened(vector):
    return solve_triangular(L, vector, lower=True)


CLOSED = {
    "log determinant": log_det(L),
    "multiple of it": C * log_det(L),
    "quadratic form": -0.5 * (whitened(Y) ** 2).sum(),
    "product of vectors": C * whitened(Y) @ whitened(Y),
    "two quadratic forms": whitened(Y) @ whitened(Y) + 3 * C * (whitened(Z) ** 2).sum(),
    "density": -0.5 * (whitened(Y) ** 2).sum() - log_det(L),
    "solved twice": -0.5 * Y @ cho_solve((L, True), Y) - log_det(L),
    "of two vectors": Z @ cho_solve((L, True), Y),
    "function of it": pt.exp(-0.5 * (whitened(Y) ** 2).sum()) / (1 + log_det(L) ** 2),
    "product with itself": (pt.sin(L @ L.T) * A).sum() + log_det(L),
}

OPEN = {
    "entries": (L * A).sum(),
    "entries and density": -0.5 * (whitened(Y) ** 2).sum() - log_det(L) + L[0, 0],
    "another function of the diagonal": (pt.diagonal(L) ** 2).sum(),
    "two vectors": whitened(Y) @ whitened(Z),
    "weighted": (whitened(Y) ** 2 * Z).sum(),
    "product": (L @ Y).sum(),
    "one side": (pt.sin(L @ A) * A).sum(),
}


@pytest.mark.parametrize("name", CLOSED)
def test_closed_form(name):
    cost = CLOSED[name]
    # In Python, stock's reciprocals are of single precision.
    rtol = 1e-6 if name in ("log determinant", "product with itself") else 1e-9
    ours, _ = check([A, Y, Z, C], [cost, *pytensor.grad(cost, [A])], VALUES, rtol=rtol)
    assert "SolveTriangular" not in ours
    assert sum(n for op, n in ours.items() if op.startswith(("Dot", "Gemm"))) <= (
        1 if name == "product with itself" else 0
    )


@pytest.mark.parametrize("name", OPEN)
def test_what_has_no_closed_form_stays(name):
    cost = OPEN[name]
    ours, stock = check([A, Y, Z, C], [cost, *pytensor.grad(cost, [A])], VALUES)
    assert ours["SolveTriangular"] == stock["SolveTriangular"] > 0


@pytest.mark.parametrize("rows", [N, None])
@pytest.mark.parametrize("length", [N, None])
@pytest.mark.parametrize("name", ["density", "two quadratic forms", "multiple of it"])
def test_known_shapes(name, rows, length):
    a = pt.dmatrix("a", shape=(rows, rows))
    y, z = pt.dvector("y", shape=(length,)), pt.dvector("z", shape=(length,))
    cost = clone_replace(CLOSED[name], {A: a, Y: y, Z: z})
    ours, _ = check([a, y, z, C], [cost, *pytensor.grad(cost, [a])], VALUES)
    assert "SolveTriangular" not in ours


@pytest.mark.parametrize("name", ["density", "solved twice"])
def test_against_differences(name):
    known = {Y: pt.constant(VALUES[1]), Z: pt.constant(VALUES[2]), C: pt.constant(VALUES[3])}

    def cost(square):
        symmetric = square @ square.T + pt.eye(N)
        return clone_replace(CLOSED[name], {A: symmetric, **known})

    square = RNG.normal(size=(N, N))
    pytensor.gradient.verify_grad(cost, [square], rng=np.random.default_rng(0), mode=PYTHON)


def test_gradients_by_all_inputs():
    cost = CLOSED["density"] + CLOSED["of two vectors"]
    ours, _ = check([A, Y, Z, C], pytensor.grad(cost, [A, Y, Z]), VALUES)
    assert "SolveTriangular" not in ours


def test_solution_that_is_used_otherwise():
    """What is replaced is not symmetric, so nothing but its symmetric part may be used."""
    cost = CLOSED["density"]
    gradient = pytensor.grad(cost, A)
    pending, found = [gradient], None
    while found is None:
        node = pending.pop(0).owner
        if node is not None and "lower=False, b_ndim=2" in str(node.op):
            found = node.outputs[0]
        elif node is not None:
            pending.extend(node.inputs)
    ours, stock = check([A, Y, Z, C], [gradient, found], VALUES)
    assert ours == stock


def test_upper_factor():
    u = cholesky(A, lower=False)
    cost = log_det(u) + (solve_triangular(u.T, Y, lower=True) ** 2).sum()
    # In Python, stock's reciprocals are of single precision.
    ours, _ = check([A, Y, Z, C], [cost, *pytensor.grad(cost, [A])], VALUES, rtol=1e-6)
    assert "SolveTriangular" not in ours


def test_matrix_that_is_not_positive_definite():
    ours, stock = compile_both([A, Y, Z, C], pytensor.grad(CLOSED["density"], [A]))
    values = [np.diag([1.0, -1, 1, 1, 1, 1]), *VALUES[1:]]
    assert np.isnan(np.tril(stock(*values)[0])[0, 0])
    np.testing.assert_array_equal(np.isnan(ours(*values)[0]), np.isnan(stock(*values)[0]))


@pytest.mark.parametrize("n", [1, 2])
def test_small_sizes(n):
    cost = CLOSED["density"]
    values = [positive_definite(n), np.ones(n), np.ones(n), 1.0]
    check([A, Y, Z, C], [cost, *pytensor.grad(cost, [A])], values)


def test_no_rows():
    ours, stock = compile_both([A, Y, Z, C], pytensor.grad(CLOSED["density"], [A]))
    values = [np.zeros((0, 0)), np.ones(0), np.ones(0), 1.0]
    assert ours(*values)[0].shape == stock(*values)[0].shape == (0, 0)


def test_single_precision():
    a, y = pt.fmatrix("a"), pt.fvector("y")
    factor = cholesky(a)
    white = solve_triangular(factor, y, lower=True)
    cost = -0.5 * (white**2).sum() - log_det(factor)
    values = [value.astype("float32") for value in VALUES[:2]]
    ours, _ = check([a, y], [cost, *pytensor.grad(cost, [a])], values, rtol=2e-4)
    assert "SolveTriangular" not in ours
