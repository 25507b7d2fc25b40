"""Triangular structure from expressions: compared with the numbers that stock computes."""

import time

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.mode import Mode
from pytensor.tensor.linalg import block_diag, cholesky, inv, kron, solve_triangular

from pytensor_fuse._linalg.structure.terms import terms_of
from pytensor_fuse._linalg.structure.triangles.triangular import (
    Triangle,
    is_square,
    triangle_of,
    triangular_factors,
)

AS_IT_IS = Mode("py", optimizer=None)
N = 4
A, B = pt.dmatrices("A", "B")
K = pt.dmatrix("K", shape=(N, N))
STACK = pt.dtensor3("STACK")
V = pt.dvector("v")
RNG = np.random.default_rng(1)
VALUES = {
    A: RNG.normal(size=(N, N)),
    B: RNG.normal(size=(N, N)),
    K: 9 * np.eye(N) + np.ones((N, N)),
    STACK: RNG.normal(size=(2, N, N)),
    V: RNG.normal(size=N * (N + 1) // 2),
}
LOWER, UPPER, BOTH, NONE = Triangle.LOWER, Triangle.UPPER, Triangle.BOTH, Triangle.NONE
ROWS, COLUMNS = np.tril_indices(N)
PACKED = pt.set_subtensor(pt.zeros((N, N))[ROWS, COLUMNS], V)
SYMBOLIC = pt.tril_indices(N)
PLACES = pt.arange(N)


def by_hand(row, column):
    """Return a matrix that is written element by element, as a factorization by hand does it."""
    matrix = pt.zeros((N, N))
    for i in range(N):
        for j in range(i + 1):
            matrix = pt.set_subtensor(matrix[row(i, j), column(i, j)], A[i, j] ** 2)
    return matrix


def by_rows():
    matrix = pt.zeros((N, N))
    for i in range(N):
        matrix = matrix[i, : i + 1].set(A[i, : i + 1])
    return matrix


KNOWN = {
    "tril": (pt.tril(A), LOWER),
    "tril below": (pt.tril(A, -1), LOWER),
    "tril above": (pt.tril(A, 1), NONE),
    "triu": (pt.triu(A), UPPER),
    "triu above": (pt.triu(A, 2), UPPER),
    "triu below": (pt.triu(A, -1), NONE),
    "tril of a stack": (pt.tril(STACK), LOWER),
    "where": (pt.where(pt.tri(N, dtype="bool"), A, 0.0), LOWER),
    "where not": (pt.where(pt.tri(N, k=-1, dtype="bool"), 0.0, A), UPPER),
    "comparison": (A * (PLACES[:, None] > PLACES[None, :]), LOWER),
    "comparison, turned": (A * (PLACES[None, :] >= PLACES[:, None]), UPPER),
    "comparison with an offset": (A * (PLACES[:, None] + 1 > PLACES[None, :]), LOWER),
    "mask": (A * np.tril(np.ones((N, N))), LOWER),
    "constant": (pt.constant(np.triu(np.ones((N, N)))), UPPER),
    "dense constant": (pt.constant(np.ones((N, N))), NONE),
    "packed": (PACKED, LOWER),
    "packed, upper": (pt.zeros((N, N))[COLUMNS, ROWS].set(V), UPPER),
    "packed, incremented": (pt.zeros((N, N))[ROWS, COLUMNS].inc(V), LOWER),
    "packed with PyTensor's indices": (pt.zeros((N, N))[SYMBOLIC].set(V), LOWER),
    "packed, a stack": (pt.zeros((2, N, N))[..., SYMBOLIC[0], SYMBOLIC[1]].set(V), LOWER),
    "packed, diagonal written": (PACKED[np.arange(N), np.arange(N)].set(pt.exp(V[:N])), LOWER),
    "diagonal written, symbolic": (PACKED[PLACES, PLACES].set(pt.exp(V[:N])), LOWER),
    "last element written": (PACKED[-1, -1].set(2.0), LOWER),
    "corner written": (PACKED[0, -1].set(2.0), NONE),
    "corner cleared": (PACKED[0, -1].set(0.0), LOWER),
    "into what is not triangular": (A[ROWS, COLUMNS].set(V), NONE),
    "element by element": (by_hand(lambda i, _: i, lambda _, j: j), LOWER),
    "element by element, upper": (by_hand(lambda _, j: j, lambda i, _: i), UPPER),
    "row by row": (by_rows(), LOWER),
    "block below": (PACKED[2:, :2].set(A[2:, :2]), LOWER),
    "block on the diagonal": (PACKED[2:, 2:].set(A[2:, 2:]), NONE),
    "whole": (PACKED[:].inc(pt.tril(A)), LOWER),
    "of a stack": (pt.zeros((2, N, N))[0].set(pt.tril(A)), LOWER),
    "one of a stack": (pt.tril(STACK)[1], LOWER),
    "rows turned": (pt.tril(A)[::-1], NONE),
    "Cholesky": (cholesky(K), LOWER),
    "upper Cholesky": (cholesky(K, lower=False), UPPER),
    "transpose": (PACKED.T, UPPER),
    "transposed twice": (PACKED.T.T, LOWER),
    "axis in front": (pt.tril(A)[None], LOWER),
    "inverse": (inv(PACKED + pt.eye(N) * 9), LOWER),
    "solve with a triangle": (solve_triangular(PACKED + 9 * pt.eye(N), PACKED, lower=True), LOWER),
    "product": (pt.tril(A) @ pt.tril(B), LOWER),
    "product of a stack": (pt.triu(STACK) @ pt.triu(STACK), UPPER),
    "product of both": (pt.tril(A) @ pt.triu(B), NONE),
    "Kronecker product": (kron(PACKED, cholesky(K)), LOWER),
    "Kronecker product, second of unknown size": (kron(PACKED, pt.tril(A)), NONE),
    "blocks": (block_diag(PACKED, pt.tril(A)), LOWER),
    "sum": (PACKED - 2 * pt.tril(A) + pt.eye(N), LOWER),
    "sum with another": (PACKED + A, NONE),
    "sum with a number": (PACKED + 1.0, NONE),
    "quotient": (PACKED / A, LOWER),
    "quotient of zeros": (PACKED / pt.tril(A), NONE),
    "quotient of zeros, other triangles": (pt.tril(A) / (pt.triu(A) + pt.eye(N)), NONE),
    "elementwise": (pt.tanh(-pt.sqr(PACKED)) * A, LOWER),
    "exponential": (pt.exp(PACKED), NONE),
    "scaled rows": (PACKED * A[:, 0][:, None], LOWER),
    "identity": (pt.eye(N), BOTH),
    "subdiagonal": (pt.eye(N, k=-1), LOWER),
    "diagonal above": (pt.diag(V, 1), UPPER),
    "zeros": (pt.zeros((N, N)), BOTH),
    "zeros like it": (pt.zeros_like(A), BOTH),
    "row": (A[:1], NONE),
    "given": (A, NONE),
}


def evaluated(variable):
    f = pytensor.function(list(VALUES), variable, mode=AS_IT_IS, on_unused_input="ignore")
    return f(*VALUES.values())


@pytest.mark.parametrize("name", KNOWN)
def test_known(name):
    matrix, expected = KNOWN[name]
    assert triangle_of(None, matrix) == expected
    numbers = evaluated(matrix)
    if expected & LOWER:
        assert not np.triu(numbers, 1).any()
    if expected & UPPER:
        assert not np.tril(numbers, -1).any()


# Indices as they may be written; what does not fit is not drawn.
ENDS = st.none() | st.integers(-N, N)
STEPS = st.none() | st.integers(1, 2)
ALONG = st.one_of(
    st.integers(-N, N - 1),
    st.lists(st.integers(-N, N - 1), min_size=2, max_size=2).map(np.array),
    st.builds(slice, ENDS, ENDS, STEPS),
)


@given(down=ALONG, across=ALONG, is_static=st.booleans(), is_set=st.booleans())
def test_writes(down, across, is_static, is_set):
    """What is said to be zero is: all kinds of indices, in matrices of known and unknown size."""
    n = N if is_static else A.shape[0]
    place = pt.zeros((n, n))[down, across]
    matrix = pt.set_subtensor(place, 1.0) if is_set else pt.inc_subtensor(place, 1.0)
    known = triangle_of(None, matrix)
    numbers = np.zeros((N, N))
    numbers[down, across] = 1.0
    is_lower, is_upper = not np.triu(numbers, 1).any(), not np.tril(numbers, -1).any()
    assert is_lower or not known & LOWER
    assert is_upper or not known & UPPER
    if is_static and not isinstance(down, slice) and not isinstance(across, slice):
        assert (bool(known & LOWER), bool(known & UPPER)) == (is_lower, is_upper)


WRAPPED = pt.arange(A.shape[0], dtype="uint8")
# What is counted wraps, is rounded, or is no number at all.
NO_MASKS = {
    "wrapped": WRAPPED[:, None] + np.uint8(254) < WRAPPED[None, :],
    "rounded": PLACES[:, None] + 1e17 >= PLACES[None, :] + 1e17,
    "infinite": PLACES[:, None] + np.inf > PLACES[None, :],
    "not a number": PLACES[:, None] + np.nan >= PLACES[None, :],
    "from infinity": np.inf - A,
    "complex": pt.real(1j - A),
}


@pytest.mark.parametrize("name", NO_MASKS)
def test_what_is_no_mask(name):
    mask = NO_MASKS[name]
    assert triangle_of(None, mask) == NONE
    assert triangle_of(None, pt.where(mask > 0, A, 0.0)) == NONE


MASKS = st.tuples(
    st.sampled_from(["tril", "triu", "greater", "less"]),
    st.integers(-3, 3),
    st.integers(0, 4),
    st.integers(0, 4),
)


@given(MASKS)
def test_masks(mask):
    kind, k, n, m = mask
    rows, columns = pt.arange(n)[:, None], pt.arange(m)[None, :]
    ones = np.ones((n, m))
    made, numbers = {
        "tril": lambda: (pt.tril(pt.ones((n, m)) * 1.0, k), np.tril(ones, k)),
        "triu": lambda: (pt.triu(pt.ones((n, m)) * 1.0, k), np.triu(ones, k)),
        "greater": lambda: (1.0 * (rows + k > columns), np.tril(ones, k - 1)),
        "less": lambda: (1.0 * (rows + k < columns), np.triu(ones, k + 1)),
    }[kind]()
    known = triangle_of(None, made)
    assert not (known & LOWER and np.triu(numbers, 1).any())
    assert not (known & UPPER and np.tril(numbers, -1).any())


def test_factors():
    upper = cholesky(K, lower=False)
    fgraph = None
    for matrix, count in (
        (PACKED @ PACKED.T, 2),
        (PACKED.T @ PACKED, 2),
        (upper @ PACKED, 2),
        ((PACKED @ upper @ PACKED).T, 3),
        (PACKED, 1),
        (pt.tril(A), 1),
        # As far as is known it is not square.
        (pt.tril(A) @ pt.tril(A).T, 0),
        (PACKED @ K, 0),
        (K, 0),
    ):
        found = triangular_factors(fgraph, matrix)
        assert len(found) == count
        if count > 1:
            made = found[0]
            for one in found[1:]:
                made = made @ one
            np.testing.assert_allclose(evaluated(made), evaluated(matrix), rtol=1e-12)


def test_square():
    assert all(map(is_square, (PACKED, cholesky(A), pt.eye(A.shape[0]), pt.diag(V), PACKED.T)))
    n = A.shape[0]
    assert is_square(pt.zeros((n, n)) + A)
    assert is_square(pt.zeros((n, n))[0, 0].set(1.0))
    assert not any(map(is_square, (A, pt.tril(A), A @ B, pt.zeros((n, A.shape[1])))))


def test_terms_that_are_there_many_times():
    """A matrix that is summed with itself, again and again, is looked at once for each sum."""
    summed = A
    for _ in range(7):
        summed = pt.add(*(summed * V[i] for i in range(8)))
    begin = time.process_time()
    assert not is_square(summed)
    assert len(terms_of(summed @ summed.T)) == len(terms_of(summed)) == 1
    assert time.process_time() - begin < 2
