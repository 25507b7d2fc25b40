"""Which matrices are found to be symmetric, and which are not."""

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.scalar.basic import Composite, exp, float64
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.linalg import cholesky, lu_factor

from pytensor_fuse._linalg.ops.cholesky_inverse import cholesky_inverse
from pytensor_fuse._linalg.ops.lu_inverse import lu_inverse
from pytensor_fuse._linalg.structure.symmetry import Symmetry

A = pt.dmatrix("A")
B = pt.dmatrix("B")
V = pt.dvector("v")
W = pt.dvector("w")
C = pt.dscalar("c")
COUNTS = pt.vector("counts", dtype="uint8")
SMALL, MORE = (pt.matrix(name, dtype="int8") for name in ("small", "more"))
ONE = float64("one")
PAIR = Elemwise(Composite([ONE], [ONE + 1, exp(ONE)]))

SYMMETRIC = {
    "sum with the transpose": A + A.T,
    "product with the transpose": A @ A.T,
    "product from the other side": A.T @ A,
    "number in a product": (2 * A) @ A.T,
    "product of scaled matrices": (A * V) @ (A * V).T,
    "outer product": V[:, None] * V,
    "distances": V[:, None] + V - (2 * A) @ A.T,
    "kernel": pt.exp(-(V[:, None] + V - 2 * A @ A.T) / C**2),
    "identity": pt.eye(A.shape[0]) * C,
    "diagonal": pt.diag(V),
    "diagonals beside it": pt.diag(V, 2) / C + pt.diag(W) + pt.diag(V, -2) / C,
    "constant": pt.constant(np.array([[1.0, 2], [2, 3]])),
    "inverse": cholesky_inverse(cholesky(A)),
    "inverse of a symmetric matrix": lu_inverse(*lu_factor(A + A.T), symmetric=True),
    "square of a difference": ((V[:, None] - V) / C) ** 2,
    "even powers of differences": (-(A - A.T) * C) ** 4 + abs(2 * (V[:, None] - V)),
    "cosine of a difference": pt.cos(V[:, None] - V) * pt.cosh(V[:, None] - V),
    "square of a constant": pt.sqr(pt.constant(np.array([[0.0, 2], [-2, 0]])) / C),
    "difference turned twice": abs((V[:, None] + W) * (W[:, None] + V)),
    "sum of sums": (A + B) + ((A.T + V[:, None] * V) + B.T),
}

NOT_SYMMETRIC = {
    "matrix": A,
    "difference": V[:, None] - V,
    "product": A @ B,
    "product with itself": A @ A,
    "scaled on one side": (A * V) @ A.T,
    "two numbers": (2 * A) @ B.T,
    "outer product of two": V[:, None] * W,
    "quotient": V[:, None] / V,
    "one diagonal beside it": pt.diag(V, 2),
    "another one on the other side": pt.diag(V, 2) + pt.diag(2 * V, -2),
    "identity beside it": pt.eye(A.shape[0], A.shape[1], 1),
    "identity that is not square": pt.eye(A.shape[0], A.shape[1]),
    "constant": pt.constant(np.array([[1.0, 2], [3, 4]])),
    "triangle": cholesky(A),
    "inverse": lu_inverse(*lu_factor(A)),
    "column": V[:, None],
    "row": V[None, :],
    "odd power of a difference": (V[:, None] - V) ** 3,
    "power that is not known": (V[:, None] - V) ** C,
    "powers that are not the same": abs(V[:, None] - V) ** (2 * W),
    "square of another difference": (V[:, None] - W) ** 2,
    "square of a constant": pt.sqr(pt.constant(np.array([[0.0, 2], [-3, 0]]))),
    "square of a scaled difference": ((V[:, None] - V) * W) ** 2,
    "square of unsigned integers": pt.sqr(
        (COUNTS[:, None] - COUNTS) * pt.constant(np.array([[0.5]]))
    ),
    "difference with the transpose": A - A.T,
    "vector": V,
    "sums of integers that overflow": (SMALL + MORE) + ((V[:, None] * V + SMALL.T) + MORE.T),
    "two functions": PAIR(A)[0] + PAIR(A.T)[1],
}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetric(name):
    assert Symmetry().of(SYMMETRIC[name])


@pytest.mark.parametrize("name", NOT_SYMMETRIC)
def test_not_symmetric(name):
    assert not Symmetry().of(NOT_SYMMETRIC[name])


def test_what_is_shared_is_looked_at_once():
    matrix = A + A.T
    for _ in range(60):
        matrix = matrix * matrix + matrix
    assert Symmetry().of(matrix)
