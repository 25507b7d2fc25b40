"""Hand-written Scans, and their results by the definition of the op.

``pytensor.scan`` makes few of these: taps are arbitrary, traces have any length, and all kinds
occur at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from hypothesis import strategies as st
from pytensor.scan.op import Scan, ScanInfo
from pytensor.tensor.type import TensorType

N = pt.lscalar("n")


def made(inputs, outputs, **kwargs):
    """Return a hand-written Scan."""
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
    """A Scan whose step's results depend on all of its arguments."""

    mit_mots: list[tuple[list[int], list[int]]]
    mit_sots: list[list[int]]
    n_sit_sots: int
    n_results: int
    n_untraced: int
    n_sequences: int
    n_steps: int
    as_while: bool
    # The extra length of each trace; the sizes of the traces of results come last.
    extra: list[int]
    picks: list[int]
    width: int | None
    is_static: bool
    is_whole: bool
    is_in_place: bool


def _taps(least, most, **kwargs):
    return st.lists(st.integers(least, most), min_size=1, max_size=3, unique=True, **kwargs)


@st.composite
def recipes(draw):
    """Draw a recipe."""
    return Recipe(
        mit_mots=draw(st.lists(st.tuples(_taps(-2, 2), _taps(-2, 2)), max_size=2)),
        mit_sots=draw(st.lists(_taps(-4, -1), max_size=2)),
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
        is_in_place=draw(st.booleans()),
    )


def _step_outputs(xp, recipe, given, n_outs):
    """Return the results of a step, for PyTensor or for NumPy."""
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


def _end_of(recipe, given):
    """Return whether a step is the last one, for PyTensor or for NumPy."""
    last = given[recipe.picks[-1] % len(given)]
    return (last if recipe.width is None else last[0]) > 0.6


class _Trace(NamedTuple):
    """The rows of a state that a step reads and writes, and their initial values."""

    reads: list[int]
    writes: list[int]
    rows: np.ndarray

    @property
    def n_before(self):
        return -min(0, *self.reads, 0)


def _reference(recipe, traces, sizes, untraced, sequences):
    """Return the outputs of a Scan by its definition: rows are taken modulo the size."""
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
        outs = _step_outputs(np, recipe, inner, n_written + len(results) + len(untraced))
        end = _end_of(recipe, inner) if recipe.as_while else False
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
    """Return a graph with the Scan of a recipe, values for its inputs, and the expected results."""
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
        """Return a length that may be known to equal the number of steps."""
        more = size - n_steps
        return steps + more if recipe.is_whole and more >= 0 else size

    steps = N if not recipe.is_static else pt.constant(n_steps)
    for reads, writes in every:
        before = -min(0, *reads)
        least = max(before, *reads, *writes, *[-one for one in writes], 1)
        size = least + extra.pop()
        variable, value = given((size, *shape))
        traces.append(_Trace(reads, writes, value))
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
    outs = _step_outputs(pt, recipe, inner[:-1] or inner, n_outs)
    if recipe.as_while:
        outs.append(_end_of(recipe, inner[:-1] or inner))
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
    if recipe.is_in_place:
        # The states are sums, which nothing else reads.
        op.destroy_map = {at: [1 + len(sequences) + at] for at in range(len(outer))}
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
        expected = _reference(recipe, traces, sizes, first, rows)
    else:
        expected = _reference(recipe, traces, sizes, [constant[1]], rows)[:-1]
    if not recipe.is_static:
        inputs.append(N)
        values.append(np.int64(n_steps))
    return inputs, made_outs, values, expected
