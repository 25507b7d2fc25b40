"""For each of PyTensor's own rules of linear algebra, a graph to which PyTensor applies it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.assumptions import assume
from pytensor.tensor.linalg import (
    block_diag,
    cho_solve,
    cholesky,
    det,
    eig,
    eigh,
    eigvalsh,
    expm,
    inv,
    kron,
    lu,
    lu_factor,
    pinv,
    qr,
    qz,
    schur,
    slogdet,
    solve,
    solve_triangular,
    svd,
)
from pytensor.tensor.linalg.constructors import BlockDiagonal
from pytensor.tensor.linalg.solvers.linear_control import solve_sylvester

from support.linalg.rules import positive_definite

if TYPE_CHECKING:
    from collections.abc import Callable

# The sizes of two blocks, or of two factors; a whole matrix has as many rows as both together.
FIRST, SECOND = 50, 70
LEFT, RIGHT = 10, 12
SIZE = FIRST + SECOND
THIN = 3
BATCH = 2


class Given(NamedTuple):
    """The parts of the graphs.

    Attributes
    ----------
    a1, a2, b1, b2
        Blocks, two of each size.
    left, right
        Factors of a Kronecker product of the same size as the other matrices.
    a, b
        Matrices.
    low
        A lower triangular matrix.
    p
        A positive definite matrix.
    q
        An orthogonal matrix.
    y, d, e
        Vectors as long as the matrices have rows, the last one positive.
    d1, d2
        Vectors as long as the factors have rows.
    thin
        A matrix with few columns.
    many
        A batch of matrices.
    wide, rows
        Right-hand sides: many rows, each a vector; a batch of these.
    index
        A permutation of the rows.
    number
        A number.
    """

    a1: Any
    a2: Any
    b1: Any
    b2: Any
    left: Any
    right: Any
    a: Any
    b: Any
    low: Any
    p: Any
    q: Any
    y: Any
    d: Any
    e: Any
    d1: Any
    d2: Any
    thin: Any
    many: Any
    wide: Any
    rows: Any
    index: Any
    number: Any


def values() -> Given:
    """Return the values."""
    rng = np.random.default_rng(3)

    def square(n: int) -> Any:
        return rng.normal(size=(n, n)) / np.sqrt(n) + 2 * np.eye(n)

    return Given(
        square(FIRST),
        square(SECOND),
        square(FIRST),
        square(SECOND),
        square(LEFT),
        square(RIGHT),
        square(SIZE),
        square(SIZE),
        np.tril(square(SIZE)),
        positive_definite(SIZE),
        np.linalg.qr(square(SIZE))[0],
        rng.normal(size=SIZE),
        rng.normal(size=SIZE),
        rng.uniform(1, 2, size=SIZE),
        rng.uniform(1, 2, size=LEFT),
        rng.uniform(1, 2, size=RIGHT),
        rng.normal(size=(SIZE, THIN)),
        np.stack([square(SIZE) for _ in range(BATCH)]),
        rng.normal(size=(THIN, SIZE)),
        rng.normal(size=(BATCH, THIN, SIZE)),
        rng.permutation(SIZE),
        np.array(0.7),
    )


def given(*, known: bool) -> Given:
    """Return inputs, whose sizes are known or not."""

    def variable(name: str, value: Any) -> Any:
        shape = value.shape if known else (None,) * value.ndim
        return pt.tensor(name, shape=shape, dtype=value.dtype)

    return Given(*map(variable, Given._fields, values()))


def _rows(g: Given) -> Any:
    return g.y.type.shape[0] or g.y.shape[0]


def identity(g: Given) -> Any:
    """Return the identity."""
    return pt.eye(_rows(g))


def _diagonal(g: Given) -> Any:
    return pt.diag(g.e)


def _blocks(g: Given) -> Any:
    return block_diag(g.a1, g.a2)


def _others(g: Given) -> Any:
    return block_diag(g.b1, g.b2)


def _product(g: Given) -> Any:
    return kron(g.left, g.right)


def _lower(g: Given) -> Any:
    return assume(g.low, lower_triangular=True)


def _orthogonal(g: Given) -> Any:
    return assume(g.q, orthogonal=True)


def _symmetric(g: Given) -> Any:
    return assume(g.p, symmetric=True)


def _definite(g: Given) -> Any:
    return assume(g.p, positive_definite=True)


def _selection(g: Given) -> Any:
    return identity(g)[:, g.index[:THIN]]


def _permutation(g: Given) -> Any:
    return assume(identity(g)[:, g.index], permutation=True)


def tridiagonal(g: Given) -> Any:
    """Return a tridiagonal matrix."""
    return pt.diag(g.e + 4) + pt.diag(g.d[1:], 1) + pt.diag(g.y[1:], -1)


def _quadratic(g: Given) -> Any:
    return g.y @ cho_solve((cholesky(g.p), True), g.y)


def _rows_solved(g: Given) -> Any:
    solve_rows: Any = solve_triangular
    return solve_rows(cholesky(g.p), g.wide, lower=True, b_ndim=1)


def _solved_steps(g: Given) -> Any:
    """Return the solutions in a loop with a matrix that is the same in each step."""
    return pytensor.scan(
        lambda x, a: [solve(a, x)],
        outputs_info=[g.y],
        non_sequences=[g.a],
        n_steps=3,
        return_updates=False,
    )


# The names of PyTensor's rules, with examples of each that have one or more outputs.
PATTERNS: dict[str, Callable[[Given], list[Any]]] = {
    # decomposition
    "cholesky_ldotlt": lambda g: [cholesky(_lower(g) @ _lower(g).T)],
    "cholesky_of_diag": lambda g: [cholesky(_diagonal(g))],
    "svd_uv_merge": lambda g: [(svd(g.a)[0], svd(g.a, compute_uv=False))],
    "svd_of_structured": lambda g: [
        svd(_diagonal(g), compute_uv=False),
        svd(_symmetric(g), compute_uv=False),
        svd(_orthogonal(g) @ g.a, compute_uv=False),
        svd(_product(g), compute_uv=False),
        svd(_blocks(g), compute_uv=False),
    ],
    "eig_to_eigh": lambda g: [eig(_symmetric(g))[0]],
    "eigh_of_diag": lambda g: [eigh(_diagonal(g))],
    "eigvalsh_of_diag": lambda g: [eigvalsh(_diagonal(g), None)],
    "lu_of_diag": lambda g: [lu(_diagonal(g))],
    "lu_factor_of_diag": lambda g: [lu_factor(_diagonal(g))],
    "qr_of_diag": lambda g: [qr(_diagonal(g))],
    "schur_of_diag": lambda g: [schur(_diagonal(g))],
    "qz_of_diag": lambda g: [qz(_diagonal(g), pt.diag(g.d))],
    # inverse
    "transpose_of_inv": lambda g: [inv(g.a).T],
    "inv_to_solve": lambda g: [inv(g.a) @ g.b, g.y @ inv(g.b)],
    "inv_of_inv": lambda g: [inv(inv(g.a)) @ g.y, inv(inv(_blocks(g)).T), inv(inv(_product(g)))],
    "inv_of_orthogonal_to_transpose": lambda g: [inv(_orthogonal(g))],
    "inv_of_diag_to_diag_reciprocal": lambda g: [inv(_diagonal(g)) @ g.a],
    "lift_linalg_of_expanded_matrices": lambda g: [
        inv(_blocks(g)),
        inv(_product(g)),
        pinv(_others(g)),
        cholesky(block_diag(g.b1 @ g.b1.T, g.b2 @ g.b2.T)),
        cholesky(kron(g.left @ g.left.T, g.right @ g.right.T)),
    ],
    # products
    "fuse_blockdiagonal": lambda g: [BlockDiagonal(2)(BlockDiagonal(2)(g.a1, g.a2), g.b1)],
    "diag_of_blockdiag": lambda g: [pt.diagonal(_blocks(g))],
    "det_of_blockdiag": lambda g: [det(_blocks(g)), slogdet(_others(g))],
    "diag_of_kronecker": lambda g: [pt.diagonal(_product(g))],
    "det_of_kronecker": lambda g: [slogdet(_product(g))[1]],
    "kron_of_diagonal_to_diagonal": lambda g: [kron(pt.diag(g.d1), pt.diag(g.d2))],
    "expm_of_diag": lambda g: [expm(_diagonal(g))],
    "orthogonal_dot_transpose_to_eye": lambda g: [_orthogonal(g) @ _orthogonal(g).T + g.a],
    "selection_dot_to_indexing": lambda g: [
        g.a @ _selection(g),
        _selection(g).T @ g.a,
        _selection(g) @ g.wide,
        g.thin @ _selection(g).T,
        _permutation(g) @ inv(_blocks(g)),
        _permutation(g).T @ _product(g),
    ],
    "det_of_permutation": lambda g: [det(_permutation(g))],
    # solvers
    "batched_vector_b_solve_to_matrix_b_solve": lambda g: [_rows_solved(g)],
    "psd_solve_to_chol_solve": lambda g: [solve(g.p, g.b, assume_a="pos")],
    "paired_triangular_solves_to_cho_solve": lambda g: [solve(g.p, g.y, assume_a="pos")],
    "cho_solve_quadratic_form_to_whitened": lambda g: [_quadratic(g)],
    "generic_solve_to_structured_form": lambda g: [
        solve(tridiagonal(g), g.y),
        solve(_lower(g), g.y),
        solve(_lower(g).T, g.b),
        solve(_definite(g), g.a),
        solve(assume(g.many[0] + g.many[0].T, symmetric=True), g.y),
    ],
    "scalar_solve_to_division": lambda g: [solve(g.number[None, None], g.y[None, :])],
    "solve_of_inv_to_matmul": lambda g: [
        solve(inv(g.a), g.b),
        solve(inv(g.b), g.y),
        solve(inv(_blocks(g)).T, g.y),
        solve(inv(_product(g)), g.a),
        solve(inv(tridiagonal(g)), g.a),
    ],
    "diagonal_solve_to_division": lambda g: [solve(_diagonal(g), g.a)],
    "block_diag_solve_to_block_diag_solves": lambda g: [
        solve(_blocks(g), _others(g)),
        solve(_blocks(g).T, _others(g).T),
        solve(_blocks(g), g.y),
        solve(_others(g), g.a),
        inv(_blocks(g)) @ _others(g),
        _others(g) @ inv(_blocks(g)),
        inv(_blocks(g)) @ inv(_others(g)),
    ],
    "orthogonal_solve_to_transpose_matmul": lambda g: [solve(_orthogonal(g), g.a)],
    "solve_sylvester_of_diag": lambda g: [solve_sylvester(_diagonal(g), pt.diag(g.e), g.a)],
    "reuse_decomposition_multiple_solves": lambda g: [(solve(g.a, g.y), solve(g.a.T, g.thin))],
    "scan_split_non_sequence_decomposition_and_solve": lambda g: [_solved_steps(g)],
    # summary
    "local_log_prod_to_sum_log": lambda g: [pt.log(pt.prod(g.e**2))],
    "det_of_matrix_factorized_elsewhere": lambda g: [
        (*slogdet(g.p), cholesky(g.p)),
        (slogdet(g.a)[1], lu_factor(g.a)[0]),
        (*lu(g.b), det(g.b)),
        (pt.abs(det(g.many[0])), *qr(g.many[0])),
        (pt.abs(det(g.many[1])), *svd(g.many[1])),
    ],
    "det_of_factorized_matrix": lambda g: [det(cholesky(g.p)), pt.abs(det(qr(g.a)[0]))],
    "det_of_triangular": lambda g: [det(_lower(g)), slogdet(_lower(g).T)[1]],
    "det_of_inv": lambda g: [
        det(inv(g.a)),
        slogdet(inv(g.b)),
        slogdet(inv(_blocks(g)))[1],
        det(inv(_product(g)).T),
    ],
    "slogdet_specialization": lambda g: [slogdet(g.a)],
    # utils, reassociate_matmul and math
    "useless_symmetric_transpose": lambda g: [(_symmetric(g).T @ g.y, _symmetric(g) @ g.y)],
    "reassociate_matmul_chain": lambda g: [g.a @ g.b @ g.thin],
    "local_block_diag_dot_to_dot_block_diag": lambda g: [_blocks(g) @ g.a, g.b @ _others(g)],
    "dot_diag_to_elemwise": lambda g: [
        _diagonal(g) @ g.a,
        g.b @ pt.diag(g.d),
        _diagonal(g) @ pt.diag(g.y),
        _diagonal(g) @ inv(_blocks(g)),
        _product(g) @ _diagonal(g),
        (g.thin @ g.thin.T + _diagonal(g)) @ pt.diag(g.d),
    ],
}
