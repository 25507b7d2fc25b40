"""Work on matrices of known structure that are composed of two others, for Hypothesis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytensor
import pytensor.tensor as pt
from hypothesis import strategies as st
from pytensor.assumptions import assume
from pytensor.tensor.linalg import block_diag, cholesky, det, inv, kron, slogdet, solve

from support.linalg.stock import FIRST, SECOND, Given, given, identity, tridiagonal

if TYPE_CHECKING:
    from collections.abc import Callable

    Matrix = Callable[[Given], Any]

MATRICES: dict[str, Matrix] = {
    "any": lambda g: g.a,
    "other": lambda g: g.b,
    "definite": lambda g: assume(g.p, positive_definite=True),
    "definite by its form": lambda g: g.a @ g.a.T + pt.exp(g.number) * identity(g),
    "symmetric": lambda g: assume(g.p, symmetric=True),
    "triangular": lambda g: assume(g.low, lower_triangular=True),
    "factor": lambda g: cholesky(g.p),
    "product of triangles": lambda g: (
        assume(g.low, lower_triangular=True) @ assume(g.low, lower_triangular=True).T
    ),
    "orthogonal": lambda g: assume(g.q, orthogonal=True),
    "permutation": lambda g: assume(identity(g)[:, g.index], permutation=True),
    "identity": identity,
    "diagonal": lambda g: pt.diag(g.e),
    "tridiagonal": tridiagonal,
    "low rank": lambda g: pt.diag(g.e) + g.thin @ g.thin.T,
    "blocks": lambda g: block_diag(g.a1, g.a2),
    "other blocks": lambda g: block_diag(g.b1, g.b2),
    "definite blocks": lambda g: block_diag(
        g.a1 @ g.a1.T + pt.eye(FIRST), g.a2 @ g.a2.T + pt.eye(SECOND)
    ),
    "a diagonal block": lambda g: block_diag(pt.diag(g.e[:FIRST]), g.b2),
    "kronecker": lambda g: kron(g.left, g.right),
    "kronecker of diagonal": lambda g: kron(pt.diag(g.d1), g.right),
}

_CHANGED: dict[str, Callable[[Any], Any]] = {
    "": lambda m: m,
    "inverse of": inv,
    "transpose of": lambda m: m.T,
    "transposed inverse of": lambda m: inv(m).T,
    "twice": lambda m: 2 * m,
    "minus": lambda m: -m,
}

_JOINED: dict[str, Callable[[Any, Any], Any]] = {
    "alone, not": lambda m, _: m,
    "times": lambda m, k: m @ k,
    "solved for": solve,
    "inverted times": lambda m, k: inv(m) @ k,
    "times inverse of": lambda m, k: m @ inv(k),
    "around": lambda m, k: m @ k @ m.T,
}


def _gradients(cost: Any, g: Given) -> list[Any]:
    found: list[Any] = pytensor.grad(
        cost,
        [g.a1, g.b2, g.left, g.a, g.e],
        disconnected_inputs="ignore",
        return_disconnected="none",
    )
    return [one for one in found if one is not None]


_WORK: dict[str, Callable[[Any, Given], list[Any]]] = {
    "itself": lambda m, g: [m],
    "solution": lambda m, g: [solve(m, g.y)],
    "solutions": lambda m, g: [solve(m, g.b)],
    "thin solutions": lambda m, g: [solve(m, g.thin)],
    "inverse": lambda m, g: [inv(m)],
    "determinant": lambda m, g: [det(m)],
    "logarithm of the determinant": lambda m, g: [slogdet(m)[1]],
    "diagonal": lambda m, g: [pt.diagonal(m)],
    "diagonal of the inverse": lambda m, g: [pt.diagonal(inv(m))],
    "trace": lambda m, g: [pt.trace(m)],
    "product with a vector": lambda m, g: [m @ g.y],
    "product": lambda m, g: [m @ g.b],
    "quadratic form": lambda m, g: [g.y @ solve(m, g.y)],
    "density": lambda m, g: [g.y @ inv(m) @ g.y + slogdet(m)[1]],
    "gradient of the determinant": lambda m, g: _gradients(slogdet(m)[1], g),
    "gradient of the quadratic form": lambda m, g: _gradients(g.y @ solve(m, g.y), g),
    "gradient of the density": lambda m, g: _gradients(g.y @ solve(m, g.y) + slogdet(m)[1], g),
}


def nests() -> st.SearchStrategy[tuple[str, ...]]:
    """Return the names of operations on two matrices, and of the matrices."""
    return st.tuples(
        *(st.sampled_from(list(names)) for names in (_WORK, _CHANGED, MATRICES, _JOINED)),
        *(st.sampled_from(list(names)) for names in (_CHANGED, MATRICES)),
    )


def graph_of(nest: tuple[str, ...], *, known: bool) -> tuple[list[Any], list[Any]]:
    """Return the inputs and outputs of the graph that the names describe."""
    work, change, one, join, other_change, other = nest
    g = given(known=known)
    matrix = _CHANGED[change](MATRICES[one](g))
    matrix = _JOINED[join](matrix, _CHANGED[other_change](MATRICES[other](g)))
    return list(g), _WORK[work](matrix, g)
