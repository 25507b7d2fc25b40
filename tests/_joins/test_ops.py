"""`WriteSplit` and `WriteJoin` join whatever they are given, and copy nothing that is in place."""

import pickle

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from numba.core.runtime import _nrt_python, rtsys
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph
from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key
from pytensor.scalar.basic import Composite, float64, get_scalar_type
from pytensor.tensor.rewriting.elemwise import local_useless_composite_outputs

import pytensor_fuse
from pytensor_fuse._joins.ops.elemwise import WriteElemwise
from pytensor_fuse._joins.ops.join import WriteJoin
from pytensor_fuse._joins.ops.layout import JoinLayout, dim_length, static_length
from pytensor_fuse._joins.ops.split import WriteSplit

BACKENDS = ["NUMBA", "CVM", "py"]


def mode(name):
    """Return a mode that changes nothing in the graph."""
    linker = {"NUMBA": "numba", "CVM": "cvm", "py": "py"}[name]
    return pytensor.compile.mode.Mode(linker=linker, optimizer=None)


def doubled(stream, part):
    """Write ``2 * stream`` into ``part``."""
    x, target = float64(), get_scalar_type(part.type.dtype)()
    return WriteElemwise(Composite([x, target], [x * 2.0]), {0: 1})(stream, part)


def split_and_join(streams, written, axis=0, dtype="float64"):
    ndim = streams[0].type.ndim
    shapes = tuple(
        tuple(dim_length(i, d) for d in range(s.type.ndim)) for i, s in enumerate(streams)
    )
    split = WriteSplit(JoinLayout(axis, ndim, dtype, shapes, written))
    memory, *parts = split.make_node(*streams).outputs
    parts = iter(parts)
    done = [
        doubled(s, next(parts)) if is_written else s
        for s, is_written in zip(streams, written, strict=True)
    ]
    join = WriteJoin(axis, dtype, (None,) * ndim, written)
    return join.make_node(memory, *done).outputs[0]


def compile_(inputs, outputs, name):
    return pytensor.function(inputs, outputs, mode=mode(name), accept_inplace=True)


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


def test_numba_allocates_the_result_alone():
    x, y = pt.vectors("xy")
    f = compile_([x, y], split_and_join([x, y], (True, True)), "NUMBA")
    g = compile_([x, y], pt.join(0, pt.mul(x, 2.0), pt.mul(y, 2.0)), "NUMBA")
    values = np.ones(1000), np.ones(2000)
    # Numba makes a record of each array that it is given.
    assert n_allocations(f, *values) == len(values) + 1
    assert n_allocations(g, *values) >= len(values) + 3


def n_allocations(f, *values):
    """Return how often Numba allocates in a call of ``f``."""
    f(*values)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats().alloc
        f(*values)
        return rtsys.get_allocation_stats().alloc - before
    finally:
        _nrt_python.memsys_disable_stats()


@pytest.mark.parametrize("op", [WriteSplit, WriteJoin])
def test_numba_can_cache_them(op):
    x, y = pt.vectors("xy")
    join = split_and_join([x, y], (True, True)).owner
    node = join if op is WriteJoin else join.inputs[0].owner
    _, key = numba_funcify_and_cache_key(node.op, node=node)
    assert key is not None
    other = pickle.loads(pickle.dumps(node.op))
    assert other == node.op
    assert numba_funcify_and_cache_key(other, node=node)[1] == key


def test_all_destructions_are_declared():
    x, y, z = pt.vectors("xyz")
    join = split_and_join([x, y, z], (True, False, True)).owner
    assert join.op.destroy_map == {0: [0], 1: [1], 2: [3]}


def composite(inplace):
    x, unread = float64(), float64()
    op = WriteElemwise(Composite([x, unread], [x * 2.0, x + 1.0]), inplace)
    v, target = pt.vectors("v", "target")
    return v, target, op.make_node(v, target)


def rewritten(fgraph, node):
    new = local_useless_composite_outputs.transform(fgraph, node)
    return next(iter(new.values())).owner if isinstance(new, dict) else new


def test_inputs_that_are_written_over_are_useful():
    v, target, node = composite({1: 1})
    fgraph = FunctionGraph([v, target], [node.outputs[1]], clone=False)
    with pytensor_fuse.enabled():
        new = rewritten(fgraph, node)
        assert new.inputs == [v, target]
        assert new.op.inplace_pattern == {0: 1}
        assert type(new.op) is WriteElemwise
        assert len(new.outputs) == 1
        again = FunctionGraph([v, target], new.outputs, clone=False)
        assert not local_useless_composite_outputs.transform(again, new)


def test_inputs_that_nothing_uses_are_still_removed():
    for inplace in ({}, {0: 1}):
        v, target, node = composite(inplace)
        fgraph = FunctionGraph([v, target], [node.outputs[1]], clone=False)
        with pytensor_fuse.enabled():
            new = rewritten(fgraph, node)
        assert new.inputs == [v]
        assert new.op.inplace_pattern == {}


def test_stock_rewriter_is_given_back():
    with pytensor_fuse.enabled(False):
        stock = type(local_useless_composite_outputs)
        with pytensor_fuse.enabled():
            assert type(local_useless_composite_outputs) is not stock
        assert type(local_useless_composite_outputs) is stock


@pytest.mark.parametrize("name", ["NUMBA", "CVM"])
def test_kernels_read_scalars_and_columns(name):
    # The C loop for contiguous operands must not be taken for these, or with a fixed element.
    x, column, scalar, out = pt.matrix("x"), pt.col("c"), pt.scalar("s"), pt.matrix("out")
    ins = [float64() for _ in range(4)]
    kernel = WriteElemwise(Composite(ins, [ins[0] * ins[1] + ins[2]]), {0: 3})
    node: Apply = kernel.make_node(x, column, scalar.dimshuffle("x", "x"), out)
    f = compile_([x, column, scalar, out], node.outputs[0], name)
    a, c = np.arange(6.0).reshape(2, 3), np.array([[2.0], [3.0]])
    np.testing.assert_array_equal(f(a, c, 5.0, np.empty((2, 3))), a * c + 5)
    ins = [float64() for _ in range(3)]
    kernel = WriteElemwise(Composite(ins, [ins[0] + ins[1]]), {0: 2})
    node = kernel.make_node(x, scalar.dimshuffle("x", "x"), out)
    f = compile_([x, scalar, out], node.outputs[0], name)
    for layout in (a, a.T, a[:, ::-1], np.asfortranarray(a)):
        np.testing.assert_array_equal(f(layout, 5.0, np.empty(layout.shape)), layout + 5)
