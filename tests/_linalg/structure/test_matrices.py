"""What variables are as matrices."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_fuse._linalg.structure.matrices import (
    is_zero,
    multiple_of,
    same,
    transpose_of,
    vector_of,
    without_expansion,
)
from pytensor_fuse._linalg.structure.outer_products import outer_product
from pytensor_fuse._linalg.structure.symmetry import are_mirrored
from pytensor_fuse._linalg.structure.triangles.masks import is_triangle

N = 4
A, B = pt.dmatrices("A", "B")
U, V = pt.dvectors("u", "v")
C = pt.dscalar("c")
RNG = np.random.default_rng(2)
VALUES = {
    A: RNG.normal(size=(N, N)),
    B: RNG.normal(size=(N, N)),
    U: RNG.normal(size=N),
    V: RNG.normal(size=N),
    C: np.array(1.7),
}


def value(variable):
    return variable.eval(VALUES, on_unused_input="ignore", mode="FAST_COMPILE")


MATRICES = [
    A,
    A.T,
    A + A.T,
    A + B.T,
    A * 2.0,
    (A * 2.0).T,
    2.0 * A.T,
    A.T + B,
    U[:, None] * V[None, :],
    V[:, None] * U[None, :],
    (U[:, None] * V[None, :]).T,
    U[:, None] * U[None, :],
    A - B,
    B.T - A.T,
    A.T - B.T,
    pt.exp(A),
    pt.exp(A.T),
    pt.exp(B.T),
    A * U,
    A.T * U[:, None],
    A * U[:, None],
    A / U,
    A.T / U[:, None],
    C * A,
]


@pytest.mark.parametrize("at", range(len(MATRICES)))
def test_transposes_by_their_values(at):
    first = MATRICES[at]
    for second in MATRICES:
        if are_mirrored(first, second):
            np.testing.assert_array_equal(value(first), value(second).T)
            assert are_mirrored(second, first)
        if same(first, second):
            np.testing.assert_array_equal(value(first), value(second))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (A, A.T),
        (A + B.T, A.T + B),
        (U[:, None] * V[None, :], V[:, None] * U[None, :]),
        (pt.exp(A), pt.exp(A.T)),
        (A - B, A.T - B.T),
        (A * U, A.T * U[:, None]),
        (A + A.T, A + A.T),
    ],
)
def test_transposes_are_found(first, second):
    assert are_mirrored(first, second)
    assert not are_mirrored(first, second + 1)


def test_equal_terms_are_the_same():
    assert same(pt.exp(A) + 1, pt.exp(A) + 1)
    assert not same(pt.exp(A) + 1, pt.exp(A) + 2)
    assert not same(A, B)
    first, second = pt.linalg.eigh(A)[:2], pt.linalg.eigh(A)[:2]
    assert same(first[0], second[0])
    assert not same(first[0], second[1])


def test_transposes_and_expansions():
    assert transpose_of(A.T) is A
    assert transpose_of(A.dimshuffle("x", 1, 0)) is None
    assert transpose_of(A.dimshuffle("x", 1, 0), expanded=True) is A
    assert transpose_of(A) is None
    assert transpose_of(A.dimshuffle(1, 0, "x")) is None
    assert transpose_of(U[:, None]) is None
    assert without_expansion(A[None]) is A
    assert without_expansion(A.T) is not A
    assert vector_of(U[:, None]) is U
    assert vector_of(U[None, :]) is U
    assert vector_of(A) is None


@pytest.mark.parametrize(
    "matrix",
    [
        pt.outer(U, V),
        -pt.outer(U, V),
        pt.outer(U, V).T * 3,
        U[:, None] * C * V,
        pt.outer(U, V) * pt.outer(V, V),
        pt.outer(U, V) / U,
        pt.outer(U, V) / V[:, None],
        pt.outer(U, V) / C,
    ],
)
def test_outer_products(matrix):
    found = outer_product(matrix)
    assert found.column.type.shape[-1] == found.row.type.shape[-2] == 1
    np.testing.assert_allclose(value(found.column) * value(found.row), value(matrix))


@pytest.mark.parametrize(
    "matrix",
    [A, A * U, pt.outer(U, V) + 1, pt.exp(pt.outer(U, V)), U[:, None] * pt.ones((1, 1)), A @ B],
)
def test_what_is_no_outer_product(matrix):
    assert outer_product(matrix) is None


@pytest.mark.parametrize(
    ("vector", "number"),
    [
        (U, 1),
        (-U, -1),
        (3 * U + U, 4),
        (C * U / 2, 0.85),
        (U[None, :] * 2, 2),
        ((U * 2)[:, None] * 3, 6),
        (U - U, None),
        (U * U, None),
        (1 / U, None),
        (U + V, None),
        (pt.exp(U), None),
    ],
)
def test_multiples(vector, number):
    found = multiple_of(vector, lambda one: 1.0 if one is U else None)
    if number is None:
        assert found is None
    else:
        found = value(found) if hasattr(found, "eval") else found
        np.testing.assert_allclose(found, number)


def test_triangles():
    n = pt.iscalar()
    rows = pt.arange(n)
    assert is_triangle(pt.constant(np.tri(N)), lower=True)
    assert is_triangle(pt.constant(np.tri(N).T), lower=False)
    for strange in (np.tri(N, k=-1), np.ones((N, N)), 2 * np.tri(N), np.tri(N)[0]):
        assert not is_triangle(pt.constant(strange), lower=True)
        assert not is_triangle(pt.constant(strange.T), lower=False)
    assert is_triangle((rows[:, None] >= rows[None, :]).astype("float64"), lower=True)
    assert is_triangle(rows[:, None] <= rows[None, :], lower=False)
    for strange in (
        rows[:, None] > rows[None, :],
        rows[None, :] >= rows[:, None],
        pt.arange(1, n)[:, None] >= rows[None, :],
        (2 * rows)[:, None] >= rows[None, :],
        A,
    ):
        assert not is_triangle(strange, lower=True)


def test_zeros():
    assert is_zero(pt.zeros((3, N)))
    assert is_zero(pt.zeros((A.shape[0], 2)))
    assert is_zero(pt.constant(np.zeros(2)))
    assert not is_zero(A)
    assert not is_zero(pt.ones((A.shape[0], 2)))
