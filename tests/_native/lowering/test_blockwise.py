"""Ops on matrices, applied to each matrix of a batch."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor import ifelse
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.io import In
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.tensor.basic import ARange
from pytensor.tensor.blockwise import Blockwise
from scipy.linalg import LinAlgError

from pytensor_fuse import explain
from pytensor_fuse._native.lowering.registry import NoRuleError, lower
from support.effort import examples
from support.native.functions import native_function
from support.native.lowering import (
    check,
    lowered,
    raw_graph,
    rewritten_graph,
    run,
    text,
)
from support.native.ways import check_ways

RTOL = {"float64": 1e-11, "float32": 2e-4}


def positive_definite(rng, *shape, dtype="float64"):
    root = rng.normal(size=(*shape, shape[-1]))
    product = root @ np.swapaxes(root, -1, -2)
    return (product + (1 + shape[-1]) * np.eye(shape[-1])).astype(dtype)


def triangular(rng, *shape, dtype="float64"):
    """Draw lower triangles without overflow; the numbers above must not be read."""
    return (rng.normal(size=(*shape, shape[-1])) + 3 * np.eye(shape[-1])).astype(dtype)


class Drawn:
    """A batch of matrices, as a variable and its value."""

    def __init__(self, data, value, n_batch, name):
        """Some lengths are static; the batch axes may be stored after the others."""
        order = list(range(value.ndim))
        if data.draw(st.booleans(), label=f"{name} has its batch behind"):
            order = order[n_batch:] + order[:n_batch]
        elif data.draw(st.booleans(), label=f"{name} is transposed"):
            order[-2:] = order[-2:][::-1]
        self.value = np.ascontiguousarray(value.transpose(order))
        # A length of 1 on a batch axis is static, since it broadcasts.
        told = [
            (length == 1 and axis < n_batch) or data.draw(st.booleans())
            for axis, length in enumerate(value.shape)
        ]
        shape = [value.shape[axis] if told[axis] else None for axis in order]
        self.given = pt.tensor(name, dtype=str(value.dtype), shape=tuple(shape))
        self.variable = self.given.transpose(*np.argsort(order))


@st.composite
def batch_shapes(draw):
    """Draw shapes that broadcast, each axis of which may be 1 in one of them."""
    whole = draw(st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=2))
    shapes = [list(whole), list(whole)]
    for axis in range(len(whole)):
        one = draw(st.sampled_from([None, 0, 1]))
        if one is not None:
            shapes[one][axis] = 1
    return shapes


@given(batch_shapes(), st.sampled_from([0, 1, 2, 4, 5]), st.sampled_from([0, 1, 3]), st.data())
def test_systems(shapes, n, k, data):
    dtype = data.draw(st.sampled_from(sorted(RTOL)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    lower_triangle = data.draw(st.booleans())
    a = Drawn(data, triangular(rng, *shapes[0], n, dtype=dtype), len(shapes[0]), "a")
    b = Drawn(data, rng.normal(size=(*shapes[1], n, k)).astype(dtype), len(shapes[1]), "b")
    x = pt.linalg.solve_triangular(a.variable, b.variable, lower=lower_triangle, b_ndim=2)
    outputs = [x, pt.exp(-(x**2)), x.sum(axis=-1)]
    check_ways([a.given, b.given], outputs, [a.value, b.value], rtol=RTOL[dtype], forms=["raw"])


@given(batch_shapes(), st.sampled_from([1, 2, 4, 5]), st.data())
def test_factors(shapes, n, data):
    dtype = data.draw(st.sampled_from(sorted(RTOL)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    a = Drawn(data, positive_definite(rng, *shapes[0], n, dtype=dtype), len(shapes[0]), "a")
    b = Drawn(data, rng.normal(size=(*shapes[1], n, 2)).astype(dtype), len(shapes[1]), "b")
    factor = pt.linalg.cholesky(a.variable, lower=data.draw(st.booleans()))
    solved = Blockwise(pt.linalg.solvers.psd.CholeskySolve(lower=True, b_ndim=2))(
        a.variable, b.variable
    )
    outputs = [factor, factor.mT @ b.variable, solved]
    check_ways([a.given, b.given], outputs, [a.value, b.value], rtol=RTOL[dtype], forms=["raw"])


def test_rewritten_graphs():
    rng = np.random.default_rng(1)
    a, b = pt.tensor3("a"), pt.tensor3("b")
    factor = pt.linalg.cholesky(a)
    x = pt.linalg.solve_triangular(factor, b, lower=True, b_ndim=2)
    log_density = -(x**2).sum() - pt.log(pt.diagonal(factor, axis1=-2, axis2=-1)).sum()
    values = [positive_definite(rng, 4, 3), rng.normal(size=(4, 3, 2))]
    outputs = [log_density, *pytensor.grad(log_density, [a, b])]
    # Without rewriting, diagonals are built from ranges whose lengths an iteration computes.
    check_ways([a, b], outputs, values, rtol=1e-11, forms=["rewritten"])


def test_matrices_are_read_and_written_where_they_lie():
    a, b = pt.tensor3("a"), pt.tensor3("b")
    x = pt.linalg.solve_triangular(a.mT, b, lower=False, b_ndim=2)
    program = text([a, b], [x])
    assert program.count("solve_ut(") == 1
    # The result's buffer, which first holds the right-hand sides; nothing else is stored there.
    assert program.count("\nbuffer @") == 3
    assert program.count("store @2") == 2  # The right-hand sides, or NaN.
    lines = program.splitlines()
    [call] = [line for line in lines if " solve_ut(" in line]
    [loop] = [line for line in lines if line.startswith("  for ")]
    index = loop.split()[1].partition(":")[0]
    assert call.endswith(f"@2[{index}], @0[{index}]")


@pytest.mark.parametrize("is_lower", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_factors_of_few_rows_are_those_of_many(size, is_lower):
    """Also without a factor, and for any contents of the other triangle."""
    rng = np.random.default_rng(6)
    value = positive_definite(rng, 12, size)
    value[1, 0, 0] = 0
    value[2, -1, -1] = -1
    value[3, -1, 0] = value[3, 0, -1] = np.nan
    # OpenBLAS replaces a quotient of two infinities by 0, through a factor of 0; here there is only
    # one.
    value[4, 0, 0] = np.inf
    value[6] = 0
    value[7, -1, -1] = np.nan
    outside = np.triu_indices(size, 1) if is_lower else np.tril_indices(size, -1)
    value[(8, *outside)] = np.nan
    a = pt.tensor("a", dtype="float64", shape=(None, size, size))
    factor = pt.linalg.cholesky(a, lower=is_lower)
    assert (" call " in text([a], [factor])) == (size > 4)
    many = pt.tensor3("many")
    [expected] = run(raw_graph([many], [pt.linalg.cholesky(many, lower=is_lower)]), [value])
    check_ways([a], [factor], [value], expected=[expected], rtol=1e-12, forms=["raw"])


@examples(0.5)
@given(st.sampled_from([1, 2, 3, 4]), st.sampled_from([None, 1, 2, 4]), st.data())
def test_systems_of_few_equations_are_those_of_many(size, k, data):
    rng = np.random.default_rng(7)
    own = () if k is None else (k,)
    values = [triangular(rng, 10, size), rng.normal(size=(10, size, *own))]
    values[0][1, -1, -1] = 0
    values[0][2, 0, 0] = np.inf
    values[0][3, 0, -1] = values[0][4, -1, 0] = np.nan
    values[1][5, 0] = np.nan
    values[1][6, -1] = np.inf
    options = {
        "lower": data.draw(st.booleans()),
        "unit_diagonal": data.draw(st.booleans()),
        "b_ndim": 1 + len(own),
    }
    a = pt.tensor("a", dtype="float64", shape=(10, size, size))
    b = pt.tensor("b", dtype="float64", shape=(None, None, *own))
    x = pt.linalg.solve_triangular(a, b, **options)
    assert " call " not in text([a, b], [x])
    many = [pt.tensor3("many"), pt.tensor("others", dtype="float64", shape=(None,) * b.ndim)]
    found = run(raw_graph(many, [pt.linalg.solve_triangular(*many, **options)]), values)
    check_ways([a, b], [x], values, expected=found, rtol=1e-11, forms=["raw"])


def test_a_loop_over_small_matrices_is_one_of_vectors():
    a = pt.tensor("a", dtype="float64", shape=(100, 3, 3))
    b = pt.tensor("b", dtype="float64", shape=(100, 3))
    x = pt.linalg.solve_triangular(pt.linalg.cholesky(a), b, lower=True, b_ndim=1)
    [loop] = explain(FunctionGraph([a, b], [x]), "native").loops
    assert (loop.extent, loop.why_scalar) == (100, None)


def test_other_factors_of_a_batch_stay_finite():
    rng = np.random.default_rng(2)
    value = positive_definite(rng, 3, 2, 4)
    value[1, 0] -= 100
    a = pt.tensor("a", dtype="float64", shape=(None, None, None, None))
    [factor] = run(raw_graph([a], [pt.linalg.cholesky(a)]), [value])
    assert np.isnan(factor[1, 0]).all()
    value[1, 0] = np.eye(4)
    rest = np.ones((3, 2), bool)
    rest[1, 0] = False
    np.testing.assert_allclose(factor[rest], np.linalg.cholesky(value)[rest], rtol=1e-12)


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0), (0, 0, 0), (0, 2, 3, 3), (2, 0, 3, 3)])
def test_empty_batches(shape):
    a = pt.tensor("a", dtype="float64", shape=(None,) * len(shape))
    x = pt.linalg.solve_triangular(pt.linalg.cholesky(a), a[..., :1], b_ndim=2)
    expected = [np.zeros(shape), np.zeros((*shape[:-1], min(shape[-1], 1)))]
    outputs = [pt.linalg.cholesky(a), x]
    check_ways([a], outputs, [np.zeros(shape)], expected=expected, rtol=1e-12)


def test_shapes_that_do_not_fit():
    a, b = pt.tensor3("a"), pt.tensor3("b")
    x = pt.linalg.solve_triangular(a, b, lower=True, b_ndim=2)
    cases = [
        ((2, 3, 3), (4, 3, 1), ValueError, "Vectorized input 1 has an incompatible shape in"),
        ((2, 3, 3), (1, 3, 1), ValueError, "Incompatible vectorized shapes for input 1 and axis"),
        ((2, 3, 4), (2, 3, 1), LinAlgError, "Last 2 dimensions of A must be square"),
        ((2, 3, 3), (2, 4, 1), LinAlgError, "Dimensions of A and B do not conform"),
    ]
    for fgraph in (raw_graph([a, b], [x]), rewritten_graph([a, b], [x])):
        for one, other, exception, message in cases:
            with pytest.raises(exception, match=message):
                run(fgraph, [np.ones(one), np.ones(other)])
    # An empty batch of matrices of a wrong shape does not fail.
    [out] = run(raw_graph([a], [pt.linalg.cholesky(a)]), [np.ones((0, 2, 3))])
    assert out.shape[0] == 0


def test_lengths_that_an_iteration_computes_are_refused():
    stop = pt.lvector("stop")
    ranges = Blockwise(ARange("int64"), signature="(),(),()->(a)")(0, stop, 1)
    with pytest.raises(NoRuleError, match="known only inside of a loop"):
        lowered(raw_graph([stop], [ranges]))


class WithoutRule(Op):
    """An op that returns vectors unchanged."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0].copy()


def test_what_the_op_for_one_refuses_is_refused_for_a_batch():
    a = pt.tensor3("a", dtype="complex128")
    node = pt.linalg.cholesky(a).owner
    assert lower.refusal(node) is not None
    node = Blockwise(WithoutRule(), signature="(n)->(n)")(pt.matrix()).owner
    assert lower.refusal(node) == "for each of a batch: no rule for WithoutRule"


def test_batches_in_batches():
    rng = np.random.default_rng(3)
    a, b = pt.tensor3("a"), pt.tensor3("b")
    factor = pt.linalg.cholesky(a)
    x = pt.linalg.solve_triangular(factor, b, lower=True, b_ndim=2)
    op = OpFromGraph([a, b], [x, factor.mT, pt.exp(x).sum(axis=0)])
    outer = Blockwise(op, signature="(a,m,m),(a,m,n)->(a,m,n),(a,m,m),(m,n)")
    many, others = (pt.tensor(name, dtype="float64", shape=(None,) * 4) for name in "cd")
    values = [positive_definite(rng, 3, 2, 4), rng.normal(size=(3, 2, 4, 2))]
    check_ways([many, others], outer(many, others), values, rtol=1e-12, forms=["raw"])


def test_numbers_and_vectors():
    rng = np.random.default_rng(4)
    x, a = pt.matrix("x"), pt.vector("a")
    s, v = pt.dscalar("s"), pt.dvector("v")
    scaled = OpFromGraph([v, s], [v * s, (v * s).sum(), s + 1])
    op = Blockwise(scaled, signature="(n),()->(n),(),()")
    check_ways([x, a], op(x, a), [rng.normal(size=(3, 5)), rng.normal(size=3)], rtol=1e-13)
    diagonals = Blockwise(pt.diag(v, 1).owner.op, signature="(n)->(m,m)")
    check([x], [diagonals(x)], [rng.normal(size=(3, 4))], rewrites=False)


def test_inputs_that_may_be_overwritten():
    rng = np.random.default_rng(5)
    a, b = pt.tensor3("a"), pt.tensor3("b")
    x = pt.linalg.solve_triangular(a, b, lower=True, b_ndim=2)
    values = [triangular(rng, 3, 4), rng.normal(size=(3, 4, 2))]
    check([a, b], [x, b.sum()], values, destroyed=[0, 1], rtol=1e-12)
    function = native_function([a, In(b, mutable=True)], x)
    expected = [np.linalg.solve(np.tril(one), other) for one, other in zip(*values, strict=True)]
    np.testing.assert_allclose(function(*values), expected, rtol=1e-12)


@pytest.mark.parametrize("shape", [(3, 4, 4), (2, 1, 5, 5), (1, 1, 1), (0, 3, 3), (3, 0, 0)])
def test_other_work_on_square_matrices(shape):
    """Column-major results of routines are batches of transposes."""
    rng = np.random.default_rng(8)
    n_batch = len(shape) - 2
    value, right = positive_definite(rng, *shape[:-1]), rng.normal(size=(*shape[:-1], 2))
    a = pt.tensor("a", dtype="float64", shape=(None,) * len(shape))
    b = pt.tensor("b", dtype="float64", shape=(None,) * (n_batch + 2))
    outputs = [
        pt.linalg.solve(a, b, assume_a="gen", b_ndim=2),
        pt.linalg.solve(a, b, assume_a="pos", b_ndim=2),
        pt.linalg.inv(a) @ b,
        pt.linalg.det(a),
    ]
    solution = np.linalg.solve(value, right)
    expected = [
        *[solution] * 3,
        np.linalg.det(value),
    ]
    check_ways([a, b], outputs, [value, right], expected=expected, rtol=1e-9)


def test_factors_of_oblong_matrices():
    rng = np.random.default_rng(9)
    value = rng.normal(size=(3, 5, 2))
    a = pt.tensor3("a")
    q, r = pt.linalg.qr(a, mode="economic")
    left, singular, right = pt.linalg.svd(a, full_matrices=False)
    outputs = [q @ r, q.mT @ q, (left * singular[:, None, :]) @ right]
    expected = [value, np.stack([np.eye(2)] * 3), value]
    check_ways([a], outputs, [value], expected=expected, rtol=1e-10)


def test_branches_for_each_of_a_batch():
    x, c = pt.matrix("x"), pt.scalar("c")
    core = OpFromGraph([x, c], [ifelse(c > 0, pt.exp(x) @ x, x + 1)])
    batch, conditions = pt.tensor3("batch"), pt.vector("conditions")
    out = Blockwise(core, signature="(m,m),()->(m,m)")(batch, conditions)
    values = [np.random.default_rng(1).normal(size=(3, 2, 2)), np.array([1.0, -1.0, 2.0])]
    fgraph = raw_graph([batch, conditions], [out])
    expected = [np.exp(one) @ one if at > 0 else one + 1 for one, at in zip(*values, strict=True)]
    np.testing.assert_allclose(run(fgraph, values)[0], expected)
    np.testing.assert_allclose(native_function([batch, conditions], out)(*values), expected)
