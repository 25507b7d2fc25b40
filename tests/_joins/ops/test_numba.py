"""What Numba makes of the ops: its memory, and its cache."""

import pickle
from importlib import import_module

import numpy as np
import pytensor.tensor as pt
import pytest
from numba.core.runtime import _nrt_python, rtsys
from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key

from pytensor_fuse._joins.ops.join import WriteJoin
from pytensor_fuse._joins.ops.layout import JoinLayout, dim_length
from pytensor_fuse._joins.ops.split import WriteSplit
from support.joins.ops import compile_, split_and_join
from support.joins.outcomes import check, nodes, rand
from support.programs.processes import run_python

pytestmark = pytest.mark.usefixtures("joins_on")

x, y, z = pt.vectors("xyz")


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


def test_equal_joins_are_one_function_to_numbas_cache():
    dispatch = import_module("pytensor.link.numba.dispatch.basic")
    out = [pt.concatenate([pt.exp(x), pt.sin(y)]), pt.concatenate([pt.cos(x), pt.tan(y)])]
    f = check([x, y], out, "NUMBA", (rand(6), rand(7)))
    keys = [
        dispatch.numba_funcify_and_cache_key(node.op, node=node)[1] for node in nodes(f, WriteSplit)
    ]
    assert len(keys) == 2
    assert len(set(keys)) == 1


@pytest.mark.parametrize("huge", [False, True])
def test_large_results_in_huge_pages_or_not(huge, monkeypatch):
    write_numba = import_module("pytensor_fuse._joins.ops.numba")
    if huge and not write_numba._USES_HUGE_PAGES:
        pytest.skip("this system has none, or they are switched off")
    monkeypatch.setattr(write_numba, "_USES_HUGE_PAGES", huge)
    asked = "madvise" in "".join(
        library.get_llvm_str()
        for node in nodes(
            check(
                [x, y],
                pt.concatenate([x * 2, y + 1]),
                "NUMBA",
                (rand(300_000), rand(300_001)),
                (rand(3), rand(4)),
            ),
            WriteSplit,
        )
        for library in _libraries_of(write_numba, node)
    )
    assert asked is huge


def _libraries_of(write_numba, node):
    numba = import_module("numba")
    function, _ = write_numba._write_split(node.op, node)
    function.compile(tuple(numba.typeof(rand(3)) for _ in node.inputs))
    return [result.library for result in function.overloads.values()]


def test_parts_keep_their_memory_in_numba():
    numba = import_module("numba")
    write_numba = import_module("pytensor_fuse._joins.ops.numba")
    length = dim_length(0, 0)
    op = WriteSplit(JoinLayout(0, 1, "float64", ((length,), (length,)), (True, True)))
    split, _ = write_numba._write_split(op, op.make_node(x))

    @numba.njit
    def write_after_the_memory_is_dropped(a):
        _, first, second = split(a)
        other = np.full(2 * a.size, 7.0)
        first[:] = 1.0
        second[:] = 2.0
        return other.sum(), first.ctypes.data == other.ctypes.data

    for n in (100, 5000, 100_000):
        for _ in range(3):
            assert write_after_the_memory_is_dropped(rand(n)) == (14.0 * n, False)


def test_parts_are_borrowed_where_their_kernel_goes_with_the_join():
    both = pt.exp(x)
    out = [pt.concatenate([both * y, pt.sin(z)]), both + y]
    f = check([x, y, z], out, "NUMBA", (rand(6), rand(6), rand(2)))
    [split] = nodes(f, WriteSplit)
    [join] = nodes(f, WriteJoin)
    n_outputs = [len(stream.owner.outputs) for stream in join.inputs[1:]]
    assert n_outputs == [2, 1]
    assert split.op.borrowed == tuple(n == 1 for n in n_outputs)


@pytest.mark.parametrize("first", [0, 1])
def test_numba_knows_the_ops_whatever_is_imported_first(first):
    modules = ["pytensor_fuse._joins.ops.layout", "pytensor.link.numba.dispatch"]
    run_python(
        f"""
        import sys
        import {modules[first]}
        assert "pytensor_fuse._joins.ops.numba" not in sys.modules
        import {modules[1 - first]}
        from pytensor.link.numba.dispatch import basic
        from pytensor_fuse._joins.ops.fill import WriteFill
        from pytensor_fuse._joins.ops.join import WriteJoin
        from pytensor_fuse._joins.ops.split import WriteSplit
        assert WriteSplit in basic.numba_funcify_and_cache_key.registry
        assert {{WriteFill, WriteJoin}} <= {{*basic.numba_funcify_default_op_cache_key.registry}}
        """,
        variable="0",
    )
