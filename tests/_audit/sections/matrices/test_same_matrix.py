"""What an audit takes to be one matrix: what has the same values, and nothing else."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import Mode
from pytensor.compile.ops import deep_copy_op
from pytensor.raise_op import Assert
from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.inverse import MatrixInverse

from support.linalg.audits import T3, A, B, found, names


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
