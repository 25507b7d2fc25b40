"""What an audit counts as work on matrices: by hand, and by counting calls."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import Mode
from pytensor.tensor import linalg
from pytensor.tensor.blas import gemm_inplace, gemv_inplace
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.solvers.lstsq import lstsq
from pytensor.tensor.math import _dot

from pytensor_fuse._audit.audit import audit
from support.graphs import expensive
from support.linalg.audits import T3, A, B, V, found, multivariate_normal, names
from support.switching import switched


@pytest.mark.parametrize(
    ("build", "counts"),
    [
        (lambda: pt.linalg.cholesky(A), {"Cholesky": 1}),
        (lambda: pt.linalg.solve(A, B), {"Solve": 1}),
        (lambda: pt.linalg.solve(A, V), {"Solve": 1}),
        (lambda: pt.linalg.solve(A, B, assume_a="pos"), {"Solve": 1}),
        (lambda: pt.linalg.solve(A, B, assume_a="tridiagonal"), {}),
        (lambda: pt.linalg.solve_triangular(A, B), {"SolveTriangular": 1}),
        # With one right-hand side, the work is quadratic.
        (lambda: pt.linalg.solve_triangular(A, V), {}),
        (lambda: pt.linalg.cho_solve((A, True), B), {"CholeskySolve": 1}),
        (lambda: pt.linalg.cho_solve((A, True), V), {}),
        (lambda: pt.linalg.inv(A), {"MatrixInverse": 1}),
        (lambda: pt.linalg.pinv(A), {"MatrixPinv": 1}),
        (lambda: pt.linalg.det(A), {"Det": 1}),
        (lambda: linalg.summary.SLogDet()(A)[1], {"SLogDet": 1}),
        (lambda: pt.linalg.svd(A)[1], {"SVD": 1}),
        (lambda: pt.linalg.qr(A)[0], {"QR": 1}),
        (lambda: pt.linalg.eig(A)[0], {"Eig": 1}),
        (lambda: pt.linalg.eigh(A)[0], {"Eigh": 1}),
        (lambda: pt.linalg.lu(A)[0], {"LU": 1}),
        (lambda: pt.linalg.lu_factor(A)[0], {"LUFactor": 1}),
        (lambda: pt.linalg.expm(A), {"Expm": 1}),
        (lambda: lstsq(A, B, np.array(-1.0))[0], {"Lstsq": 1}),
        (lambda: multivariate_normal(V, A), {"MvNormalRV": 1}),
        (lambda: A @ B, {"Dot": 1}),
        (lambda: A @ V, {}),
        (lambda: pt.outer(V, V), {}),
        (lambda: pt.specify_shape(A, (3, 1)) @ B, {}),
        (lambda: gemm_inplace(A.copy(), np.array(1.0), B, B, np.array(1.0)), {"Gemm": 1}),
        (lambda: gemv_inplace(V.copy(), np.array(1.0), A, V, np.array(1.0)), {}),
        (lambda: pt.linalg.cholesky(T3), {"Cholesky": 1}),
        (lambda: T3 @ T3, {"Dot": 1}),
        (lambda: pt.linalg.solve_triangular(T3, A, b_ndim=1), {}),
        (lambda: pt.exp(A) + B.T, {}),
        # A Schur decomposition for each, a solve of Sylvester's equation, and products.
        (lambda: pt.linalg.solve_sylvester(A, B, A), {"Dot": 4, "Schur": 2, "TRSYL": 1}),
    ],
)
def test_counts(build, counts):
    assert found(build()).counts == counts


def test_the_gaussian_process():
    """Counts of the log-density and its gradient, done by hand."""
    x, y = pt.matrix("x"), pt.vector("y")
    parameters = scale, noise = pt.scalars("scale", "noise")
    gram = x @ x.T
    squares = pt.diagonal(gram)
    distances = squares[:, None] + squares[None, :] - 2 * gram
    covariance = pt.exp(-0.5 * distances / scale**2) + noise * pt.eye(x.shape[0])
    factor = pt.linalg.cholesky(covariance)
    white = pt.linalg.solve_triangular(factor, y, lower=True)
    logp = -0.5 * (white**2).sum() - pt.log(pt.diagonal(factor)).sum()
    inputs = [x, y, *parameters]

    # x x', the factor, and the quadratic solve.
    forward = found(logp, inputs=inputs)
    assert forward.counts == {"Cholesky": 1, "Dot": 1}
    assert [work.order for work in forward.work] == [3, 3, 2]

    # The gradient: another quadratic solve; then Murray's rule for the factor, with one product
    # and two solves of as many right-hand sides as there are rows. The parameters do not need that
    # of x x'.
    gradient = found(logp, *pytensor.grad(logp, parameters), inputs=inputs)
    assert gradient.counts == {"Cholesky": 1, "Dot": 2, "SolveTriangular": 2}
    assert [work.order for work in gradient.work].count(2) == 2
    # All four solves are with the one factor, whichever way it lies.
    [shared] = gradient.matrices
    assert names(shared.work) == ["SolveTriangular"] * 4
    assert shared.variable is factor
    assert not gradient.factorizations
    assert not gradient.repeated

    outputs = [logp, *pytensor.grad(logp, parameters)]
    with switched(linalg=False):
        function = pytensor.function(inputs, outputs, mode=Mode("py", "fast_run"))
    after = audit(function).matrices
    # Another count of the same graph: here no length is 1 but that of right-hand sides.
    others = ("CGemv", "CGer", "Gemv", "Ger")
    counted = {op: n for op, n in expensive(function.maker.fgraph).items() if op not in others}
    assert Counter(work.op for work in after.work) == counted
    kept = {op: n for op, n in after.counts.items() if op in ("Cholesky", "SolveTriangular")}
    assert kept == {"Cholesky": 1, "SolveTriangular": 2}
    # PyTensor multiplies x by x' twice, once with the factor of 2.
    [products] = after.repeated
    assert set(names(products)) == {"Dot22", "Dot22Scalar"}


def count_calls(monkeypatch, kind):
    calls = Counter()
    perform = kind.perform

    def counted(self, *args, **kwargs):
        calls[kind.__name__] += 1
        return perform(self, *args, **kwargs)

    monkeypatch.setattr(kind, "perform", counted)
    return calls


def claimed_calls(section, op):
    return sum(work.runs * work.batch for work in section.work if work.op == op)


def test_runs_and_batches_are_the_calls_that_happen(monkeypatch):
    a = pt.tensor("a", shape=(2, 3, 3))
    state = pytensor.scan(
        lambda s: pt.linalg.cholesky(s @ s.T + pt.eye(3)),
        outputs_info=[a[0]],
        n_steps=5,
        return_updates=False,
    )
    inner = pt.matrix(shape=(3, 3))
    by_graph = OpFromGraph([inner], [pt.linalg.cholesky(inner)])
    outputs = [state, pt.linalg.cholesky(a), by_graph(a[1])]
    calls = count_calls(monkeypatch, Cholesky)
    # The linker in Python runs each node as it is, also those of inner graphs.
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        function = pytensor.function([a], outputs, mode=Mode("py", None))
        section = audit(function).matrices
        function(np.array([np.eye(3) + 1, np.eye(3) + 2]))
    assert calls["Cholesky"] == claimed_calls(section, "Cholesky") == 5 + 2 + 1
    work = [one for one in section.work if one.op == "Cholesky"]
    in_graph, batched, in_scan = sorted(work, key=lambda one: (one.runs, one.batch))
    assert (in_scan.runs, in_scan.batch, len(in_scan.path)) == (5, 1, 1)
    assert (batched.runs, batched.batch, batched.path) == (1, 2, ())
    assert (in_graph.runs, in_graph.batch, len(in_graph.path)) == (1, 1, 1)


def test_sizes():
    a, b = pt.matrix("a", shape=(4, 4)), pt.matrix("b", shape=(4, 7))
    batch = pt.tensor("batch", shape=(5, 1, 4, 4))
    section = found(pt.linalg.solve(a, b), a @ b, pt.linalg.cholesky(batch), inputs=[a, b, batch])
    lengths = {work.op: (work.lengths, work.batch) for work in section.work}
    assert lengths == {"Solve": ((4, 7), 1), "Dot": ((4, 4, 7), 1), "Cholesky": ((4, 4), 5)}


def test_unknown_numbers_of_steps():
    n = pt.iscalar("n")
    last = pytensor.scan(
        lambda s: pt.linalg.expm(s), outputs_info=[A], n_steps=n, return_updates=False
    )[-1]
    section = found(last, inputs=[A, n])
    assert [(work.op, work.runs) for work in section.work] == [("Expm", None)]
    assert "runs: unknown" in str(section.work[0])


def test_what_a_loop_repeats():
    def step(state, a):
        return state + pt.linalg.inv(a) + pt.linalg.expm(state)

    last = pytensor.scan(
        step, outputs_info=[B], non_sequences=[A], n_steps=4, return_updates=False
    )[-1]
    section = found(last, pt.linalg.inv(A.T))
    assert {work.op: work.invariant for work in section.work if work.path} == {
        "MatrixInverse": True,
        "Expm": False,
    }
    [outside] = [work for work in section.work if not work.path]
    assert not outside.invariant
    # It is the same matrix inside and outside.
    [shared] = section.matrices
    assert shared.variable is A
    assert names(shared.work) == ["MatrixInverse", "MatrixInverse"]


def test_dot_in_a_graph_of_its_own():
    assert found(_dot(A, B)).counts == {"Dot": 1}
