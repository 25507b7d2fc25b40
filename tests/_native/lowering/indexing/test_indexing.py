"""Indexing against the Python linker: random arrays, indices and increments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.native import indexing_strategies as cases
from support.native.lowering import check, raw_graph, run


def _base(data: st.DataObject, **limits: int) -> tuple[cases.Case, Any, tuple[int, ...]]:
    case = cases.Case([], [])
    shape = data.draw(cases.shapes(**limits))
    value = cases.fill(shape, data.draw(st.sampled_from(cases.DTYPES)), seed=len(shape))
    return case, data.draw(cases.variables(case, value, "x")), shape


@given(st.data())
def test_slices_and_integers_read_the_same(data):
    case, x, shape = _base(data)
    out = x[data.draw(cases.basic_indices(case, shape))]
    check(case.inputs, [out], case.values)


@given(st.data())
def test_slices_of_views_read_the_same(data):
    case, x, shape = _base(data, least=2)
    view = x.T[::-1]
    out = view[data.draw(cases.basic_indices(case, shape[::-1]))]
    check(case.inputs, [out], case.values)


@given(st.data())
def test_index_arrays_and_masks_read_the_same(data):
    case, x, shape = _base(data)
    out = x[data.draw(cases.advanced_indices(case, shape))]
    check(case.inputs, [out], case.values)


def _write(
    data: st.DataObject, case: cases.Case, x: Any, indices: Any, *, stretches_unknown: bool = False
) -> Any:
    shape = case.values[0][cases.values_of(case, indices)].shape
    y = data.draw(cases.written(case, x.type.dtype, shape, stretches_unknown=stretches_unknown))
    is_set = data.draw(st.booleans(), label="set")
    return pt.set_subtensor(x[indices], y) if is_set else pt.inc_subtensor(x[indices], y)


@given(st.data())
def test_slices_and_integers_write_the_same(data):
    case, x, shape = _base(data)
    indices = data.draw(cases.basic_indices(case, shape))
    out = _write(data, case, x, indices)
    check(case.inputs, [out, x[:1]], case.values)


@given(st.data())
def test_values_are_stretched_at_run_time(data):
    case, x, shape = _base(data)
    indices = data.draw(cases.basic_indices(case, shape))
    out = _write(data, case, x, indices, stretches_unknown=True)
    # Rewrites may replace it by an addition, which does not broadcast at run time.
    check(case.inputs, [out], case.values, rewrites=False)


@given(st.data())
def test_index_arrays_and_masks_write_the_same(data):
    case, x, shape = _base(data)
    indices = data.draw(cases.advanced_indices(case, shape))
    out = _write(data, case, x, indices)
    check(case.inputs, [out, x[:1]], case.values)


def _in_place(out: Any, **changes: Any) -> Any:
    """Return the output of an op that overwrites its first input."""
    op = out.owner.op
    props = {name: getattr(op, name) for name in op.__props__}
    return type(op)(**{**props, "inplace": True, **changes})(*out.owner.inputs)


@given(st.data(), st.booleans(), st.booleans())
def test_in_place_writes_the_same(data, is_advanced, is_input):
    case, x, shape = _base(data)
    kind = cases.advanced_indices if is_advanced else cases.basic_indices
    indices = data.draw(kind(case, shape))
    base = x if is_input else pt.switch(pt.eq(x, x), x, x)
    out = _in_place(_write(data, case, base, indices))
    check(case.inputs, [out], case.values, destroyed=(0,) if is_input else ())


@given(st.data())
def test_increments_that_ignore_duplicates_are_the_same(data):
    case, x, shape = _base(data)
    indices = data.draw(cases.advanced_indices(case, shape))
    shape = case.values[0][cases.values_of(case, indices)].shape
    y = data.draw(cases.written(case, x.type.dtype, shape, stretches_unknown=False))
    out = pt.inc_subtensor(x[indices], y, ignore_duplicates=True)
    check(case.inputs, [out], case.values)


@given(st.data())
def test_nonzero_is_the_same(data):
    case, x, _ = _base(data)
    case.values[0] = np.where(case.values[0] > 1, case.values[0], 0).astype(x.type.dtype)
    check(case.inputs, list(x.nonzero()), case.values)


def test_parts_that_overlap_are_read_before_they_are_written():
    x = pt.vector("x", shape=(6,))
    value = np.arange(6.0)
    for into, out_of in ((slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None))):
        for write in (pt.set_subtensor, pt.inc_subtensor):
            written = write(x[into], x[out_of])
            out = _in_place(written, destroyhandler_tolerate_aliased=((0, 1),))
            check([x], [out], [value], destroyed=(0,))


def test_what_index_arrays_read_from_masks_is_read_in_one_pass():
    x, mask = pt.vector("x"), pt.vector("mask", dtype="bool")
    out = pt.exp(x[mask]) + 1
    value = np.array([1.0, -2.0, 3.0, 0.5])
    check([x, mask], [out], [value, value > 0])
    check([x, mask], [out], [value, value > 9])


def test_indexing_that_numba_mode_fuses_is_the_same():
    x, y, m = pt.vector("x"), pt.vector("y"), pt.matrix("m")
    at, to = pt.vector("at", dtype="int64"), pt.vector("to", dtype="int32")
    values = [np.arange(5.0), np.ones(3), np.arange(12.0).reshape(3, 4), [-1, 2, 2], [3, -3]]
    for out in (
        pt.sqrt(x[at]) * y,
        (x[at] * y).sum(),
        pt.inc_subtensor(x[at], pt.sqrt(y)),
        pt.set_subtensor(m[:, to], pt.sqrt(m[:, to]) + 1),
        pt.sqrt(m[at][:, to]),
    ):
        check([x, y, m, at, to], [out], values)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_unsigned_numbers_are_never_negative(bits):
    x, at = pt.vector("x"), pt.scalar("at", dtype=f"uint{bits}")
    for number in (0, 2, 2 ** (bits - 1), 2**bits - 1):
        check([x, at], [x[at:], x[:at]], [np.arange(3.0), number], rewrites=False)


def test_values_of_fewer_axes_are_written_to_each_row():
    x, y, m = pt.vector("x"), pt.vector("y"), pt.matrix("m")
    at = pt.vector("at", dtype="int64")
    value = np.arange(12.0).reshape(3, 4)
    for write in (pt.inc_subtensor, pt.set_subtensor):
        check([m, y, at], [write(m[at], y)], [value, np.arange(4.0), [2, 0, 2]])
        check([m, y, at], [write(m[:, at], y)], [value, np.arange(3.0), [2, 0, 2]])
    # np.add.at reads other elements here.
    [out] = run(
        raw_graph([x, y], [pt.inc_subtensor(x[np.array([[0, 1], [0, 0]])], y)]),
        [[0.5, 0.25], [1.0, 2.0]],
    )
    assert out.tolist() == [4.5, 2.25]


def test_a_scalar_base_is_written():
    x = pt.scalar("x")
    check([x], [pt.inc_subtensor(x[()], 2.0), pt.set_subtensor(x[()], 2.0)], [1.5])
