"""What an audit says about work on matrices, judged by hand, by counting calls, by values."""

from __future__ import annotations

import inspect
import json
import warnings
from collections import Counter
from importlib import import_module
from pkgutil import walk_packages

import numpy as np
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import Mode
from pytensor.compile.ops import deep_copy_op, wrap_py
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import HasInnerGraph, Op
from pytensor.graph.traversal import graph_inputs
from pytensor.raise_op import Assert, CheckAndRaise
from pytensor.scalar.basic import Composite
from pytensor.tensor import linalg
from pytensor.tensor.blas import Dot22Scalar, gemm_inplace, gemv_inplace
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.decomposition.lu import LUFactor
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.lstsq import lstsq
from pytensor.tensor.math import _dot

from pytensor_fuse._audit.audit import audit
from pytensor_fuse._audit.sections import matrices as section
from support.graphs import expensive

A, B = pt.matrices("A", "B")
V = pt.vector("v")
T3 = pt.tensor3("T3")


def graph(inputs, outputs):
    return FunctionGraph(list(inputs), list(outputs), clone=False)


def found(*outputs, inputs=(A, B, V, T3), **options):
    shared = [v for v in graph_inputs(outputs) if isinstance(v, SharedVariable)]
    section = audit(graph([*inputs, *shared], outputs), **options).matrices
    as_dict = section.to_dict()
    assert json.loads(json.dumps(as_dict)) == as_dict
    assert section.lines()
    return section


def names(work):
    return [one.op for one in work]


def multivariate_normal(mean, covariance):
    with warnings.catch_warnings():
        # About what it will return one day.
        warnings.simplefilter("ignore")
        return pt.random.multivariate_normal(mean, covariance)


# Counts -----------------------------------------------------------------------------------


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
    assert not gradient.factorisations
    assert not gradient.repeated

    outputs = [logp, *pytensor.grad(logp, parameters)]
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


# The same matrix --------------------------------------------------------------------------


def fused(*operands):
    """A kernel of several outputs, of which the second is the sum of the first two operands."""
    a, b = ps.float64("a"), ps.float64("b")
    return Elemwise(Composite([a, b], [a * b, a + b]))(*operands)


@pytest.mark.parametrize(
    "same",
    [
        lambda m: m.T,
        lambda m: m.T.T,
        lambda m: m.copy(),
        lambda m: deep_copy_op(m),
        lambda m: Assert("<checked>")(m, pt.all(pt.gt(pt.diagonal(m), 0))),
        lambda m: pt.specify_shape(m, (3, 3)),
        lambda m: pt.specify_shape(m.T, (3, 3)).T,
        lambda m: pytensor.gradient.disconnected_grad(m),
        lambda m: m[None],
        lambda m: m[None, None].mT,
        lambda m: m.dimshuffle("x", 1, 0),
        lambda m: m[None].squeeze(0),
        lambda m: OpFromGraph([A], [A.T])(m),
    ],
)
def test_one_matrix(same):
    for matrix in (A, pt.exp(A) + B, A @ B):
        section = found(pt.linalg.inv(matrix), pt.linalg.det(same(matrix)))
        [shared] = section.matrices
        assert shared.variable is matrix
        assert names(shared.work) in (["MatrixInverse", "Det"], ["Det", "MatrixInverse"])


@pytest.mark.parametrize(
    "other", [lambda m: -m, lambda m: m[::-1], lambda m: m @ m, lambda m: pt.exp(m.T)]
)
def test_another_matrix(other):
    for matrix in (A, pt.exp(A) + B, A @ B):
        section = found(pt.linalg.inv(matrix), pt.linalg.det(other(matrix)))
        assert not section.matrices


def test_a_batch_is_transposed_by_its_last_dimensions_only():
    section = found(pt.linalg.inv(T3), pt.linalg.det(T3.transpose(0, 2, 1)))
    assert len(section.matrices) == 1
    section = found(pt.linalg.inv(T3), pt.linalg.det(T3.transpose(1, 0, 2)))
    assert not section.matrices
    section = found(pt.linalg.inv(T3), pt.linalg.det(T3.transpose(1, 2, 0)))
    assert not section.matrices


def test_kernels_are_looked_into():
    _, total = fused(A, B)
    section = found(pt.linalg.det(total), pt.linalg.inv(A + B))
    assert len(section.matrices) == 1
    product, _ = fused(A, B)
    section = found(pt.linalg.det(product), pt.linalg.inv(A + B))
    assert not section.matrices


def test_work_in_place_is_the_same_work():
    a = A + 1
    in_place = Elemwise(ps.exp, {0: 0})
    outputs = [
        pt.linalg.det(Cholesky(overwrite_a=True)(in_place(A + 1))),
        pt.linalg.inv(pt.linalg.cholesky(pt.exp(a))),
    ]
    section = found(*outputs)
    covariance, factor = section.matrices
    assert names(covariance.work) == ["Cholesky", "Cholesky"]
    assert set(names(factor.work)) == {"Det", "MatrixInverse"}
    assert [set(names(group)) for group in section.repeated] == [{"Cholesky"}]


def test_equal_constants_are_one_matrix_and_others_are_not():
    data = np.arange(9.0).reshape(3, 3)
    one, same, other = (pt.constant(d) for d in (data, data.copy(), data + 1))
    section = found(pt.linalg.det(one + A), pt.linalg.inv(same + A), pt.linalg.expm(other + A))
    [shared] = section.matrices
    assert set(names(shared.work)) == {"Det", "MatrixInverse"}


STEPS = {
    "transpose": (1, lambda a: a.T, lambda k: k[1] if k[0] == "transpose" else ("transpose", k)),
    "copy": (1, lambda a: a.copy(), lambda k: k),
    "checked": (1, lambda a: Assert("")(a, pt.ge(a.shape[0], 0)), lambda k: k),
    "exp": (1, pt.exp, lambda k: ("exp", k)),
    "add": (2, pt.add, lambda a, b: ("add", a, b)),
    "dot": (2, pt.dot, lambda a, b: ("dot", a, b)),
}


@st.composite
def matrices(draw):
    """Matrices, each with an expression that is the same if they are by the rules of the audit."""
    pool = [(A, ("A",)), (B, ("B",))]
    for _ in range(draw(st.integers(2, 12))):
        n_operands, build, describe = STEPS[draw(st.sampled_from(sorted(STEPS)))]
        chosen = [pool[draw(st.integers(0, len(pool) - 1))] for _ in range(n_operands)]
        variables, expressions = zip(*chosen, strict=True)
        pool.append((build(*variables), describe(*expressions)))
    return [pool[i] for i in draw(st.lists(st.integers(0, len(pool) - 1), min_size=2, max_size=6))]


@given(matrices())
def test_matrices_are_grouped_by_what_they_are(chosen):
    dets = [MatrixInverse()(variable) for variable, _ in chosen]
    section = found(*dets)
    expected = {}
    for (_, expression), det in zip(chosen, dets, strict=True):
        if expression[0] == "transpose":
            [_, expression] = expression
        expected.setdefault(expression, set()).add(det.owner)
    groups = {frozenset(work.node for work in shared.work) for shared in section.matrices}
    assert groups == {frozenset(group) for group in expected.values() if len(group) > 1}


@given(matrices(), st.integers(0, 2**32 - 1))
def test_what_is_called_one_matrix_has_one_value(chosen, seed):
    inverses = [MatrixInverse()(variable) for variable, _ in chosen]
    section = found(*inverses)
    rng = np.random.default_rng(seed)
    values = [rng.uniform(-0.2, 0.2, size=(3, 3)) for _ in range(2)]
    for shared in section.matrices:
        held = [work.node.inputs[0] for work in shared.work]
        results = pytensor.function([A, B], held, mode=Mode("py", None), on_unused_input="ignore")(
            *values
        )
        for result in results[1:]:
            assert np.array_equal(result, results[0]) or np.array_equal(result.T, results[0])


# What could be shared ---------------------------------------------------------------------


def shared_kinds(section):
    return {
        (one.kind, tuple(sorted(names(one.work))), one.supposes is not None)
        for one in section.factorisations
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
        # An LU factorisation does not follow from a Cholesky factorisation.
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
def test_factorisations(outputs, expected):
    section = found(*outputs())
    assert shared_kinds(section) == expected
    assert ("could share:" in section.lines()) == bool(expected)
    for one in section.factorisations:
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
    [one] = section.factorisations
    assert one.supposes.op == "Cholesky"
    assert "if it is positive definite, as" in str(one)
    section = found(pt.linalg.solve(A, V, assume_a="sym"), pt.linalg.det(A))
    [one] = section.factorisations
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
    """One factorisation gives all of what is said to follow from it."""
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
    """PyTensor's own rewrites leave both an inverse and an LU factorisation here."""
    covariance = A @ A.T + pt.eye(A.shape[0])
    logp = -0.5 * V @ pt.linalg.inv(covariance) @ V - 0.5 * pt.linalg.slogdet(covariance)[1]
    outputs = [logp, pytensor.grad(logp, A)]
    before = found(*outputs)
    assert [one.kind for one in before.factorisations] == ["LU"]
    function = pytensor.function([A, V], outputs, mode=Mode("py", "fast_run"))
    after = audit(function).matrices
    for one in after.factorisations:
        assert {work.op for work in one.work} <= {
            *("Cholesky", "Det", "LUFactor", "MatrixInverse", "SLogDet", "Solve")
        }
    ops = Counter(work.op for work in after.work)
    factorising = ("Cholesky", "Det", "LUFactor", "MatrixInverse", "SLogDet", "Solve")
    n_factorising = sum(ops[op] for op in factorising)
    assert (n_factorising > 1) == bool(after.factorisations)


# What is not known ------------------------------------------------------------------------


class Strange(Op):
    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0]


class StrangeCholesky(Cholesky):
    pass


@pytest.mark.parametrize(
    ("op", "why"),
    [
        (lambda: Strange()(A), "Strange of test_audit_matrices is not known"),
        (lambda: StrangeCholesky()(A), "StrangeCholesky is a kind of Cholesky"),
        (lambda: Blockwise(StrangeCholesky())(T3), "StrangeCholesky is a kind of Cholesky"),
        (lambda: wrap_py([pt.dmatrix], [pt.dmatrix])(lambda x: x)(A), "a Python function"),
        (lambda: OpFromGraph([A], [Strange()(A)])(A), "Strange of test_audit_matrices"),
    ],
)
def test_unknown_ops(op, why):
    for outputs in ([op()], [op(), pt.linalg.det(A)]):
        section = found(*outputs)
        [unknown] = section.unknown
        assert why in unknown.why
        assert "may be work on matrices or not:" in section.lines()
        assert any(str(unknown) in line for line in section.lines())


class Checked(CheckAndRaise):
    """As PyMC has one."""


class Replaced(CheckAndRaise):
    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0].T


def test_a_kind_of_check_passes_its_value_unless_it_does_something_else():
    for kind, passes in ((Checked, True), (Replaced, False)):
        checked = kind(ValueError, "")(A, pt.gt(A[0, 0], 0))
        section = found(pt.linalg.det(A), pt.linalg.inv(checked))
        assert bool(section.matrices) == passes
        assert bool(section.unknown) != passes


def test_each_op_of_linear_algebra_is_known():
    kinds = set()
    for prefix in section._LINEAR_ALGEBRA:
        module = import_module(prefix)
        modules = [module]
        modules += [
            import_module(info.name)
            for info in walk_packages(getattr(module, "__path__", []), f"{prefix}.")
        ]
        for part in modules:
            kinds |= {
                kind
                for _, kind in inspect.getmembers(part, inspect.isclass)
                if issubclass(kind, Op) and kind.__module__.startswith(prefix)
            }
    abstract = {"BaseBLAS", "BaseBlockDiagonal", "GemmRelated", "SolveBase"}
    assert Cholesky in kinds
    assert LUFactor in kinds
    missing = {
        kind.__name__
        for kind in kinds
        if kind not in section._KINDS
        and kind.__name__ not in section._CHEAP | abstract
        and not issubclass(kind, HasInnerGraph)
    }
    assert not missing
    # Nothing is on both lists.
    assert not {kind.__name__ for kind in section._KINDS} & section._CHEAP


def test_nothing_to_say():
    section = found(pt.exp(A))
    assert section.lines() == ["0 cubic operations"]
    assert section.html() == "<p>0 cubic operations</p>"


def test_names_are_escaped():
    odd = pt.matrix("<b>&")
    section = found(pt.linalg.det(odd), pt.linalg.inv(odd), inputs=[odd])
    assert "&lt;b&gt;&amp;" in section.html()
    assert "<b>" not in section.html()


def test_long_lists_are_cut():
    a = [pt.linalg.expm(A + float(i)) for i in range(30)]
    lines = found(*a).lines()
    assert "  ... and 22 more of these" in lines
    assert len(lines) < 20


def test_dot_in_a_graph_of_its_own():
    assert found(_dot(A, B)).counts == {"Dot": 1}
