"""Scan: all kinds of states, ring buffers, loops that end early, gradients, nested scans."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.scan import until
from pytensor.scan.op import Scan, ScanInfo

from support.native.lowering import check, check_failure, raw_graph, run, stock
from support.native.ways import check_ways

RNG = np.random.default_rng(31)


def scan(fn, **kwargs):
    return pytensor.scan(fn, return_updates=False, **kwargs)


def zero(number=0.0):
    return pt.constant(np.float64(number))


@pytest.mark.parametrize("n", [1, 2, 7])
def test_single_numbers(n):
    x, a = pt.vector("x"), pt.scalar("a")
    trace = scan(
        lambda now, before, a: pt.tanh(before * a + now),
        sequences=[x],
        outputs_info=[zero(0.5)],
        non_sequences=[a],
    )
    cost = (trace**2).sum()
    outputs = [trace, trace[-1], pytensor.grad(cost, a), pytensor.grad(cost, x)]
    check([x, a], outputs, [RNG.normal(size=n), 0.7], rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_vectors_and_matrices(n):
    matrix, first, steps = pt.matrix("matrix"), pt.vector("first"), pt.iscalar("steps")
    trace = scan(
        lambda before, matrix: pt.tanh(matrix @ before),
        outputs_info=[first],
        non_sequences=[matrix],
        n_steps=steps,
    )
    outputs = [trace[-1], trace, pytensor.grad(trace[-1].sum(), matrix)]
    values = [RNG.normal(size=(4, 4)), RNG.normal(size=4), n]
    check([matrix, first, steps], outputs, values, rtol=1e-12)


@given(
    taps=st.lists(st.integers(-4, -1), min_size=1, max_size=3, unique=True),
    n=st.integers(1, 6),
    keep=st.sampled_from(["all", "last", "three"]),
    width=st.sampled_from([None, 1, 3]),
)
def test_states_that_look_back(taps, n, keep, width):
    n_before = -min(taps)
    first = pt.vector("first") if width is None else pt.matrix("first")
    trace = scan(
        lambda *states: sum(0.5 * state for state in states) + 1,
        outputs_info=[{"initial": first, "taps": taps}],
        n_steps=n,
    )
    kept = {"all": trace, "last": trace[-1], "three": trace[-3:]}[keep]
    shape = (n_before,) if width is None else (n_before, width)
    outputs = [kept, pytensor.grad(kept.sum(), first)]
    check([first], outputs, [RNG.normal(size=shape)], rtol=1e-12)


def test_results_without_a_state():
    x, steps = pt.matrix("x"), pt.iscalar("steps")
    rows, sums = scan(lambda row: [pt.exp(row), row.sum()], sequences=[x], n_steps=steps)
    check([x, steps], [rows, sums, rows[-2:]], [RNG.normal(size=(5, 3)), 4], rtol=1e-12)
    assert [
        out.shape for out in run(raw_graph([x, steps], [rows, sums]), [np.ones((5, 3)), 0])
    ] == [
        (0, 3),
        (0,),
    ]


@pytest.mark.parametrize("limit", [0.5, 3.0, 1e9])
def test_a_loop_that_ends_early(limit):
    top, first = pt.scalar("top"), pt.vector("first")
    trace, numbers = scan(
        lambda before: ([before * 2, before.sum()], until(before.sum() > top)),
        outputs_info=[first, None],
        n_steps=6,
    )
    outputs = [trace, trace[-1], numbers, numbers[-1]]
    check([top, first], outputs, [limit, np.array([0.25, 0.5])], rtol=1e-12)


def test_several_states_that_read_each_other():
    a, b = pt.vector("a"), pt.vector("b")
    traces = scan(lambda one, other: [one + other, one - other], outputs_info=[a, b], n_steps=5)
    kept = [trace[-1] for trace in traces]
    outputs = [*kept, *traces, *pytensor.grad(kept[0].sum() * 2 + kept[1].sum(), [a, b])]
    check([a, b], outputs, [RNG.normal(size=3), RNG.normal(size=3)], rtol=1e-12)


def test_only_the_last_state_is_kept_where_states_read_each_other():
    a, b = pt.vector("a"), pt.vector("b")
    traces = scan(
        lambda one, other: [one + other, one[::-1] - other], outputs_info=[a, b], n_steps=5
    )
    check([a, b], [trace[-1] for trace in traces], [np.arange(3.0), np.ones(3)], rtol=1e-12)


def test_truncated_gradients():
    x, a = pt.vector("x"), pt.scalar("a")
    trace = scan(
        lambda now, before, a: pt.sin(before * a + now),
        sequences=[x],
        outputs_info=[zero(0.1)],
        non_sequences=[a],
        truncate_gradient=3,
    )
    check([x, a], [pytensor.grad(trace[-1], a)], [RNG.normal(size=8), 0.9], rtol=1e-12)


def test_a_scan_inside_of_a_scan():
    x, a = pt.matrix("x"), pt.scalar("a")

    def outer(row, before, a):
        inner = scan(
            lambda now, state, a: pt.tanh(state * a + now),
            sequences=[row],
            outputs_info=[before],
            non_sequences=[a],
        )
        return inner[-1]

    trace = scan(outer, sequences=[x], outputs_info=[zero()], non_sequences=[a])
    outputs = [trace, pytensor.grad(trace.sum(), a), pytensor.grad(trace.sum(), x)]
    check([x, a], outputs, [RNG.normal(size=(3, 4)), 0.6], rtol=1e-12)


def test_integers_and_masks():
    x = pt.lvector("x")
    trace, even = scan(
        lambda now, before: [before + now, pt.eq(now % 2, 0)],
        sequences=[x],
        outputs_info=[pt.constant(np.int64(3)), None],
    )
    check([x], [trace, even], [np.arange(6)])


def test_a_sequence_read_at_several_places():
    x = pt.vector("x")
    sums = scan(
        lambda before, now, after: before * now + after,
        sequences=[{"input": x, "taps": [-1, 0, 1]}],
    )
    check([x], [sums, pytensor.grad((sums**2).sum(), x)], [RNG.normal(size=7)], rtol=1e-12)


def test_a_negative_number_of_steps():
    first, steps = pt.vector("first"), pt.lscalar("steps")
    # Not rewritten: rewriting reverses a Scan of unknown direction.
    trace = scan(lambda before: before * 2, outputs_info=[first], n_steps=steps)
    with pytest.raises((IndexError, ValueError, AssertionError)):
        run(raw_graph([first, steps], [trace]), [np.ones(2), -3])


def test_a_sequence_that_is_too_short():
    x, steps = pt.matrix("x"), pt.iscalar("steps")
    sums = scan(lambda row: row.sum(), sequences=[x], n_steps=steps)
    check_failure(
        [x, steps],
        [sums],
        [np.ones((3, 2)), 5],
        ValueError,
        "Sequence 0 has shape (3, 2) but the Scan's required number of steps is 5",
    )


def test_work_that_a_step_overwrites_is_its_own():
    first = pt.vector("first")

    def step(before):
        return pt.set_subtensor(before[0], before.sum()) * 0.5

    trace = scan(step, outputs_info=[first], n_steps=4)
    outputs = [trace, trace[-1], pytensor.grad(trace.sum(), first)]
    check([first], outputs, [RNG.normal(size=3)], rtol=1e-12)


def test_stock_has_no_other_shape_for_no_steps():
    first = pt.vector("first")
    trace = scan(lambda before: before * 2, outputs_info=[first], n_steps=0)
    outs = run(raw_graph([first], [trace]), [np.ones(2)])
    expected = stock([first], [trace], [np.ones(2)])
    assert [one.shape for one in outs] == [one.shape for one in expected]


def made(inputs, outputs, *, mit_mot=((), ()), sit_sot=0, nit_sot=0, n_seqs=0):
    """Return a hand-written Scan."""
    info = ScanInfo(
        n_seqs=n_seqs,
        mit_mot_in_slices=mit_mot[0],
        mit_mot_out_slices=mit_mot[1],
        mit_sot_in_slices=(),
        sit_sot_in_slices=((-1,),) * sit_sot,
        n_nit_sot=nit_sot,
        n_untraced_sit_sot=0,
        n_non_seqs=0,
        as_while=False,
    )
    return Scan(inputs, outputs, info, mode=None)


def test_only_the_end_needs_a_state():
    start, x = pt.scalar("start"), pt.scalar("x")
    _, counts = scan(
        lambda k, n: ([k * 2, n + 1], until(k > 20)), outputs_info=[start, x], n_steps=9
    )
    check_ways([start, x], [counts[-1], counts.shape[0]], [1.0, 0.5], rtol=1e-12)


def test_results_of_which_only_the_step_around_knows_the_length():
    x, k = pt.vector("x"), pt.lscalar("k")

    def outer(now, k):
        rows = scan(lambda i: pt.arange(k) * i + now, sequences=[pt.arange(3)], strict=False)
        return rows.sum()

    sums = scan(outer, sequences=[x], non_sequences=[k])
    check([x, k], [sums], [np.arange(4.0), 2])


@pytest.mark.parametrize(("rows", "kind"), [(0, IndexError), (-1, ValueError)])
def test_results_need_rows(rows, kind):
    x, size, steps, one = pt.dvector("x"), pt.lscalar("size"), pt.lscalar("steps"), pt.dscalar()
    trace = made([one], [one * 2], nit_sot=1, n_seqs=1)(steps, x, size)
    with pytest.raises(kind, match="rows for the results"):
        run(raw_graph([x, steps, size], [trace]), [np.ones(4), 3, rows])


@pytest.mark.parametrize("taps", [((0, 1), (0,)), ((-1, 0), (0,))])
def test_rows_behind_that_of_a_step(taps):
    state, inner = pt.dvector("state"), [pt.dscalar() for _ in taps[0]]
    op = made(inner, [sum(inner) + 1], mit_mot=((taps[0],), (taps[1],)))
    check([state], [op(state.shape[0], state)], [np.arange(5.0)], rewrites=False)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_results_that_are_views_of_rows_that_are_written(rows):
    a, b = pt.tensor("a", shape=(rows, 3)), pt.tensor("b", shape=(5, 3))
    x, y = pt.tensor("x", shape=(3,)), pt.tensor("y", shape=(3,))
    outs = made([x, y], [x + 1, x[::-1]], sit_sot=2)(pt.constant(4), a, b)
    values = np.arange(3.0 * rows).reshape(rows, 3), np.zeros((5, 3))
    check([a, b], outs, values, rewrites=False)
