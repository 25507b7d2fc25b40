"""What is said of each matrix of a compiled function: what serves it, what rules did, what not."""

from __future__ import annotations

import pickle

import numpy as np
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.linalg import cholesky, det, inv, slogdet, solve, solve_triangular, svd

import pytensor_fuse
from pytensor_fuse import explain
from pytensor_fuse._audit.audit import audit
from pytensor_fuse._linalg.notes import note_pass
from pytensor_fuse.reports import LinalgReason, MatrixPurpose
from support.linalg.rules import PYTHON
from support.switching import switched

A = pt.dmatrix("A")
B = pt.dmatrix("B")
Y = pt.dvector("y")
MODES = ["NUMBA", "CVM", PYTHON]


@pytest.fixture(autouse=True)
def linalg_on():
    with switched(linalg=True):
        yield


def density(matrix):
    return -0.5 * (Y @ inv(matrix) @ Y + slogdet(matrix)[1])


def density_by_factor(matrix, *, lower=True):
    factor = cholesky(matrix, lower=lower)
    factor = factor if lower else factor.T
    white = solve_triangular(factor, Y, lower=True)
    return -0.5 * (white @ white) - pt.log(pt.diagonal(factor)).sum()


def with_gradient(value):
    return pytensor.function([A, Y], [value, pytensor.grad(value, A)], mode=PYTHON)


def purposes(report):
    return [use.purpose for use in report.uses]


def reasons(reports):
    return [one.reason for report in reports for one in report.not_shared]


@pytest.mark.parametrize("mode", MODES)
def test_what_serves_a_matrix(mode):
    value = density(A)
    f = pytensor.function([A, Y], [value, pytensor.grad(value, A)], mode=mode)
    [report] = explain(f, "linalg")
    assert (report.matrix, report.rows, report.batch) == ("A", None, 1)
    assert report.factorizations == ("LU",)
    assert purposes(report).count(MatrixPurpose.FACTORIZATION) == 1
    assert purposes(report).count(MatrixPurpose.INVERSE) == 1
    assert MatrixPurpose.DETERMINANT in purposes(report)
    assert {use.columns for use in report.uses if use.purpose is MatrixPurpose.SOLVE} == {1}
    assert report.rules[-1] == "linalg_inverse_of_factorized_matrix"
    assert not report.not_shared
    assert audit(f).matrices.factorizations == ()


@pytest.mark.parametrize("mode", [PYTHON, "NUMBA"])
def test_rules_are_known_of_a_matrix_that_is_computed(mode):
    scaled = pt.exp(B) * 2 + B @ B.T
    value = density_by_factor(scaled)
    f = pytensor.function([B, Y], [value, pytensor.grad(value, B)], mode=mode)
    [report] = explain(f, "linalg")
    assert report.factorizations == ("Cholesky",)
    assert {"linalg_cholesky_gradient", "linalg_inverse_from_cholesky"} <= set(report.rules)
    assert not report.not_shared


def test_rules_are_those_of_the_matrix():
    value = density(A) + density_by_factor(B)
    outputs = [value, *pytensor.grad(value, [A, B])]
    reports = explain(pytensor.function([A, B, Y], outputs, mode=PYTHON), "linalg")
    rules = {report.matrix: report.rules for report in reports}
    assert set(rules) == {"A", "B"}
    assert "linalg_inverse_of_factorized_matrix" in rules["A"]
    assert "linalg_cholesky_gradient" not in rules["A"]
    assert {"linalg_cholesky_gradient", "linalg_inverse_from_cholesky"} <= set(rules["B"])
    assert "linalg_inverse_of_factorized_matrix" not in rules["B"]


def test_operations_are_a_formula_or_a_number():
    graph = FunctionGraph([A, Y], [density_by_factor(A), inv(A)], clone=False)
    [report] = explain(graph, "linalg")
    assert report.operations == "7/3 n^3 + n^2"
    [report] = explain(graph, "linalg", shapes={"A": (300, 300)})
    assert (report.rows, report.operations) == (300, "63,090,000")
    assert str(report).startswith("A, 300 x 300")
    assert "  operations: 63,090,000\n" in str(report)


def test_products_with_the_inverse_are_counted_in_its_letters():
    with pytensor_fuse.enabled(False):
        f = pytensor.function([A, B], [inv(A), inv(A) @ B, B @ inv(A)], mode=Mode("py", None))
    [report] = explain(f, "linalg", shapes={"A": (7, 7)})
    assert purposes(report).count(MatrixPurpose.PRODUCT) == 2
    n_inverses = len(report.factorizations)
    assert report.operations == f"196 k + {2 * 7**3 * n_inverses:,}"


def test_a_line_of_the_user_is_known():
    matrix = B @ B.T + pt.eye(3)
    [report] = explain(pytensor.function([B], inv(matrix), mode=PYTHON), "linalg")
    assert report.line.file == __file__
    assert f"{__file__}:{report.line.line}" in str(report)


def test_the_feature_is_off():
    with switched(linalg=False):
        f, g = with_gradient(density(A)), with_gradient(density_by_factor(A))
    for function in (f, g):
        [report] = explain(function, "linalg")
        assert report.rules == ()
        assert reasons([report]) == [LinalgReason.NOT_RUN]
    [shared] = audit(f).matrices.factorizations
    assert shared.reason is LinalgReason.NOT_RUN
    assert "the feature was off" in str(shared)
    assert shared.to_dict()["reason"] == "NOT_RUN"


def test_a_rule_is_left_out():
    value = density(A)
    mode = PYTHON.excluding("linalg_inverse_of_factorized_matrix")
    f = pytensor.function([A, Y], [value, pytensor.grad(value, A)], mode=mode)
    assert reasons(explain(f, "linalg")) == [LinalgReason.RULE_EXCLUDED]
    value = density_by_factor(A)
    for rule in ("linalg_cholesky_gradient", "linalg_inverse_from_cholesky"):
        mode = PYTHON.excluding(rule)
        f = pytensor.function([A, Y], [value, pytensor.grad(value, A)], mode=mode)
        assert reasons(explain(f, "linalg")) == [LinalgReason.RULE_EXCLUDED]


def test_a_mode_that_leaves_all_out():
    value = density(A)
    mode = get_mode("CVM").excluding("linalg")
    f = pytensor.function([A, Y], [value, pytensor.grad(value, A)], mode=mode)
    assert reasons(explain(f, "linalg")) == [LinalgReason.NOT_RUN]


def test_a_target_that_does_not_know_the_ops():
    value = density(A)
    mode = PYTHON.excluding("inplace", "cxx_only", "BlasOpt")
    f = pytensor.function([A, Y], [value, pytensor.grad(value, A)], mode=mode)
    assert reasons(explain(f, "linalg")) == [LinalgReason.OP_UNKNOWN]


def test_an_inverse_beside_a_cholesky_factorization():
    f = pytensor.function([A], [cholesky(A), inv(A)], mode=PYTHON)
    [report] = explain(f, "linalg")
    [left] = report.not_shared
    assert left.reason is LinalgReason.NOT_KNOWN_POSITIVE_DEFINITE
    assert len(left.nodes) == 2
    assert left.reason.value in str(report)
    [shared] = audit(f).matrices.factorizations
    assert shared.reason is left.reason


def test_only_an_inverse():
    f = pytensor.function([A], inv(A), mode=PYTHON)
    assert reasons(explain(f, "linalg")) == [LinalgReason.ONLY_INVERSE]


def test_batches_and_complex_numbers():
    stack, number = pt.dtensor3("stack"), pt.zmatrix("complex")
    f = pytensor.function([stack], [cholesky(stack), inv(stack)], mode=PYTHON)
    [report] = explain(f, "linalg", shapes={"stack": (4, 3, 3)})
    assert reasons([report]) == [LinalgReason.BATCHED]
    assert str(report).startswith("stack, 3 x 3, batch of 4")
    assert report.operations == str(4 * (9 + 54))
    f = pytensor.function([number], [det(number), inv(number)], mode=PYTHON)
    assert reasons(explain(f, "linalg")) == [LinalgReason.COMPLEX]


def test_an_upper_factor():
    value = density_by_factor(A, lower=False)
    [report] = explain(with_gradient(value), "linalg")
    assert "linalg_cholesky_gradient" in report.rules
    assert not report.not_shared
    mode = PYTHON.excluding("linalg_upper_cholesky")
    f = pytensor.function([A, Y], [value, pytensor.grad(value, A)], mode=mode)
    assert reasons(explain(f, "linalg")) == [LinalgReason.UPPER_FACTOR]


def test_a_term_of_a_gradient_that_is_not_known():
    value = pt.sin(cholesky(A)).sum() + Y.sum()
    assert reasons(explain(with_gradient(value), "linalg")) == [LinalgReason.GRADIENT_TERM]


def test_what_no_rule_shares():
    f = pytensor.function([A], [svd(A)[1], pt.linalg.pinv(A)], mode=PYTHON)
    [report] = explain(f, "linalg")
    assert reasons([report]) == [LinalgReason.NO_RULE]
    assert report.uncounted == 2
    assert "2 nodes not counted" in str(report)


def test_equal_by_values_alone():
    # Rules do not look into kernels.
    a, b = ps.float64("a"), ps.float64("b")
    _, total = Elemwise(Composite([a, b], [a * b, a + b]))(A, B)
    graph = FunctionGraph([A, B], [cholesky(total), inv(A + B)], clone=False)
    for may_run, why in ((True, LinalgReason.EQUAL_BY_VALUE), (False, LinalgReason.OP_UNKNOWN)):
        note_pass(graph, "linalg_inverse_of_factorized_matrix", may_run=may_run)
        assert reasons(explain(graph, "linalg")) == [why]


def test_a_graph_inside_another_node():
    def step(y, a):
        return solve(a, y) + inv(a) @ a.sum(axis=0) * det(a)

    states = pytensor.scan(
        step, outputs_info=[Y], non_sequences=[A], n_steps=3, return_updates=False
    )
    f = pytensor.function([A, Y], states, mode=Mode("py", "fast_compile"))
    reports = explain(f, "linalg")
    assert reports
    assert set(reasons(reports)) <= {LinalgReason.INNER_GRAPH, LinalgReason.NO_RULE}


def test_graphs_that_were_not_compiled():
    graph = FunctionGraph([A], [inv(A), det(A)], clone=False)
    [report] = explain(graph, "linalg")
    assert report.factorizations == ("LU", "LU")
    assert reasons([report]) == [LinalgReason.NOT_RUN]
    nothing = explain(FunctionGraph([A], [A + 1], clone=False), "linalg")
    assert nothing == ()
    assert str(nothing) == "there is no cubic work on matrices"
    graph = FunctionGraph([A], [pt.linalg.inv(A), pt.linalg.cholesky(2 * A)], clone=False)
    two = explain(graph, "linalg")
    assert len(two) == 2
    assert str(two) == f"{two[0]}\n{two[1]}"
    with pytest.raises(TypeError, match="compiled function"):
        explain(A, "linalg")


def test_what_is_unpickled_or_copied_has_no_notes():
    f = with_gradient(density(A))
    [before] = explain(f, "linalg")
    for copy in (pickle.loads(pickle.dumps(f)), f.copy()):
        [report] = explain(copy, "linalg")
        assert report.factorizations == before.factorizations
        assert report.not_shared == ()
    assert before.rules
    [after] = explain(f, "linalg")
    assert after == before


def test_nothing_is_changed_and_the_same_is_said_again():
    first, second = (with_gradient(density(A)) for _ in range(2))
    values = [np.eye(3) * 2, np.ones(3)]
    result = [np.array(one) for one in first(*values)]
    assert [str(r) for r in explain(first, "linalg")] == [str(r) for r in explain(second, "linalg")]
    for before, after in zip(result, first(*values), strict=True):
        np.testing.assert_array_equal(before, after)
