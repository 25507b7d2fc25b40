"""The loops that indexing is lowered to, and refused nodes."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.program.model import Check, For, Load, Op, Store
from support.native.lowering import lowered, raw_graph


def _body(inputs, output, destroyed=()):
    """Return the statements of a program's outermost block, without operations."""
    program = lowered(raw_graph(inputs, [output]), destroyed=destroyed).program
    kinds = (For, Check)
    return [statement for statement in program.body if isinstance(statement, kinds)]


def _kinds(loop):
    return [type(statement) for statement in loop.body if not isinstance(statement, Op)]


X, Y = pt.vector("x", shape=(9,)), pt.vector("y", shape=(4,))
K = pt.vector("k", dtype="int64", shape=(4,))


def test_a_gather_is_a_loop_that_checks_and_one_that_loads_and_stores():
    checks, check, gather = _body([X, K], X[K])
    assert _kinds(checks) == [Load]
    assert isinstance(check, Check)
    assert _kinds(gather) == [Load, Load, Store]
    assert [one.is_guarded for one in gather.body if isinstance(one, Load)] == [False, True]


def test_constant_indices_are_checked_before():
    [gather] = _body([X], X[np.array([1, -1, 5, 2])])
    assert _kinds(gather) == [Load, Load, Store]
    assert not any(one.is_guarded for one in gather.body if isinstance(one, Load))
    assert not any(one.name == "select" for one in gather.body if isinstance(one, Op))


def test_constant_indices_of_even_steps_are_not_loaded():
    [gather] = _body([X], X[np.array([7, 5, 3])])
    assert _kinds(gather) == [Load, Store]


def test_indices_of_a_dtype_that_fits_are_not_checked():
    x, k = pt.vector("x", shape=(300,)), pt.vector("k", dtype="uint8")
    [gather] = _body([x, k], x[k])
    assert _kinds(gather) == [Load, Load, Store]


def test_what_a_mask_selects_is_found_once():
    positions, gather = _body([X], X[X > 0])[-2:]
    assert len(positions.carries) == 1
    assert _kinds(gather) == [Load, Load, Store]


def test_an_increment_in_place_is_one_loop():
    node = pt.inc_subtensor(X[K], Y).owner
    props = {name: getattr(node.op, name) for name in node.op.__props__} | {"inplace": True}
    out = type(node.op)(**props)(*node.inputs)
    checks, check, scatter = _body([X, Y, K], out, destroyed=(0,))
    assert (type(checks), type(check)) == (For, Check)
    assert _kinds(scatter) == [Load, Load, Store]
    assert scatter.body[-1].combiner == "add"


def test_an_increment_of_zeros_fills_and_adds():
    checks, check, fill, scatter = _body([Y, K], pt.inc_subtensor(pt.zeros(9)[K], Y))[-4:]
    assert _kinds(fill) == [Store]
    assert (type(checks), type(check)) == (For, Check)
    assert _kinds(scatter) == [Load, Load, Store]


def test_slices_from_the_front_and_to_the_end_are_known_to_be_equally_long():
    x = pt.vector("x")
    for one, other in ((x[1:], x[:-1]), (x[2:], x[1:-1]), (x[-2:], x[:2])):
        [loop] = _body([x], one - other)
        assert _kinds(loop) == [Load, Load, Store]


def test_rows_are_gathered_with_their_index_read_outside():
    m, k = pt.matrix("m"), pt.vector("k", dtype="int32")
    *_, gather = _body([m, k], m[k])
    assert _kinds(gather) == [Load, For]


@pytest.mark.parametrize(
    ("out", "why"),
    [
        (pt.inc_subtensor(pt.fvector("x")[:2], 1), None),
        (pt.vector("x", dtype="complex128")[1:], "complex128"),
    ],
)
def test_refusals(out, why):
    found = lower.refusal(out.owner)
    assert found is None if why is None else why in found


def test_values_are_refused_that_are_computed_in_another_dtype():
    x, y, at = pt.fvector("x"), pt.dvector("y"), pt.constant(np.array([1, 2]))
    ints = pt.lvector("ints")
    node = pt.inc_subtensor(x[at], x[:2]).owner
    op = node.op
    setting = pt.set_subtensor(x[at], x[:2]).owner.op
    index = node.inputs[2]
    assert lower.refusal(op.make_node(x, y, index)) == "values of float64 written to float32"
    assert lower.refusal(op.make_node(ints, y, index)) == "values of float64 written to int64"
    assert lower.refusal(setting.make_node(x, y, index)) is None
    assert lower.refusal(setting.make_node(ints, y, index)) is not None
    assert lower.refusal(op.make_node(x, pt.fmatrix("z"), index)) is not None
