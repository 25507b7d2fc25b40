"""Triangles of symmetric matrices, and sums that need only a diagonal."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.basic import AllocDiag, Eye
from pytensor.tensor.linalg import cholesky, slogdet, solve, solve_triangular

from pytensor_fuse._linalg.rules.products.sums import triangle_of_symmetric_matrix
from support.linalg.rules import PYTHON, check, compile_both, positive_definite

N = 7
A, X = pt.dmatrices("A", "X")
Y = pt.dvector("y")
SCALE = pt.dscalar("scale")
NOISE = pt.dscalar("noise")
RNG = np.random.default_rng(8)
VALUES = [RNG.normal(size=(N, 2)), RNG.normal(size=N), 0.8, 0.6]


def covariance():
    squares = (X**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * X @ X.T
    return pt.exp(-0.5 * distances / SCALE**2) + NOISE**2 * pt.eye(X.shape[0])


def by_cholesky(matrix, y=Y):
    factor = cholesky(matrix)
    white = solve_triangular(factor, y, lower=True)
    return -0.5 * white @ white - pt.log(pt.diagonal(factor)).sum()


def by_lu(matrix):
    return -0.5 * (Y @ solve(matrix, Y) + slogdet(matrix)[1])


def is_made(function, kind):
    return bool(of_kind(function, kind))


def of_kind(function, kind):
    return [node for node in function.maker.fgraph.apply_nodes if isinstance(node.op, kind)]


def by_factor_twice(matrix):
    """Like PyMC's density of a normal distribution by its factor."""
    factor = cholesky(matrix)
    return by_cholesky(factor @ factor.T)


@pytest.mark.parametrize("density", [by_cholesky, by_factor_twice, by_lu])
def test_gradient_by_parameters(density):
    cost = density(covariance())
    outputs = [cost, *pytensor.grad(cost, [SCALE, NOISE])]
    check([X, Y, SCALE, NOISE], outputs, VALUES)
    ours, _ = compile_both([X, Y, SCALE, NOISE], outputs)
    assert not is_made(ours, Eye | AllocDiag)


def points(x):
    """A covariance of which the gradient goes to the points, and to the diagonal by itself."""
    squares = (x**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * x @ x.T
    noise = pt.full((x.shape[0],), NOISE**2)
    return pt.exp(-0.5 * distances / SCALE**2) + pt.diag(noise)


@pytest.mark.parametrize("of_known_size", [False, True])
def test_a_triangle_that_is_needed_is_masked_once(of_known_size):
    x, y = X, Y
    if of_known_size:
        x, y = pt.dmatrix("X", shape=(N, 2)), pt.dvector("y", shape=(N,))
    cost = by_cholesky(points(x), y)
    inputs, outputs = [x, y, SCALE, NOISE], [cost, *pytensor.grad(cost, [x, SCALE, NOISE])]
    check(inputs, outputs, VALUES)
    ours, stock = compile_both(inputs, outputs, PYTHON.excluding("inplace"))
    assert not is_made(ours, OpFromGraph)
    # That of the noise remains, which is added.
    assert len(of_kind(ours, AllocDiag)) < len(of_kind(stock, AllocDiag))


@pytest.mark.parametrize("of_known_size", [False, True])
def test_the_triangle_itself(of_known_size):
    a, y = A, Y
    if of_known_size:
        a, y = pt.dmatrix("A", shape=(N, N)), pt.dvector("y", shape=(N,))
    gradient = pytensor.grad(by_cholesky(a, y), a)
    outputs = [gradient, pt.diagonal(gradient), gradient.sum(axis=0)]
    check([a, y], outputs, [positive_definite(N), VALUES[1]])
    ours, _ = compile_both([a, y], outputs)
    assert not is_made(ours, AllocDiag)


@pytest.mark.parametrize("dtypes", [["bool"], ["int8"], ["int8", "float64"]])
@pytest.mark.parametrize("of_known_size", [False, True])
def test_masks_of_other_types(of_known_size, dtypes):
    mask = pt.constant(np.tri(N, dtype="bool")) if of_known_size else pt.ge(*places(A.shape[0]))
    for dtype in dtypes:
        mask = mask.astype(dtype)
    whole = pt.exp(A + A.T)
    diagonal = AllocDiag(axis1=0, axis2=1, offset=0)(pt.diagonal(whole))
    triangle = (whole + whole.T) * mask - diagonal
    graph = FunctionGraph([A], [triangle], clone=False)
    [new] = triangle_of_symmetric_matrix(graph, diagonal.owner).values()
    as_it_is, value = PYTHON.clone(optimizer=None), positive_definite(N)
    old, new = (pytensor.function([A], one, mode=as_it_is)(value) for one in (triangle, new))
    np.testing.assert_allclose(new, old, rtol=1e-14)


def places(n):
    """Return the numbers of rows and columns."""
    return pt.arange(n)[:, None], pt.arange(n)[None, :]


@pytest.mark.parametrize("symmetric", [False, True])
def test_only_of_what_is_symmetric_the_triangle_is_masked_once(symmetric):
    b = pt.exp(A + A.T) if symmetric else pt.exp(A)
    diagonal = AllocDiag(axis1=0, axis2=1, offset=0)(pt.diagonal(b))
    graph = FunctionGraph([A], [pt.tril(b + b.T) - diagonal], clone=False)
    assert bool(triangle_of_symmetric_matrix(graph, diagonal.owner)) is symmetric


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sum_of_a_diagonal_matrix(dtype):
    a = pt.matrix("a", dtype=dtype)
    v = pt.vector("v", dtype=dtype)
    identity = pt.eye(a.shape[0], dtype=dtype)
    terms = [
        pt.exp(a) * identity,
        (a.T - v[:, None]) * identity / v,
        2 * v * identity - pt.diag(v) * a,
        pt.diag(v) * a,
    ]
    values = [positive_definite(N).astype(dtype), np.arange(1, N + 1, dtype=dtype)]
    outputs = [one.sum() for one in terms]
    ours, stock = compile_both([a, v], outputs)
    for mine, theirs in zip(ours(*values), stock(*values), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-4 if dtype == "float32" else 1e-12)
    assert not is_made(ours, Eye | AllocDiag)


def test_sum_of_a_matrix_that_is_not_diagonal():
    a = pt.dmatrix("a")
    n = a.shape[0]
    outputs = [(a + pt.eye(n)).sum(), (a * pt.eye(n, k=1)).sum(), (a * pt.exp(pt.eye(n))).sum()]
    check([a], outputs, [positive_definite(N)])
