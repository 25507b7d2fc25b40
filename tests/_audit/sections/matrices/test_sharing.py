"""What an audit says could be saved: the claims hold in numbers."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.tensor import linalg
from pytensor.tensor.blas import Dot22Scalar, gemm_inplace, gemv_inplace

from pytensor_fuse._audit.audit import audit
from support.linalg.audits import A, B, V, found, names


def shared_kinds(section):
    return {
        (one.kind, tuple(sorted(names(one.work))), one.supposes is not None)
        for one in section.factorizations
    }


def slogdet(a):
    return linalg.summary.SLogDet()(a)[1]


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        (
            lambda: [pt.linalg.cholesky(A), slogdet(A), pt.linalg.solve(A, V)],
            {("Cholesky", ("Cholesky", "SLogDet", "Solve"), True)},
        ),
        (
            lambda: [pt.linalg.solve(A, V, assume_a="pos"), pt.linalg.inv(A.T)],
            {("Cholesky", ("MatrixInverse", "Solve"), True)},
        ),
        (
            lambda: [pt.linalg.solve(A, V), pt.linalg.solve(A.T, B), pt.linalg.det(A)],
            {("LU", ("Det", "Solve", "Solve"), False)},
        ),
        (
            lambda: [pt.linalg.solve(A, V, assume_a="sym"), pt.linalg.det(A)],
            {("LU", ("Det", "Solve"), True)},
        ),
        # An LU factorization does not follow from a Cholesky factorization.
        (
            lambda: [pt.linalg.cholesky(A), pt.linalg.lu_factor(A)[0], pt.linalg.lu(A)[1]],
            {("LU", ("LU", "LUFactor"), False)},
        ),
        (lambda: [pt.linalg.cholesky(A), pt.linalg.lu_factor(A)[0]], set()),
        (
            lambda: [pt.linalg.svd(A)[1], pt.linalg.pinv(A.T)],
            {("SVD", ("MatrixPinv", "SVD"), False)},
        ),
        (
            lambda: [pt.linalg.eigh(A)[0], pt.linalg.pinv(A, hermitian=True)],
            {("symmetric eigenvalue", ("Eigh", "MatrixPinv"), True)},
        ),
        (lambda: [pt.linalg.qr(A)[0], pt.linalg.qr(A, mode="r")], {("QR", ("QR", "QR"), False)}),
        # As are those with pivoting, with another order, or of another form.
        (lambda: [pt.linalg.qr(A)[0], pt.linalg.qr(A, pivoting=True)[0]], set()),
        (lambda: [pt.linalg.qr(A)[0], pt.linalg.qr(A, mode="raw")[0]], set()),
        (
            lambda: [
                *(pt.linalg.qr(A, pivoting=True)[0], pt.linalg.qr(A)[0]),
                pt.linalg.qr(A, mode="r", pivoting=True)[0],
            ],
            {("QR", ("QR", "QR"), False)},
        ),
        (lambda: [pt.linalg.schur(A)[0], pt.linalg.schur(A, output="complex")[0]], set()),
        (lambda: [pt.linalg.schur(A)[0], pt.linalg.schur(A, sort="lhp")[0]], set()),
        # Those of a transpose are others.
        (lambda: [pt.linalg.qr(A)[0], pt.linalg.qr(A.T)[0]], set()),
        (lambda: [pt.linalg.eig(A)[0], pt.linalg.eig(A.T)[0]], set()),
        (lambda: [pt.linalg.cholesky(A), pt.linalg.det(B)], set()),
        (lambda: [pt.linalg.expm(A), pt.linalg.svd(A)[1]], set()),
        (lambda: [A @ B, pt.linalg.det(A)], set()),
    ],
)
def test_factorizations(outputs, expected):
    section = found(*outputs())
    assert shared_kinds(section) == expected
    assert ("could share:" in section.lines()) == bool(expected)
    for one in section.factorizations:
        assert one.work[0].name in str(one)
        assert ("takes it to be" in str(one)) == (one.supposes is not None)


def test_triangles_are_matrices_of_their_own():
    solve = pt.linalg.solve_triangular
    section = found(solve(A, B, lower=True), solve(A, B, lower=False))
    assert section.matrices == ()
    section = found(solve(A, B, lower=True, unit_diagonal=True), solve(A, B, lower=True))
    assert section.matrices == ()
    section = found(solve(A, B, lower=True), solve(A.T, B, lower=False), pt.linalg.det(A))
    [matrix] = section.matrices
    assert matrix.to_dict()["part"] == "lower triangle"
    assert str(matrix).startswith("A, lower triangle: ")
    assert [one.op for one in matrix.work] == ["SolveTriangular"] * 2
    lu, _ = pt.linalg.lu_factor(A)
    halfway = solve(lu, B, lower=True, unit_diagonal=True)
    assert found(solve(lu, halfway, lower=False)).matrices == ()


def test_work_on_bands_is_not_cubic():
    for assume_a in ("banded", "tridiagonal"):
        assert found(pt.linalg.solve(A, V, assume_a=assume_a)).counts == {}


def test_who_takes_a_matrix_to_be_positive_definite():
    section = found(pt.linalg.solve(A, V, assume_a="sym"), pt.linalg.cholesky(A))
    [one] = section.factorizations
    assert one.supposes.op == "Cholesky"
    assert "if it is positive definite, as" in str(one)
    section = found(pt.linalg.solve(A, V, assume_a="sym"), pt.linalg.det(A))
    [one] = section.factorizations
    assert "if it is symmetric, as" in str(one)


def test_repeated_work():
    section = found(pt.linalg.inv(A).sum(), pt.linalg.inv(A.copy())[0], A @ B, A @ B, B @ A)
    assert [names(group) for group in section.repeated] == [
        ["MatrixInverse", "MatrixInverse"],
        ["Dot", "Dot"],
    ] or [names(group) for group in section.repeated] == [
        ["Dot", "Dot"],
        ["MatrixInverse", "MatrixInverse"],
    ]


def test_a_product_is_the_same_whichever_way_it_lies():
    section = found(A @ B, B.T @ A.T, A.T @ B.T, A @ B.T)
    [group] = section.repeated
    assert len(group) == 2
    scaled = Dot22Scalar()(A, B, pt.constant(2.0, dtype="float64"))
    section = found(scaled, A @ B, Dot22Scalar()(B, A, pt.constant(2.0, dtype="float64")))
    [group] = section.repeated
    assert set(names(group)) == {"Dot", "Dot22Scalar"}


@pytest.mark.parametrize(
    ("build", "n"),
    [
        (lambda inverse: inverse @ B, 1),
        (lambda inverse: B @ inverse.T, 1),
        (lambda inverse: inverse @ V, 1),
        (lambda inverse: V @ inverse @ V, 1),
        (lambda inverse: gemv_inplace(V.copy(), np.array(1.0), inverse, V, np.array(1.0)), 1),
        (lambda inverse: gemm_inplace(A.copy(), np.array(1.0), inverse, B, np.array(1.0)), 1),
        (lambda inverse: inverse * B, 0),
        (lambda inverse: pt.exp(inverse) @ B, 0),
    ],
)
def test_products_with_an_inverse(build, n):
    section = found(build(pt.linalg.inv(A)))
    assert len(section.inverse_products) == n
    for one in section.inverse_products:
        assert one.inverse.op == "MatrixInverse"
        assert any(line.strip() == str(one) for line in section.lines())


def test_the_claims_about_sharing_hold_in_numbers():
    """One factorization gives all of what is said to follow from it."""
    rng = np.random.default_rng(1)
    a = rng.normal(size=(4, 4))
    spd, v = a @ a.T + np.eye(4), rng.normal(size=4)
    low = np.linalg.cholesky(spd)
    white = np.linalg.solve(low, v)
    np.testing.assert_allclose(2 * np.log(np.diag(low)).sum(), np.linalg.slogdet(spd)[1])
    np.testing.assert_allclose(np.linalg.solve(low.T, white), np.linalg.solve(spd, v))
    left, values, right = np.linalg.svd(a)
    np.testing.assert_allclose(right.T @ np.diag(1 / values) @ left.T, np.linalg.pinv(a))


def test_after_compiling_what_is_still_to_be_shared_is_found():
    """PyTensor's own rewrites leave both an inverse and an LU factorization here."""
    covariance = A @ A.T + pt.eye(A.shape[0])
    logp = -0.5 * V @ pt.linalg.inv(covariance) @ V - 0.5 * pt.linalg.slogdet(covariance)[1]
    outputs = [logp, pytensor.grad(logp, A)]
    before = found(*outputs)
    assert [one.kind for one in before.factorizations] == ["LU"]
    function = pytensor.function([A, V], outputs, mode=Mode("py", "fast_run"))
    after = audit(function).matrices
    for one in after.factorizations:
        assert {work.op for work in one.work} <= {
            *("Cholesky", "Det", "LUFactor", "MatrixInverse", "SLogDet", "Solve")
        }
    ops = Counter(work.op for work in after.work)
    factorizing = ("Cholesky", "Det", "LUFactor", "MatrixInverse", "SLogDet", "Solve")
    n_factorizing = sum(ops[op] for op in factorizing)
    assert (n_factorizing > 1) == bool(after.factorizations)
