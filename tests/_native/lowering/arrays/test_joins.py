"""Join, Split, and writing joins."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.tensor.basic import Split

from pytensor_fuse._joins.ops.join import WriteJoin
from pytensor_fuse._joins.ops.layout import SHAPE_MISMATCH
from pytensor_fuse._native.lowering.arrays.joins import _MISMATCH
from support.joins.ops import split_and_join
from support.joins.outcomes import always_worth_it
from support.native.lowering import check, check_failure, require_same, run, stock, text
from support.switching import switched


def split(x, sizes, n: int, axis: int = 0):
    """Return the outputs of a Split, in the form of this version of PyTensor."""
    if "axis" in Split.__props__:
        return Split(n, axis)(x, sizes, return_list=True)
    return Split(n)(x, axis, sizes, return_list=True)


@given(
    st.lists(st.sampled_from([0, 1, 2, 5]), min_size=1, max_size=4),
    st.integers(1, 3),
    st.integers(0, 2),
    st.data(),
)
def test_join(lengths: list[int], ndim: int, axis: int, data: st.DataObject) -> None:
    axis %= ndim
    parts, values = [], []
    for number, length in enumerate(lengths):
        dtype = data.draw(st.sampled_from(["float64", "float32", "int8"]))
        shape = [3, 2, 9][:ndim]
        shape[axis] = length
        known = [data.draw(st.sampled_from([None, one])) for one in shape]
        parts.append(pt.tensor(f"x{number}", dtype=dtype, shape=known))
        values.append(np.arange(np.prod(shape)).reshape(shape) + number)
    outs = [pt.join(axis, *parts), pt.join(axis, *[pt.sqr(part) for part in parts]) + 1]
    check(parts, outs, values, rewrites=False)


def test_join_in_a_rewritten_graph() -> None:
    x, y, a = pt.vector("x"), pt.matrix("y"), pt.scalar("a")
    outs = [
        pt.concatenate([pt.exp(x), y.sum(axis=0), pt.stack([a, a * 2])]),
        pt.stack([x, x + a]),
        pt.join(1, y, y[:, :1] * a),
        pt.join(0, x),
        pt.concatenate([[a], x]),
    ]
    check([x, y, a], outs, [np.arange(3.0), np.arange(6.0).reshape(2, 3), 0.5])


def test_each_part_is_stored_by_a_loop_of_its_own() -> None:
    x, y = pt.vectors("xy")
    program = text([x, y], [pt.join(0, x, y)])
    assert program.count("for ") == 2
    # The number of elements may exceed the largest integer.
    assert program.count("check") == 1


def test_parts_that_do_not_match() -> None:
    x, y = pt.matrices("xy")
    values = [np.ones((2, 3)), np.ones((2, 4))]
    message = _MISMATCH.replace("{axis}", "1")
    check_failure([x, y], [pt.join(0, x, y)], values, ValueError, message)
    check([x, y], [pt.join(1, x, y)], values)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.integers(0, 1), st.booleans())
def test_split(sizes: list[int], axis: int, is_known: bool) -> None:
    n = len(sizes)
    s = pt.constant(np.array(sizes)) if is_known else pt.vector("s", dtype="int64", shape=(n,))
    shape = (sum(sizes), 2) if axis == 0 else (2, sum(sizes))
    x = pt.matrix("x")
    data = np.arange(2.0 * sum(sizes)).reshape(shape)
    outs = split(x, s, n, axis)
    outs += [out * 2 for out in outs]
    if is_known:
        check([x], outs, [data], rewrites=False)
    else:
        check([x, s], outs, [data, sizes], rewrites=False)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([1, 2, 3], "Split sizes sum to 6; expected 5"),
        ([7, -3, 1], "Split sizes cannot be negative"),
    ],
)
def test_splits_that_are_not_possible(sizes: list[int], message: str) -> None:
    x, s = pt.vector("x"), pt.vector("s", dtype="int64", shape=(3,))
    check_failure([x, s], split(x, s, 3), [np.ones(5), sizes], ValueError, message)


# Writing joins


def test_write_ops_as_they_are() -> None:
    x, y = pt.vectors("xy")
    out = split_and_join([x, y], (True, False))
    values = [np.arange(3.0), np.arange(2.0)]
    check([x, y], [out], values, rewrites=False)


@pytest.mark.parametrize("axis", [0, 1])
def test_writing_joins_of_the_pass(axis: int) -> None:
    x, y, a, n = pt.matrix("x"), pt.matrix("y"), pt.scalar("a"), pt.lscalar("n")
    streams = [pt.exp(x), y * a, pt.alloc(a, n, 2) if axis == 0 else pt.alloc(a, 2, n), y]
    out = pt.join(axis, *streams)
    values = [np.ones((2, 2)), np.arange(4.0).reshape(2, 2), 0.5, 3]
    with switched(joins=True), always_worth_it():
        f = pytensor.function([x, y, a, n], out, mode="NUMBA")
    assert any(isinstance(node.op, WriteJoin) for node in f.maker.fgraph.apply_nodes)
    [expected] = stock([x, y, a, n], [out], values)
    [found] = run(f.maker.fgraph, values)
    require_same(found, expected, "output")


def test_writing_joins_of_raveled_streams() -> None:
    x, y = pt.matrix("x"), pt.vector("y")
    out = pt.concatenate([pt.exp(x).ravel(), pt.sqr(y), y])
    values = [np.arange(6.0).reshape(2, 3), np.arange(3.0)]
    with switched(joins=True), always_worth_it():
        f = pytensor.function([x, y], out, mode="NUMBA")
    assert any(isinstance(node.op, WriteJoin) for node in f.maker.fgraph.apply_nodes)
    [expected] = stock([x, y], [out], values)
    require_same(run(f.maker.fgraph, values)[0], expected, "output")


def test_writing_joins_that_do_not_match() -> None:
    x, y = pt.matrices("xy")
    out = split_and_join([x, y], (True, True), axis=0)
    values = [np.ones((2, 3)), np.ones((2, 4))]
    with pytest.raises(ValueError, match=SHAPE_MISMATCH):
        check([x, y], [out], values, rewrites=False)
