"""Random expressions of matrices, with gradients: the same as stock's, and no more cubic work."""

import numpy as np
import pytensor
import pytensor.tensor as pt
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pytensor.tensor.linalg import cho_solve, cholesky, det, inv, slogdet, solve, solve_triangular

from support.linalg_rules import PYTHON, check, positive_definite

N = 5
RNG = np.random.default_rng(1)
VALUES = [
    positive_definite(N),
    RNG.normal(size=(N, N)) + 3 * np.eye(N),
    RNG.normal(size=N),
    RNG.normal(size=N),
]
P, B = pt.dmatrices("P", "B")
U, V = pt.dvectors("u", "v")
L = cholesky(P)

vectors = st.recursive(
    st.sampled_from([U, V]),
    lambda inner: st.one_of(
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda a, b: a + 0.5 * b, inner, inner),
        inner.map(lambda a: solve_triangular(L, a, lower=True)),
        inner.map(lambda a: solve_triangular(L.T, a, lower=False)),
        inner.map(lambda a: cho_solve((L, True), a)),
        inner.map(lambda a: solve(B, a)),
        inner.map(lambda a: inv(P) @ a),
        inner.map(lambda a: B.T @ a),
    ),
    max_leaves=3,
)
matrices = st.recursive(
    st.one_of(st.sampled_from([P, B, L]), st.builds(pt.outer, vectors, vectors)),
    lambda inner: st.one_of(
        st.builds(lambda a, b: a @ b, inner, inner),
        st.builds(lambda a, b: a + b.T, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        inner.map(lambda a: solve(B, a)),
        inner.map(lambda a: solve(P, a, assume_a="pos")),
        inner.map(lambda a: solve_triangular(L, a, lower=True)),
        inner.map(lambda a: inv(B.T) @ a),
        inner.map(lambda a: a @ a.T),
    ),
    max_leaves=3,
)
scalars = st.one_of(
    st.builds(lambda a, b: a @ b, vectors, vectors),
    matrices.map(pt.trace),
    matrices.map(lambda a: pt.sin(a).sum()),
    matrices.map(lambda a: pt.cos(pt.diagonal(a)).sum()),
    st.builds(lambda a, m, b: a @ m @ b, vectors, matrices, vectors),
    st.sampled_from(
        [
            slogdet(P)[1],
            slogdet(B)[1],
            det(B.T),
            pt.log(pt.diagonal(L)).sum(),
            inv(P).sum(),
            (inv(B) * P).sum(),
        ]
    ),
)


# Shrinking compiles hundreds of graphs.
@settings(max_examples=15, phases=[Phase.generate])
@given(st.lists(scalars, min_size=1, max_size=3))
def test_value_and_gradients(terms):
    cost = sum(pt.tanh(term / 50) for term in terms)
    gradients = pytensor.grad(cost, [P, B, U, V], disconnected_inputs="ignore")
    # In Python, kernels may not have more than 32 operands, and stock's reciprocals are of single
    # precision. What SciPy 1.18 solves in place must not be written, so PyTensor's elementwise
    # operations in place fail in Python.
    mode = PYTHON.excluding("fusion", "inplace")
    check([P, B, U, V], [cost, *gradients], VALUES, mode=mode, rtol=1e-5)
