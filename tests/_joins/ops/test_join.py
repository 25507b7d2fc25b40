"""`WriteSplit` and `WriteJoin` join whatever they are given, and copy nothing that is in place."""

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FunctionGraph

from pytensor_fuse._joins.ops.join import WriteJoin
from pytensor_fuse._joins.ops.layout import JoinLayout, dim_length, static_length
from pytensor_fuse._joins.ops.split import WriteSplit
from support.joins.ops import BACKENDS, compile_, doubled, mode, split_and_join


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("written", [(True, True), (True, False), (False, True)])
def test_joins_along_any_axis(name, axis, written):
    x, y = pt.tensor3("x"), pt.tensor3("y")
    f = compile_([x, y], split_and_join([x, y], written, axis), name)
    rng = np.random.default_rng(0)
    for n in (3, 1, 0, 4):
        shapes = [[2, 3, 4], [2, 3, 4]]
        shapes[1][axis] = n
        values = [rng.random(shape) for shape in shapes]
        want = [v * 2 if w else v for v, w in zip(values, written, strict=True)]
        result = f(*values)
        np.testing.assert_array_equal(result, np.concatenate(want, axis=axis))
        assert result.flags.c_contiguous


@pytest.mark.parametrize("name", BACKENDS)
def test_empty_results(name):
    x, y = pt.vectors("xy")
    f = compile_([x, y], split_and_join([x, y], (True, True)), name)
    for n, m in ((0, 0), (0, 2), (2, 0)):
        np.testing.assert_array_equal(f(np.ones(n), np.ones(m)), np.full(n + m, 2.0))


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("axis", [0, 1])
def test_shapes_that_do_not_match_are_refused(name, axis):
    x, y = pt.matrices("xy")
    f = compile_([x, y], split_and_join([x, y], (True, True), axis), name)
    with pytest.raises(ValueError, match="must match"):
        f(np.ones((2, 3)), np.ones((3, 2)))


@pytest.mark.parametrize("name", BACKENDS)
def test_streams_of_other_dimensions_are_raveled(name):
    x, y, z = pt.matrix("x"), pt.vector("y"), pt.scalar("z")
    shapes = ((dim_length(0, 0), dim_length(0, 1)), (dim_length(1, 0),), (static_length(1),))
    written = (True, True, False)
    split = WriteSplit(JoinLayout(0, 1, "float64", shapes, written))
    memory, first, second = split.make_node(x, y).outputs
    join = WriteJoin(0, "float64", (None,), written)
    ready = [doubled(x, first), doubled(y, second), z.dimshuffle("x")]
    f = compile_([x, y, z], join.make_node(memory, *ready).outputs[0], name)
    a, b = np.arange(6.0).reshape(2, 3), np.arange(4.0)
    for value in (a, a.T, a[::-1]):
        want = np.concatenate([2 * value.ravel(), 2 * b, [7.0]])
        np.testing.assert_array_equal(f(value, b, 7.0), want)


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("moved", [0, 1])
def test_streams_that_were_moved_are_copied(name, moved):
    # As a pass could do that makes a kernel work out of place.
    x, y = pt.vectors("xy")
    written = (True, True)
    shapes = ((dim_length(0, 0),), (dim_length(1, 0),))
    split = WriteSplit(JoinLayout(0, 1, "float64", shapes, written))
    memory, *parts = split.make_node(x, y).outputs
    ready = [doubled(v, part) for v, part in zip((x, y), parts, strict=True)]
    ready[moved] = pt.mul((x, y)[moved], 3.0)
    f = compile_(
        [x, y], WriteJoin(0, "float64", (None,), written).make_node(memory, *ready).outputs[0], name
    )
    want = [2 * np.ones(3), 2 * np.ones(5)]
    want[moved] *= 1.5
    np.testing.assert_array_equal(f(np.ones(3), np.ones(5)), np.concatenate(want))


@pytest.mark.parametrize("name", BACKENDS)
def test_every_call_returns_memory_of_its_own(name):
    x, y = pt.vectors("xy")
    f = compile_([x, y], split_and_join([x, y], (True, True)), name)
    first = f(np.ones(4), np.ones(3))
    kept = first.copy()
    second = f(np.zeros(4), np.zeros(3))
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize("name", ["CVM", "py"])
@pytest.mark.parametrize("axis", [0, 1])
def test_the_result_is_the_memory_that_was_written(name, axis):
    x, y = pt.matrices("xy")
    out = split_and_join([x, y], (True, True), axis)
    fgraph = FunctionGraph([x, y], [out], clone=False)
    linker = mode(name).linker.clone(allow_gc=False).accept(fgraph)
    storage_map = {}
    run, ins, outs, *_ = linker.make_all(storage_map=storage_map)
    for container in ins:
        container.storage[0] = np.ones((3, 3))
    run()
    result = outs[0].storage[0]
    assert result.flags.owndata
    for stream in out.owner.inputs[1:]:
        assert storage_map[stream][0].base is result


def test_all_destructions_are_declared():
    x, y, z = pt.vectors("xyz")
    join = split_and_join([x, y, z], (True, False, True)).owner
    assert join.op.destroy_map == {0: [0], 1: [1], 2: [3]}
