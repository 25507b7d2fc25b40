"""Random expressions over matrices of known structure, for Hypothesis.

A `World` has matrices of one size, with all structures that this package recognizes, and values for
their parts. The values of all expressions are of order 1, so that they can be compared.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from hypothesis import strategies as st
from pytensor.tensor.linalg import (
    block_diag,
    cho_solve,
    cholesky,
    det,
    inv,
    kron,
    slogdet,
    solve,
    solve_triangular,
)

from support.linalg.rules import positive_definite


class World(NamedTuple):
    """Matrices of one size.

    Attributes
    ----------
    values
        The inputs of all expressions, with a value of each.
    vectors
        Vectors as long as a matrix.
    definite, general, factors
        Positive definite matrices, invertible ones, and lower triangular ones.
    thin
        Matrices with few columns.
    """

    values: dict[Any, Any]
    vectors: list[Any]
    definite: list[Any]
    general: list[Any]
    factors: list[Any]
    thin: list[Any]


def world(left: int, right: int, rank: int, *, is_static: bool) -> World:
    """Return matrices of ``left * right`` rows.

    Parameters
    ----------
    left, right
        The sizes of blocks and of the factors of Kronecker products.
    rank
        The number of columns of thin matrices.
    is_static
        Whether the sizes are known when a graph is compiled.
    """
    n = left * right
    rng = np.random.default_rng(n)
    values: dict[Any, Any] = {}

    def given(name: str, value: Any) -> Any:
        shape = value.shape if is_static else (None,) * value.ndim
        variable = pt.tensor(name, shape=shape, dtype="float64")
        values[variable] = value
        return variable

    p = given("P", positive_definite(n))
    b = given("B", rng.normal(size=(n, n)) / np.sqrt(n) + 2 * np.eye(n))
    u, v, logs = (given(name, rng.normal(size=n)) for name in ("u", "v", "logs"))
    small = given("small", rng.normal(size=(left, left)) + 2 * np.eye(left))
    large = given("large", rng.normal(size=(right, right)) / np.sqrt(right) + 2 * np.eye(right))
    thin = given("thin", rng.normal(size=(n, rank)))
    points = given("points", rng.normal(size=(n, 2)))
    weights = given("weights", rng.normal(size=rank))
    number = given("number", np.array(0.3))

    factor = cholesky(p)
    identity = pt.eye(n) if is_static else pt.eye(b.shape[0])
    squares = (points**2).sum(axis=1)
    distances = squares[:, None] + squares[None, :] - 2 * points @ points.T
    kernel = pt.exp(-0.5 * distances / pt.exp(number)) + 0.2 * identity
    diagonal = pt.diag(pt.exp(logs))
    product = kron(small @ small.T, large.T @ large)
    definite = [
        p,
        kernel,
        b @ b.T + pt.exp(number) * identity,
        factor @ factor.T,
        u[:, None] * kernel * u[None, :] + 0.5 * identity,
        diagonal + thin @ thin.T,
        identity * pt.exp(number) + (thin * pt.exp(weights)) @ thin.T,
        pt.outer(v, v) + 0.5 * identity,
        product + pt.exp(number) * identity,
        product,
        block_diag(*[large @ large.T + 0.1 * pt.eye(large.shape[0])] * left),
        diagonal,
    ]
    general = [b, kron(small, large), block_diag(*[large] * left), b.T, -p, kernel - 5 * identity]
    factors = [factor, cholesky(kernel), pt.tril(b)]
    return World(values, [u, v, logs, pt.diagonal(b)], definite, general, factors, [thin])


def scalars_of(world: World) -> st.SearchStrategy[Any]:
    """Return scalars, computed from vectors and matrices."""
    definite = st.sampled_from(world.definite)
    invertible = st.sampled_from(world.definite + world.general)
    invertible |= invertible.map(lambda a: a.T)
    factors = st.sampled_from(world.factors)
    numbers = st.sampled_from([-0.5, 2.0])

    def more_vectors(inner: Any) -> Any:
        return st.one_of(
            st.builds(lambda a, b: a * b, inner, inner),
            st.builds(lambda a, b: a - 0.5 * b, inner, inner),
            st.builds(lambda c, a: c * a, numbers, inner),
            st.builds(lambda f, a: solve_triangular(f, a, lower=True), factors, inner),
            st.builds(lambda f, a: solve_triangular(f.T, a, lower=False), factors, inner),
            st.builds(lambda f, a: cho_solve((f, True), a), factors, inner),
            st.builds(solve, invertible, inner),
            st.builds(lambda m, a: solve(m, a, assume_a="pos"), definite, inner),
            st.builds(lambda m, a: inv(m) @ a, invertible, inner),
            st.builds(lambda m, a: a @ inv(m), invertible, inner),
            st.builds(lambda m, a: m @ a, invertible, inner),
        )

    vectors = st.recursive(st.sampled_from(world.vectors), more_vectors, max_leaves=3)

    def more_matrices(inner: Any) -> Any:
        return st.one_of(
            st.builds(lambda a, b: a @ b, inner, inner),
            st.builds(lambda a, b: a + b.T, inner, inner),
            st.builds(lambda a, b: a * b, inner, inner),
            st.builds(lambda a, b: a - 2 * b, inner, inner),
            st.builds(solve, invertible, inner),
            st.builds(lambda m, a: solve(m, a, assume_a="pos"), definite, inner),
            st.builds(lambda f, a: solve_triangular(f, a, lower=True), factors, inner),
            st.builds(lambda m, a: inv(m) @ a, invertible, inner),
            st.builds(lambda m, a: a @ inv(m), invertible, inner),
            inner.map(lambda a: a @ a.T),
            inner.map(lambda a: a.T),
        )

    leaves = st.one_of(
        invertible,
        invertible.map(inv),
        factors,
        st.builds(pt.outer, vectors, vectors),
        st.builds(lambda a, b: a @ b.T, *[st.sampled_from(world.thin)] * 2),
        vectors.map(pt.diag),
    )
    matrices = st.recursive(leaves, more_matrices, max_leaves=3)
    thin = st.sampled_from(world.thin)
    batches = st.builds(lambda a, b: pt.stack([a, b]), definite, definite)
    return st.one_of(
        st.builds(lambda a, b: a @ b, vectors, vectors),
        st.builds(lambda a, m: a @ solve(m, a), vectors, invertible),
        st.builds(lambda a, m: a @ inv(m) @ a, vectors, invertible),
        st.builds(lambda f, a: (solve_triangular(f, a, lower=True) ** 2).sum(), factors, vectors),
        matrices.map(pt.trace),
        matrices.map(lambda a: pt.sin(a).sum()),
        matrices.map(lambda a: pt.cos(pt.diagonal(a)).sum()),
        st.builds(lambda a, m, b: a @ m @ b, vectors, matrices, vectors),
        st.builds(lambda a, b: (a * b).sum(), matrices, matrices),
        st.builds(lambda m, t: (t * solve(m, t)).sum(), invertible, thin),
        st.builds(lambda m, t: pt.sin(inv(m) @ t).sum(), invertible, thin),
        invertible.map(lambda m: slogdet(m)[1]),
        invertible.map(lambda m: slogdet(m)[0] * pt.log(pt.abs(det(m)))),
        invertible.map(lambda m: pt.diagonal(inv(m)).sum()),
        factors.map(lambda f: pt.log(pt.abs(pt.diagonal(f))).sum()),
        st.builds(lambda m, a: (solve(m, a) ** 2).sum(), batches, matrices),
        batches.map(lambda m: slogdet(m)[1].sum()),
    )


def densities_of(world: World) -> st.SearchStrategy[Any]:
    """Return log-densities of normal distributions, in their usual formulations."""
    definite = st.sampled_from(world.definite)
    vectors = st.sampled_from(world.vectors)

    def by_factor(m: Any, a: Any) -> Any:
        factor = cholesky(m)
        white = solve_triangular(factor, a, lower=True)
        return -0.5 * (white**2).sum() - pt.log(pt.diagonal(factor)).sum()

    return st.one_of(
        st.builds(lambda m, a: -0.5 * (a @ inv(m) @ a + slogdet(m)[1]), definite, vectors),
        st.builds(lambda m, a: -0.5 * (a @ solve(m, a) + slogdet(m)[1]), definite, vectors),
        st.builds(
            lambda m, a: -0.5 * (a @ solve(m, a, assume_a="pos") + slogdet(m)[1]), definite, vectors
        ),
        st.builds(by_factor, definite, vectors),
    )
