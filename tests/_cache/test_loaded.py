"""Functions of equal graphs share the C code of their nodes, and nothing that code works on."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import Mode
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import SequentialGraphRewriter
from pytensor.link.c.op import COp
from pytensor.link.vm import VMLinker

import pytensor_fuse
from _cache.test_reuse import VALUES, regression
from pytensor_fuse import enabled
from pytensor_fuse._cache.link import linked_only
from pytensor_fuse.cache import info as cache_info
from support.cached import PYTHON, assert_reused, assert_same_results, compiled
from support.effort import examples
from support.random_graphs.strategies import any_programs
from support.switching import switched


def thunks(function):
    """Return PyTensor's own thunks in C, by the names of their nodes."""
    found = [
        (node, getattr(t, "thunk", None))
        for node, t in zip(nodes(function), all_thunks(function), strict=True)
    ]
    return [(str(node.op), thunk) for node, thunk in found if thunk is not None]


def nodes(function):
    return list(function.vm.nodes)


def all_thunks(function):
    return list(function.vm.thunks)


def modules(function):
    return [thunk.module for _, thunk in thunks(function)]


@pytest.mark.parametrize(
    ("mode", "times"),
    # Others than PyTensor's virtual machines ask for other code where results are not kept.
    [("CVM", 1), (Mode("vm"), 1), (Mode("c|py"), 2)],
    ids=["cvm", "vm", "opwise"],
)
def test_code_is_found_once(mode, times, asked):
    compiled(*regression(), mode=mode)
    once = len(asked)
    assert once > 3
    hit = compiled(*regression(), mode=mode)
    assert len(asked) == times * once
    with enabled(False, "cache"):
        fresh = compiled(*regression(), mode=mode)
    assert_same_results(hit, fresh, VALUES)


def test_thunks_are_as_pytensor_makes_them():
    first = compiled(*regression(), mode="CVM")
    hit = compiled(*regression(), mode="CVM")
    with enabled(False, "cache"):
        fresh = compiled(*regression(), mode="CVM")
    assert len(thunks(hit)) == len(thunks(fresh)) > 3
    assert modules(hit) == modules(first) == modules(fresh)
    for node, ours, theirs in zip(nodes(hit), all_thunks(hit), all_thunks(fresh), strict=True):
        assert ours.lazy == theirs.lazy
        storage = hit.vm.storage_map
        assert all(a is storage[b] for a, b in zip(ours.inputs, node.inputs, strict=True))
        assert all(a is storage[b] for a, b in zip(ours.outputs, node.outputs, strict=True))
    for (_, ours), (_, theirs) in zip(thunks(hit), thunks(fresh), strict=True):
        assert vars(ours).keys() == vars(theirs).keys()
        for mine, other in ((ours.init_tasks, theirs.init_tasks), (ours.tasks, theirs.tasks)):
            assert [task[1:] for task in mine] == [task[1:] for task in other]
            assert [type(task[0]) for task in mine] == [type(task[0]) for task in other]
            assert [getattr(task[0], "type", None) for task in mine] == [
                getattr(task[0], "type", None) for task in other
            ]
        assert [str(node.op) for node in ours.nodes] == [str(node.op) for node in theirs.nodes]


def test_nothing_that_changes_is_shared():
    functions = [compiled(*regression(), mode="CVM") for _ in range(3)]
    seen = set()
    for function in functions:
        parts = list(function.vm.storage_map.values())
        for _, thunk in thunks(function):
            parts += [thunk, thunk.cthunk, thunk.error_storage, thunk.tasks, thunk.init_tasks]
            parts += [task[0] for task in (*thunk.tasks, *thunk.init_tasks)]
        new = {id(part) for part in parts}
        assert not new & seen
        seen |= new
    expected = functions[0](*VALUES)
    functions[1](VALUES[0] * 3, VALUES[1])
    for a, b in zip(functions[0](*VALUES), expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_first_function_goes():
    first = compiled(*regression(), mode="CVM")
    gone = [weakref.ref(first.maker.fgraph), *map(weakref.ref, first.maker.fgraph.inputs)]
    compiled(*regression(), mode="CVM")
    del first
    gc.collect()
    # The order of a graph is remembered for as long as there is the graph: what it names goes next.
    gc.collect()
    assert [one() for one in gone] == [None] * len(gone)


# Each example has C code of its own.
@examples(0.5)
@given(any_programs(), st.booleans())
def test_random_graphs(program, mutable):
    hit, fresh = assert_reused(program, "CVM", mutable=mutable)
    assert modules(hit) == modules(fresh)


def read_twice():
    x = pt.vector("x")
    return [x], [pt.searchsorted(x, x, side="right"), pt.cumsum(x)]


def test_variables_that_are_read_twice_and_parameters_of_ops(asked):
    first = compiled(*read_twice(), mode="CVM")
    node = next(one for one in nodes(first) if len(one.inputs) == 2)
    assert node.inputs[0] is node.inputs[1]
    once = len(asked)
    hit = compiled(*read_twice(), mode="CVM")
    assert len(asked) == once == 2
    with enabled(False, "cache"):
        fresh = compiled(*read_twice(), mode="CVM")
    assert_same_results(hit, fresh, [np.array([1.0, 2.0, 2.0, 5.0])])


def test_what_fails_says_where():
    def make():
        x, i = pt.vector("x"), pt.vector("i", dtype="int64")
        return compiled([x, i], [pt.cumsum(x)[i], x.reshape((2, 2))], mode="CVM")

    make()
    hit = make()
    with enabled(False, "cache"):
        fresh = make()
    messages = []
    for function in (hit, fresh):
        with pytest.raises(IndexError) as caught:
            function(np.zeros(4), np.array([7]))
        with pytest.raises(ValueError, match="reshape"):
            function(np.zeros(3), np.array([1]))
        messages.append(str(caught.value).splitlines()[:3])
    assert messages[0] == messages[1]
    # It goes on afterwards.
    np.testing.assert_array_equal(hit(np.ones(4), np.array([1]))[0], [2.0])


def test_other_settings_of_the_compiler_load_other_code(asked):
    def make():
        x = pt.vector("x")
        return compiled([x], pt.exp(x) * 3 + 1, mode="CVM")

    first = make()
    asked.clear()
    flags = f"{pytensor.config.gcc__cxxflags} -DPYTENSOR_FUSE_TEST"
    with pytensor.config.change_flags(gcc__cxxflags=flags):
        second = make()
    assert asked
    assert not set(map(id, modules(first))) & set(map(id, modules(second)))
    asked.clear()
    assert modules(make()) == modules(first)


def test_a_graph_that_was_changed_before_it_was_linked(monkeypatch):
    def make():
        x, y = pt.vectors("x", "y")
        return compiled([x, y], [pt.exp(x) - y, pt.sin(y)], mode="CVM")

    make()
    stock = VMLinker.make_all
    values = [np.array([1.0, 2.0]), np.array([3.0, 5.0])]
    expected = make()(values[1], values[0])[0]

    def swapped(self, *args, **kwargs):
        for node in self.fgraph.toposort():
            if len(node.inputs) == 2:
                node.inputs = [node.inputs[1], node.inputs[0]]
        return stock(self, *args, **kwargs)

    monkeypatch.setattr(VMLinker, "make_all", swapped)
    np.testing.assert_allclose(make()(*values)[0], expected)


def test_constants_that_were_written_to(asked):
    data = np.arange(3.0)

    def make():
        x = pt.vector("x")
        return compiled([x], x + pt.constant(data), mode="CVM")

    make()
    asked.clear()
    assert make()([0.0, 0.0, 0.0]).tolist() == [0.0, 1.0, 2.0]
    assert not asked


def test_code_without_a_version_is_not_shared(asked, monkeypatch):
    monkeypatch.setattr(pt.extra_ops.CumOp, "c_code_cache_version", lambda self: ())

    def make():
        x = pt.vector("x")
        return compiled([x], pt.cumsum(x), mode="CVM")

    make()
    make()
    assert len([name for name in asked if "Cum" in name]) == 2


def test_it_is_pytensors_own_where_the_cache_is_off():
    with switched(cache=False):
        assert COp.make_c_thunk.__module__ == "pytensor.link.c.op"


class CodeThatHoldsData(COp):
    """Adds a constant that stands in the code."""

    __props__ = ()

    def make_node(self, x, y):
        return pytensor.graph.basic.Apply(self, [x, y], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] + node.inputs[1].data.sum()

    def do_constant_folding(self, fgraph, node):
        return False

    def c_code_cache_version(self):
        return (1,)

    def c_code(self, node, name, inputs, outputs, sub):
        number = float(node.inputs[1].data.sum())
        return f"""
        Py_XDECREF({outputs[0]});
        {outputs[0]} = (PyArrayObject*)PyArray_NewCopy({inputs[0]}, NPY_ANYORDER);
        for (npy_intp i = 0; i < PyArray_SIZE({outputs[0]}); i++)
            ((double*)PyArray_DATA({outputs[0]}))[i] += {number!r};
        """


def test_code_is_for_any_data_unless_it_was_made_of_them(asked, monkeypatch):
    monkeypatch.setattr(
        "pytensor_fuse._cache.key.cacheability.KNOWN_PACKAGES", ("pytensor", "_cache")
    )

    def make(data):
        x = pt.vector("x", shape=(12,))
        data = pt.constant(data)
        return compiled([x], [CodeThatHoldsData()(x, data), pt.cumsum(x) * data], mode="CVM")

    data, values = np.arange(12.0), [np.ones(12)]
    with enabled(False, "cache"):
        # Its modules are then found by their keys, and the code is not made again.
        make(data)
    first = make(data)
    n_asked = len(asked)
    other = make(data + 1)
    assert cache_info().hits_with_other_data == 1
    assert asked[n_asked:] == ["CodeThatHoldsData"]
    for function, added in ((first, data), (other, data + 1)):
        sums, products = function(*values)
        np.testing.assert_array_equal(sums, 1 + added.sum())
        np.testing.assert_array_equal(products, np.arange(1, 13) * added)
    with switched(other_data=False):
        make(data + 2)
        n_asked = len(asked)
        make(data + 2)
        assert len(asked) == n_asked


def with_inner_function():
    a, b = pt.vectors("a", "b")
    inner = OpFromGraph([a, b], [pt.exp(a) * b + 1, pt.cumsum(b)])
    x, y = pt.vectors("x", "y")
    return [x, y], [*inner(x, y), x - y]


inner_graphs_are_frozen = pytest.mark.skipif(
    isinstance(with_inner_function()[1][0].owner.op.fgraph, FunctionGraph),
    reason="graphs with inner graphs that may be changed are not kept",
)


@inner_graphs_are_frozen
@pytest.mark.parametrize("mode", ["CVM", Mode("vm"), PYTHON], ids=["cvm", "vm", "py"])
def test_inner_functions_share_code_as_well(mode, asked):
    first = compiled(*with_inner_function(), mode=mode)
    asked.clear()
    hit = compiled(*with_inner_function(), mode=mode)
    assert not asked
    with enabled(False, "cache"):
        fresh = compiled(*with_inner_function(), mode=mode)
    values = [np.array([0.5, 1.0, 2.0]), np.array([3.0, 4.0, 5.0])]
    assert_same_results(hit, fresh, values)
    # Each has storage of its own.
    one = first(*values)
    hit(*[2 * value for value in values])
    for a, b in zip(one, first(*values), strict=True):
        np.testing.assert_array_equal(a, b)


def linked(outputs, inputs, mode):
    fgraph = FunctionGraph(inputs, outputs, clone=True)
    return pytensor.function(list(fgraph.inputs), list(fgraph.outputs), mode=mode)


def test_graphs_that_are_linked_as_they_are(asked):
    """Those that differ in anything do not share; nothing is said of them to have been missed."""
    mode = Mode("cvm", SequentialGraphRewriter())

    def make(scale=2.0, shape=(None,)):
        x = pt.tensor("x", shape=shape, dtype="float64")
        return linked([pt.exp(x) * scale, pt.cumsum(x)], [x], mode)

    first = make()
    once = len(asked)
    assert once > 1
    again = make()
    assert len(asked) == once
    np.testing.assert_array_equal(first([1.0, 2.0])[0], again([1.0, 2.0])[0])
    np.testing.assert_allclose(make(scale=3.0)([0.0, 0.0])[0], 3.0)
    assert len(asked) == 2 * once
    make(shape=(2,))
    assert len(asked) == 3 * once
    assert cache_info().misses == 0
    assert not cache_info().not_kept
    assert pytensor_fuse.explain(again, "cache") == ("the mode rewrites nothing",)
    pytensor_fuse.cache.clear(disk=False)
    asked.clear()
    make()
    assert len(asked) == once


def test_few_graphs_that_are_linked_as_they_are_are_remembered(monkeypatch):
    monkeypatch.setattr(linked_only, "_MOST", 3)
    mode = Mode("cvm", SequentialGraphRewriter())
    x = pt.vector("x")
    for length in range(1, 6):
        linked([x[:length]], [x], mode)
    assert len(linked_only._alike) == 3
