"""Scans that ``pytensor.scan`` never makes: any taps, traces of any length, any kinds at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytensor.scan.op import Scan, ScanInfo
from pytensor.tensor.type import TensorType

from support.native_lowering import check, raw_graph, require_near, run
from support.native_ways import ways, ways_apart

N, S, M, K = pt.lscalar("n"), pt.dvector("s"), pt.dmatrix("m"), pt.lscalar("k")


def made(inputs, outputs, **kwargs):
    """Return a Scan that is written by hand."""
    info = {
        "n_seqs": 0,
        "mit_mot_in_slices": (),
        "mit_mot_out_slices": (),
        "mit_sot_in_slices": (),
        "sit_sot_in_slices": (),
        "n_nit_sot": 0,
        "n_untraced_sit_sot": 0,
        "n_non_seqs": 0,
        "as_while": False,
    }
    return Scan(inputs, outputs, ScanInfo(**{**info, **kwargs}), mode=None)


class Recipe(NamedTuple):
    """A Scan: what its step makes is a function of all that it is given."""

    mit_mots: list[tuple[list[int], list[int]]]
    mit_sots: list[list[int]]
    n_sit_sots: int
    n_results: int
    n_untraced: int
    n_sequences: int
    n_steps: int
    as_while: bool
    # How much longer than needed each trace is; the sizes of those of results come last.
    extra: list[int]
    picks: list[int]
    width: int | None
    is_static: bool
    is_whole: bool


def taps(least, most, **kwargs):
    return st.lists(st.integers(least, most), min_size=1, max_size=3, unique=True, **kwargs)


@st.composite
def recipes(draw):
    return Recipe(
        mit_mots=draw(st.lists(st.tuples(taps(-2, 2), taps(-2, 2)), max_size=2)),
        mit_sots=draw(st.lists(taps(-4, -1), max_size=2)),
        n_sit_sots=draw(st.integers(0, 2)),
        n_results=draw(st.integers(1, 2)),
        n_untraced=draw(st.integers(0, 2)),
        n_sequences=draw(st.integers(0, 1)),
        n_steps=draw(st.integers(0, 6)),
        as_while=draw(st.booleans()),
        extra=draw(st.lists(st.integers(0, 7), min_size=8, max_size=8)),
        picks=draw(st.lists(st.integers(0, 63), min_size=16, max_size=16)),
        width=draw(st.sampled_from([None, 3, 1])),
        is_static=draw(st.booleans()),
        is_whole=draw(st.booleans()),
    )


def step_outputs(xp, recipe, given, n_outs):
    """Return what a step makes: for PyTensor, or for NumPy."""
    outs = []
    for number, pick in zip(range(n_outs), recipe.picks, strict=False):
        one, other = given[pick % len(given)], given[pick // 7 % len(given)]
        kind = pick % 4
        if kind == 0:
            outs.append(xp.tanh(one - other * 0.5 + number))
        elif kind == 1:
            outs.append(one)
        elif kind == 2 and recipe.width is not None:
            outs.append(one[::-1])
        else:
            outs.append(one * 0.5 - other)
    return outs


def end_of(recipe, given):
    """Return whether a step is the last one, for PyTensor or for NumPy."""
    last = given[recipe.picks[-1] % len(given)]
    return (last if recipe.width is None else last[0]) > 0.6


class Trace(NamedTuple):
    reads: list[int]
    writes: list[int]
    rows: np.ndarray

    @property
    def n_before(self):
        return -min(0, *self.reads, 0)


def reference(recipe, traces, sizes, untraced, sequences):
    """Return the outputs of a Scan, by its definition: rows are taken modulo the size."""
    shape = () if recipe.width is None else (recipe.width,)
    states = [trace.rows.copy() for trace in traces]
    results = [np.zeros((size, *shape)) for size in sizes]
    n_done = 0
    for number in range(recipe.n_steps):
        inner = [one[number] for one in sequences]
        for state, trace in zip(states, traces, strict=True):
            inner += [state[(number + trace.n_before + tap) % len(state)] for tap in trace.reads]
        inner += untraced
        inner = [np.array(one) for one in inner]
        n_written = sum(len(trace.writes) for trace in traces)
        outs = step_outputs(np, recipe, inner, n_written + len(results) + len(untraced))
        end = end_of(recipe, inner) if recipe.as_while else False
        outs = [np.array(one) for one in outs]
        for state, trace in zip(states, traces, strict=True):
            for tap in trace.writes:
                state[(number + trace.n_before + tap) % len(state)] = outs.pop(0)
        for rows in results:
            rows[number % len(rows)] = outs.pop(0)
        untraced = outs
        n_done += 1
        if end:
            break
    n_mit_mots = len(recipe.mit_mots)
    found = states[:n_mit_mots]
    befores = [trace.n_before for trace in traces[n_mit_mots:]] + [0] * len(results)
    for rows, before in zip([*states[n_mit_mots:], *results], befores, strict=True):
        last = n_done + before
        if len(rows) < last:
            rows = np.roll(rows, -(last % len(rows)), axis=0)
        elif recipe.as_while:
            rows = rows[:last]
        else:
            rows[last:] = 0
        found.append(rows)
    return [*found, *untraced]


def built(recipe):
    """Return a graph with the Scan of a recipe, values for its inputs, and what is to come."""
    rng = np.random.default_rng(3)
    shape = () if recipe.width is None else (recipe.width,)
    n_steps = recipe.n_steps
    extra = list(recipe.extra)
    traces, inputs, values, outer = [], [], [], []
    every = [*recipe.mit_mots, *[(one, [0]) for one in recipe.mit_sots]]
    every += [([-1], [0])] * recipe.n_sit_sots

    def given(rows):
        value = np.asarray(rng.normal(size=rows))
        lengths = rows if recipe.is_static else [None] * len(rows)
        inputs.append(TensorType("float64", lengths)())
        values.append(value)
        return inputs[-1], value

    def length(size):
        """Return a length that may be known to be that of all steps."""
        more = size - n_steps
        return steps + more if recipe.is_whole and more >= 0 else size

    steps = N if not recipe.is_static else pt.constant(n_steps)
    for reads, writes in every:
        before = -min(0, *reads)
        least = max(before, *reads, *writes, *[-one for one in writes], 1)
        size = least + extra.pop()
        variable, value = given((size, *shape))
        traces.append(Trace(reads, writes, value))
        outer.append(variable + pt.zeros((length(size), *shape)))
    sizes = [extra.pop() or (1 if n_steps else 0) for _ in range(recipe.n_results)]
    untraced = [given(shape) for _ in range(recipe.n_untraced)]
    sequences = [given((n_steps, *shape)) for _ in range(recipe.n_sequences)]
    inner = [
        pt.tensor(dtype="float64", shape=tuple([n if recipe.is_static else None for n in shape]))
        for _ in range(len(sequences) + sum(len(one.reads) for one in traces) + len(untraced) + 1)
    ]
    constant = given(shape)
    n_outs = sum(len(one.writes) for one in traces) + len(sizes) + len(untraced)
    outs = step_outputs(pt, recipe, inner[:-1] or inner, n_outs)
    if recipe.as_while:
        outs.append(end_of(recipe, inner[:-1] or inner))
    op = made(
        inner,
        outs,
        n_seqs=len(sequences),
        mit_mot_in_slices=tuple([tuple(reads) for reads, _ in recipe.mit_mots]),
        mit_mot_out_slices=tuple([tuple(writes) for _, writes in recipe.mit_mots]),
        mit_sot_in_slices=tuple([tuple(one) for one in recipe.mit_sots]),
        sit_sot_in_slices=((-1,),) * recipe.n_sit_sots,
        n_nit_sot=len(sizes),
        n_untraced_sit_sot=len(untraced),
        n_non_seqs=1,
        as_while=recipe.as_while,
    )
    made_outs = op.make_node(
        steps,
        *[one for one, _ in sequences],
        *outer,
        *[one for one, _ in untraced],
        *[pt.as_tensor(length(size)) for size in sizes],
        constant[0],
    ).outputs
    first = [value for _, value in untraced]
    rows = [value for _, value in sequences]
    if inner[:-1]:
        expected = reference(recipe, traces, sizes, first, rows)
    else:
        expected = reference(recipe, traces, sizes, [constant[1]], rows)[:-1]
    if not recipe.is_static:
        inputs.append(N)
        values.append(np.int64(n_steps))
    return inputs, made_outs, values, expected


@given(recipe=recipes())
@settings(max_examples=50)
def test_all_kinds_of_states(recipe):
    if not (recipe.mit_mots or recipe.mit_sots or recipe.n_sit_sots or recipe.n_untraced):
        recipe = recipe._replace(n_sequences=1)
    inputs, outputs, values, expected = built(recipe)
    graph = raw_graph(inputs, outputs)
    found = ways(graph, values, "512", reassociates=True)
    if recipe.is_static:
        found += ways_apart(graph, values, "256")
    for outs in found:
        for at, (one, other) in enumerate(zip(outs, expected, strict=True)):
            require_near(one, np.asarray(other), f"output {at}", 1e-12)


@pytest.mark.parametrize("width", [None, 2])
def test_rows_before_those_that_a_step_is_given(width):
    # Stock Numba has an assertion against them, and the Python linker counts from the end.
    state, row = (S, pt.dscalar()) if width is None else (M, pt.dvector())
    op = made([row], [row + 1], mit_mot_in_slices=((0,),), mit_mot_out_slices=((-1,),))
    values = np.arange(4.0) if width is None else np.arange(8.0).reshape(4, 2)
    check([state], [op(state.shape[0], state)], [values], rewrites=False)


@pytest.mark.parametrize("row", [[False], [True]])
def test_the_end_is_known_before_a_step_writes(row):
    state, inner = TensorType("bool", (None, 1))(), TensorType("bool", (1,))()
    outs = [~inner, inner.dimshuffle()]
    op = made([inner], outs, sit_sot_in_slices=((-1,),), as_while=True)
    check([N, state], [op(N, state)], [5, np.array([row])], rewrites=False)


@pytest.mark.parametrize("n_rows", [0, 1, 3])
def test_no_steps_take_no_rows(n_rows):
    numbers, vectors = [pt.dscalar(), pt.dscalar()], [pt.dvector(), pt.dvector()]
    outs = [
        made(one, [one[0] * 2 + one[1]], mit_sot_in_slices=((-3, -1),))(N, state)
        for one, state in ((numbers, S), (vectors, M))
    ]
    check([N, S, M], outs, [0, np.ones(n_rows), np.ones((n_rows, 2))], rewrites=False)


def test_too_few_rows_for_a_step():
    inner = [pt.dscalar(), pt.dscalar()]
    op = made(inner, [inner[0] + inner[1]], mit_sot_in_slices=((-3, -1),))
    with pytest.raises(ValueError, match="a state of 2 rows and needs 3"):
        run(raw_graph([N, S], [op(N, S)]), [1, np.ones(2)])


@pytest.mark.parametrize(("length", "n_steps"), [(3, 2), (0, 2), (-1, 0), (3, 0)])
def test_lengths_that_a_step_computes(length, n_steps):
    now, number = pt.dscalar(), pt.lscalar()
    op = made([now, number], [pt.alloc(now, number)], n_seqs=1, n_nit_sot=1, n_non_seqs=1)
    [out] = run(raw_graph([N, S, K], [op(N, S, N, K)]), [n_steps, np.arange(4.0), length])
    expected = np.repeat(np.arange(float(n_steps))[:, None], max(length, 0), axis=1)
    np.testing.assert_array_equal(out, expected)


def test_a_negative_length_that_a_step_computes():
    now, number = pt.dscalar(), pt.lscalar()
    op = made([now, number], [pt.alloc(now, number)], n_seqs=1, n_nit_sot=1, n_non_seqs=1)
    with pytest.raises(ValueError, match="negative dimensions not allowed"):
        run(raw_graph([N, S, K], [op(N, S, N, K)]), [2, np.arange(4.0), -1])


def test_states_without_a_trace():
    a, b, n = pt.dvector(), pt.dvector(), pt.dscalar()
    op = made([a, b, n], [b[::-1], pt.set_subtensor(a[0], n), n + 1], n_untraced_sit_sot=3)
    first, second, number = pt.dvector(), pt.dvector(), pt.dscalar()
    outs = [*op(N, first, second, number), first + 1]
    for n_steps in (0, 1, 4):
        values = [n_steps, np.arange(3.0), np.ones(3), 5.0]
        check([N, first, second, number], outs, values, rewrites=False)


def test_a_state_without_a_trace_keeps_its_shape():
    a, first = pt.dvector(), pt.dvector()
    out = made([a], [a[:-1]], n_untraced_sit_sot=1)(N, first)
    graph = raw_graph([N, first], [out])
    assert run(graph, [0, np.ones(3)])[0].shape == (3,)
    with pytest.raises(NotImplementedError, match="changes from 3 to 2 elements"):
        run(graph, [2, np.ones(3)])
