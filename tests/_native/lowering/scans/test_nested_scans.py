"""Scans in other ops and in each other, and the kinds of steps and sequences."""

from __future__ import annotations

import sys

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.replace import vectorize_graph
from pytensor.scan import until
from pytensor.tensor.type import TensorType

from support.native.functions import native_function
from support.native.graphs.steps import ifelse
from support.native.lowering import stock
from support.native.ways import check_ways

RNG = np.random.default_rng(5)
ZERO = pt.constant(np.float64(0))
X, M, A, N = pt.dvector("x"), pt.dmatrix("m"), pt.dscalar("a"), pt.lscalar("n")


def scan(fn, **kwargs):
    return pytensor.scan(fn, return_updates=False, **kwargs)


def series(x, a):
    return scan(
        lambda now, before, a: pt.tanh(before * a + now),
        sequences=[x],
        outputs_info=[ZERO],
        non_sequences=[a],
    )


def inner_graph():
    x, a = pt.dvector(), pt.dscalar()
    trace = series(x, a)
    return OpFromGraph([x, a], [trace, trace[-1]])


def test_in_an_inner_graph():
    outs = inner_graph()(X, A)
    outputs = [*outs, pytensor.grad(outs[0].sum(), A)]
    check_ways([X, A], outputs, [RNG.normal(size=5), 0.5], rtol=1e-10)


def test_an_inner_graph_in_a_step():
    graph = inner_graph()

    def step(row, before, a):
        trace, last = graph(row, a)
        return [last + before, trace]

    sums, rows = scan(step, sequences=[M], outputs_info=[ZERO, None], non_sequences=[A])
    outputs = [sums, rows, pytensor.grad(sums.sum() + rows.sum(), A)]
    check_ways([M, A], outputs, [RNG.normal(size=(3, 4)), 0.5], rtol=1e-10)


@pytest.mark.parametrize("a", [0.5, -0.5])
def test_on_a_side_of_a_branch(a):
    other = scan(lambda now: now * 2, sequences=[X[:N]])
    either = ifelse(A > 0.1, series(X, A), other)
    total = ifelse(A > 0.1, series(X, A).sum(), (X * A).sum())
    outputs = [either, total, *pytensor.grad(total, [A, X])]
    check_ways([X, A, N], outputs, [RNG.normal(size=5), a, 3], rtol=1e-10)


def test_for_each_of_a_batch():
    x = pt.dvector(shape=(5,))
    batch = pt.dmatrix(shape=(3, 5))
    [traces] = vectorize_graph([series(x, A)], replace={x: batch})
    outputs = [traces, traces[:, -1], *pytensor.grad(traces.sum(), [A, batch])]
    values = [RNG.normal(size=(3, 5)), 0.5]
    check_ways([batch, A], outputs, values, rtol=1e-10, forms=["rewritten"])


def test_three_in_each_other():
    cube = pt.dtensor3("cube")

    def rows(matrix, before):
        inner = scan(
            lambda row, state: state * 0.5 + series(row, A)[-1],
            sequences=[matrix],
            outputs_info=[ZERO],
        )
        return before * 0.5 + inner[-1]

    trace = scan(rows, sequences=[cube], outputs_info=[ZERO])
    outputs = [trace, *pytensor.grad(trace.sum(), [A, cube])]
    check_ways([cube, A], outputs, [RNG.normal(size=(2, 3, 4)), 0.5], rtol=1e-9)


def test_the_step_around_says_how_many_steps_there_are():
    counts, first = pt.lvector("counts"), pt.constant(np.float64(0.1))

    def grown(count, before):
        return scan(lambda state: state * 1.5 + 1, outputs_info=[before], n_steps=count)

    numbers = scan(
        lambda count, before: before + grown(count, before).sum(),
        sequences=[counts],
        outputs_info=[first],
    )
    rows = scan(
        lambda count, before: before + grown(count, before)[-1],
        sequences=[counts],
        outputs_info=[X],
    )
    check_ways([counts, X], [numbers, rows], [[1, 3, 2, 5], np.ones(3)], rtol=1e-9)


def test_a_loop_that_ends_early_in_each_step():
    def step(limit, before):
        inner = scan(
            lambda state: (state * 1.5 + 1, until(state > limit)),
            outputs_info=[before],
            n_steps=20,
        )
        return [before * 0.5 + inner[-1], inner.shape[0]]

    first = pt.constant(np.float64(0.1))
    outputs = scan(step, sequences=[X], outputs_info=[first, None])
    check_ways([X], outputs, [[1.0, 30.0, -2.0, 50.0]], rtol=1e-9)


def test_sequences_that_are_not_in_memory():
    trace = scan(
        lambda one, two, three, before, a: pt.tanh(before * a + one * two + three),
        sequences=[X[::-1], M.T[:, 0], pt.arange(4) * 1.5],
        outputs_info=[ZERO],
        non_sequences=[A * 2],
    )
    values = [RNG.normal(size=4), RNG.normal(size=(2, 4)), 0.5]
    check_ways([X, M, A], [trace, pytensor.grad(trace.sum(), X)], values, rtol=1e-10)


def test_sequences_that_are_packed():
    columns = [pt.constant(RNG.normal(size=20)) for _ in range(12)]
    trace = scan(
        lambda *given: pt.tanh(sum(given[:-2]) * given[-1] + given[-2] * 0.5),
        sequences=columns,
        outputs_info=[ZERO],
        non_sequences=[A],
    )
    outputs = [trace, pytensor.grad(trace.sum(), A)]
    for one, other in zip(
        native_function([A], outputs)(0.3), stock([A], outputs, [0.3]), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-10)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint32", "uint64", "int16", "bool"])
def test_states_of_integers(dtype):
    x = TensorType(dtype, (None,))("x")
    trace = scan(
        lambda now, before: now ^ before if dtype == "bool" else (now + before).astype(dtype),
        sequences=[x],
        outputs_info=[pt.constant(np.array(1, dtype))],
    )
    check_ways([x], [trace, trace[-1], trace[-2:]], [np.arange(6).astype(dtype)], rtol=0)


def test_states_that_look_far_back():
    first = pt.dvector("first")
    trace = scan(
        lambda *before: sum(before) * 0.01 + 1,
        outputs_info=[{"initial": first, "taps": list(range(-60, 0))}],
        n_steps=N,
    )
    check_ways([first, N], [trace, trace[-1]], [RNG.normal(size=60), 5], rtol=1e-10)


def test_routines_in_a_step():
    matrix = pt.dmatrix("matrix")

    def step(before, matrix):
        return matrix @ before @ matrix.T + pt.linalg.inv(pt.eye(3) + before)

    trace = scan(step, outputs_info=[M], non_sequences=[matrix], n_steps=4)
    factors = scan(
        lambda before: pt.linalg.cholesky(before @ before.T + pt.eye(3)),
        outputs_info=[M],
        n_steps=4,
    )
    root = RNG.normal(size=(3, 3)) * 0.3
    outputs = [trace, trace[-1], factors[-1], pytensor.grad(trace[-1].sum(), matrix)]
    check_ways([M, matrix], outputs, [root @ root.T, root], rtol=1e-8)


@pytest.mark.skipif(
    sys.version_info < (3, 12), reason="PyTensor 3.0 leaves lengths to an op of each of a batch"
)
def test_batches_in_a_step():
    matrices, rows = pt.tensor("matrices", shape=(3, 2, 2)), pt.tensor("rows", shape=(3, 2))
    factors = scan(
        lambda before, one: pt.linalg.cholesky(one @ before @ one.mT + pt.eye(2)),
        outputs_info=[matrices],
        non_sequences=[matrices],
        n_steps=3,
    )
    solutions = scan(
        lambda before, one: pt.linalg.solve(one + 3 * pt.eye(2), before, b_ndim=1),
        outputs_info=[rows],
        non_sequences=[matrices],
        n_steps=3,
    )
    cost = factors[-1].sum() + solutions[-1].sum()
    outputs = [factors, factors[-1], solutions, pytensor.grad(cost, matrices)]
    root = RNG.normal(size=(3, 2, 2)) * 0.3
    values = [root @ root.transpose(0, 2, 1) + np.eye(2), RNG.normal(size=(3, 2))]
    check_ways([matrices, rows], outputs, values, rtol=1e-8, forms=["rewritten"])


@pytest.mark.skipif(
    sys.version_info < (3, 12), reason="PyTensor 3.0 leaves lengths to an op of each of a batch"
)
def test_a_scan_for_each_of_a_batch_in_a_step():
    x, cube = pt.dvector(shape=(5,)), pt.tensor("cube", shape=(2, 3, 5))

    def step(matrix, before):
        [last] = vectorize_graph([series(x, A)[-1]], replace={x: matrix})
        return before * 0.5 + last

    trace = scan(step, sequences=[cube], outputs_info=[pt.zeros(3, dtype="float64")])
    outputs = [trace, pytensor.grad(trace.sum(), A)]
    values = [RNG.normal(size=(2, 3, 5)), 0.5]
    check_ways([cube, A], outputs, values, rtol=1e-9, forms=["rewritten"])


def test_branches_in_a_step():
    def step(now, before):
        other = ifelse(before[0] > 0, before[::-1] * 2, before + 1)
        return ifelse(now > 0, pt.tanh(before * now), other)

    trace = scan(step, sequences=[X], outputs_info=[M[0]])
    values = [[1.0, -1.0, -2.0, 0.5, -1.0], RNG.normal(size=(2, 3))]
    check_ways([X, M], [trace, trace[-1]], values, rtol=1e-10)


def test_places_in_a_step():
    places = pt.lvector("places")

    def step(place, before):
        before = pt.inc_subtensor(before[place], before[place - 1] * 0.5)
        before = pt.set_subtensor(before[pt.stack([place, place])], before[0])
        return pt.concatenate([before[1:], before[:1]])

    trace = scan(step, sequences=[places], outputs_info=[X])
    outputs = [trace, trace[-1], pytensor.grad(trace.sum(), X)]
    counts = scan(
        lambda place, before: pt.inc_subtensor(before[place], 1),
        sequences=[places],
        outputs_info=[pt.zeros(4, dtype="int64")],
    )
    outputs += [counts, counts[-1]]
    check_ways([places, X], outputs, [[0, 2, 1, 3, 0], RNG.normal(size=4)], rtol=1e-10)


def test_many_steps():
    x = RNG.normal(size=300_000)
    state = 0.0
    for now in x:
        state = np.tanh(state * 0.5 + now)
    trace = series(X, A)
    last, slope = native_function([X, A], [trace[-1], pytensor.grad(trace[-1], A)])(x, 0.5)
    assert abs(last - state) < 1e-12
    assert np.isfinite(slope)
