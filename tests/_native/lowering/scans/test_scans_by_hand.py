"""Scans that ``pytensor.scan`` never makes: any taps, any lengths of traces, all kinds at once."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import given
from pytensor.tensor.type import TensorType

from support.effort import examples
from support.native.lowering import check, raw_graph, require_near, run
from support.native.scans.ops import N, built, made, recipes
from support.native.ways import ways, ways_apart

S, M, K = pt.dvector("s"), pt.dmatrix("m"), pt.lscalar("k")


@given(recipe=recipes())
@examples(2)
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


@pytest.mark.parametrize("n_steps", [1, 2, 5])
@pytest.mark.parametrize("width", [None, 2])
def test_states_in_the_place_of_inputs(width, n_steps):
    state, inner = (S, pt.dscalars(2)) if width is None else (M, pt.dvectors(2))
    op = made(inner, [inner[0] - inner[1] * 2], mit_sot_in_slices=((-2, -1),))
    op.destroy_map = {0: [1]}
    values = np.arange(3.0) if width is None else np.arange(6.0).reshape(3, 2)
    out = op(N, state)
    check([N, state], [out, out.sum()], [n_steps, values], destroyed=[1], rewrites=False)
    check([N, state], [out[::-1]], [n_steps, values], rewrites=False)


@pytest.mark.parametrize("width", [None, 2])
def test_rows_before_those_that_a_step_is_given(width):
    # Stock Numba asserts against them, and the Python linker counts from the end.
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
    with pytest.raises(ValueError, match="a state of 2 rows, but needs 3"):
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
