"""Graphs that are in memory are not copied; nobody can tell, and nobody's graph is touched."""

from __future__ import annotations

import copy
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytensor
import pytensor.compile.rebuild
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.io import In, Out, SymbolicOutput
from pytensor.compile.maker import FunctionMaker
from pytensor.compile.mode import Mode
from pytensor.compile.rebuild import UnusedInputError
from pytensor.graph.traversal import ancestors

import pytensor_fuse
from pytensor_fuse import enabled
from pytensor_fuse._cache import asked as asked_module
from pytensor_fuse._cache import deferred as deferred_module
from pytensor_fuse._cache.asked import DeferredOutput
from pytensor_fuse.cache import info as cache_info
from support.cached import PYTHON, assert_same_graphs, assert_same_results
from support.switching import switched

VALUES = [np.array([0.5, 1.0, 2.0]), np.array([3.0, 4.0, 5.0])]


def graph():
    x, y = pt.vectors("x", "y")
    return [x, y], [pt.exp(x) * y + 1, pt.cumsum(y) - x]


def function(*args, **kwargs):
    return pytensor.function(*args, **{"mode": PYTHON, **kwargs})


@pytest.fixture
def copied(monkeypatch):
    """Note the nodes that PyTensor copies for functions."""
    found = []
    stock = pytensor.compile.rebuild.clone_node_and_cache

    def clone_node_and_cache(node, *args, **kwargs):
        found.append(node)
        return stock(node, *args, **kwargs)

    monkeypatch.setattr(pytensor.compile.rebuild, "clone_node_and_cache", clone_node_and_cache)
    return found


def assert_untouched(outputs):
    for variable in ancestors(outputs):
        if variable.owner is not None:
            assert "imported_by" not in vars(variable.owner.tag)


def test_nothing_is_copied(copied):
    function(*graph())
    assert copied
    copied.clear()
    inputs, outputs = graph()
    hit = function(inputs, outputs)
    assert cache_info().hits == 1
    assert not copied
    assert_untouched(outputs)
    assert [one.variable for one in hit.maker.inputs] == inputs
    with enabled(False, "cache"):
        fresh = function(*graph())
    assert_same_graphs(hit, fresh)
    assert_same_results(hit, fresh, VALUES)


def test_outputs_of_makers_are_copies_once_somebody_asks(copied):
    function(*graph())
    inputs, outputs = graph()
    hit = function(inputs, outputs)
    copied.clear()
    first, second = hit.maker.outputs
    assert not copied
    assert (first.borrow, second.borrow) == (False, False)
    assert first.variable is first.variable
    assert len(copied) == len({one.owner for one in ancestors(outputs) if one.owner is not None})
    assert first.variable is not outputs[0]
    assert first.variable.owner.op == outputs[0].owner.op
    assert {one for one in ancestors([first.variable]) if one.owner is None} >= set(inputs)
    assert str(second) == f"Out({second.variable},False)"
    n_copied = len(copied)
    assert second.variable.owner.op == outputs[1].owner.op
    assert len(copied) == n_copied
    for other in (copy.copy(first), pickle.loads(pickle.dumps(first))):
        assert type(other) is SymbolicOutput
    other = pt.vector("other")
    first.variable = other
    assert first.variable is other


def test_functions_are_pickled_and_copied():
    function(*graph())
    hit = function(*graph())
    expected = hit(*VALUES)
    again = pickle.loads(pickle.dumps(hit))
    assert type(again.maker.outputs[0]) is SymbolicOutput
    for other in (again, copy.copy(hit), hit.copy(share_memory=False)):
        for a, b in zip(other(*VALUES), expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_another_mode_needs_the_copy(copied):
    function(*graph())
    inputs, outputs = graph()
    copied.clear()
    other = function(inputs, outputs, mode=Mode("py", "fast_compile"))
    assert copied
    assert (cache_info().hits, cache_info().misses) == (0, 2)
    assert_untouched(outputs)
    assert other.maker.outputs[0].variable is not outputs[0]
    with enabled(False, "cache"):
        fresh = function(*graph(), mode=Mode("py", "fast_compile"))
    assert_same_graphs(other, fresh)
    features = [type(one) for one in fresh.maker.fgraph._features]
    assert [type(one) for one in other.maker.fgraph._features] == features
    assert_same_results(other, fresh, VALUES)


class OtherMaker(FunctionMaker):
    def __init__(self, inputs, outputs, *args, **kwargs):
        self.given = [type(one) for one in outputs]
        super().__init__(inputs, outputs, *args, **kwargs)


class OtherMode(Mode):
    @property
    def function_maker(self):
        return OtherMaker


@pytest.mark.parametrize("mode", [OtherMode("py", "fast_run"), "DebugMode"], ids=["mine", "debug"])
def test_makers_of_others_get_the_copy(mode):
    function(*graph())
    inputs, outputs = graph()
    made = function(inputs, outputs, mode=mode)
    assert_untouched(outputs)
    if isinstance(made.maker, OtherMaker):
        assert made.maker.given == list(map(type, outputs))
    with enabled(False, "cache"):
        fresh = function(*graph())
    assert_same_results(made, fresh, VALUES)


def test_whoever_asks_for_copies_himself_gets_them():
    function(*graph())
    inputs, outputs = graph()
    _, copies = pytensor.compile.maker.construct_function_ins_and_outs(inputs, outputs)
    assert [type(one) for one in copies] == [type(one) for one in outputs]


def test_what_others_put_in_the_place_of_the_lookup_gets_the_copy(monkeypatch):
    function(*graph())
    seen = []
    stock = FunctionMaker.prepare_fgraph

    def prepare_fgraph(inputs, outputs, additional_outputs, fgraph, mode, profile):
        seen.append(len(fgraph.apply_nodes))
        stock(inputs, outputs, additional_outputs, fgraph, mode, profile)

    monkeypatch.setattr(FunctionMaker, "prepare_fgraph", staticmethod(prepare_fgraph))
    inputs, outputs = graph()
    hit = function(inputs, outputs)
    assert seen == [6]
    assert_untouched(outputs)
    with enabled(False, "cache"):
        assert_same_results(hit, function(*graph()), VALUES)


def test_a_maker_of_the_same_outputs():
    function(*graph())
    hit = function(*graph())
    made = FunctionMaker(hit.maker.inputs, hit.maker.outputs, PYTHON).create()
    assert_same_results(made, hit, VALUES)


@pytest.mark.parametrize("outputs", [lambda o: o[0], tuple, lambda o: [Out(o[0], borrow=True)]])
def test_forms_of_outputs(outputs):
    def make():
        inputs, computed = graph()
        return function(inputs, outputs(computed), name="named", trust_input=True)

    def described(made):
        maker = made.maker
        specs = [one.borrow for one in maker.outputs]
        told = maker.unpack_single, maker.return_none, maker.on_unused_input, maker.name
        return *told, maker.trust_input, maker.accept_inplace, specs, made.name

    make()
    hit = make()
    assert cache_info().hits == 1
    with enabled(False, "cache"):
        fresh = make()
    assert described(hit) == described(fresh)
    assert_same_results(hit, fresh, VALUES)


def test_inputs_are_copies_of_what_is_given(copied):
    def make():
        (x, y), outputs = graph()
        specs = [In(x, mutable=True, name="first"), In(y, borrow=True, allow_downcast=True)]
        return specs, function(specs, outputs)

    make()
    copied.clear()
    specs, hit = make()
    assert not copied
    for ours, one in zip(hit.maker.inputs, specs, strict=True):
        assert ours is not one
        assert vars(ours) == vars(one)


@given(st.permutations(range(4)), st.lists(st.booleans(), min_size=3, max_size=3))
def test_shared_variables_come_in_the_order_of_pytensor(order, swaps):
    pytensor_fuse.cache.clear(disk=False)

    def make():
        x = pt.vector("x")
        shared = [pytensor.shared(np.full(3, float(k)), name=f"s{k}") for k in range(4)]
        a, b, c, d = (shared[k] for k in order)
        terms = [a * x, b + a, pt.exp(c), d - x]
        total = terms[0]
        for term, swap in zip(terms[1:], swaps, strict=True):
            total = term * total if swap else total * term
        return shared, function([x], [total, c + x, total + d])

    make()
    shared, hit = make()
    assert cache_info().hits == 1
    with enabled(False, "cache"):
        _, fresh = make()
    names = [one.variable.name for one in fresh.maker.inputs]
    assert [one.variable.name for one in hit.maker.inputs] == names
    assert_same_graphs(hit, fresh)
    assert_same_results(hit, fresh, VALUES[:1])
    before = hit(VALUES[0])
    shared[order[2]].set_value(np.full(3, 9.0))
    after = hit(VALUES[0])
    np.testing.assert_allclose(after[1] - before[1], 9.0 - order[2])


def plain(**options):
    inputs, outputs = graph()
    return function(inputs, outputs, **options)


def with_updates():
    inputs, outputs = graph()
    state = pytensor.shared(np.zeros(3), name="state")
    return function(inputs, outputs, updates={state: state + 1})


def with_default_update():
    (x, y), outputs = graph()
    state = pytensor.shared(np.zeros(3), name="state")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        state.default_update = state + x
    return function([x, y], [*outputs, state * 2])


def with_givens():
    (x, y), outputs = graph()
    z = pt.vector("z")
    return function([x, z], outputs, givens={y: z + 1})


def with_an_update_of_an_input():
    (x, y), outputs = graph()
    state = pytensor.shared(np.zeros(3), name="state")
    return function([y, In(x, value=state.container, update=x + 1)], outputs)


@pytest.mark.parametrize(
    "make", [with_updates, with_default_update, with_givens, with_an_update_of_an_input]
)
def test_what_is_not_plain_goes_pytensors_way(make):
    plain()
    make()
    hits = cache_info().hits
    hit = make()
    assert cache_info().hits == hits + 1
    with enabled(False, "cache"):
        fresh = make()
    n_inputs = len([one for one in hit.maker.inputs if not one.shared and one.value is None])
    for _ in range(3):
        for a, b in zip(hit(*VALUES[:n_inputs]), fresh(*VALUES[:n_inputs]), strict=True):
            np.testing.assert_array_equal(a, b)


def twice():
    (x, y), outputs = graph()
    return function([x, y, x], outputs)


def unused():
    inputs, outputs = graph()
    return function([*inputs, pt.vector("z")], outputs)


def missing():
    (x, _), outputs = graph()
    return function([x], outputs)


def a_constant():
    (x, y), outputs = graph()
    return function([x, y, pt.constant(1.0)], outputs)


def a_shared_variable():
    (x, y), outputs = graph()
    return function([x, y, pytensor.shared(1.0, name="s")], outputs)


def no_variables():
    inputs, _ = graph()
    return function(inputs, ["x"])


def in_the_middle():
    (x, y), outputs = graph()
    return function([x, y, outputs[0]], [outputs[0] + 1, *outputs])


@pytest.mark.parametrize(
    "make", [twice, unused, missing, a_constant, a_shared_variable, no_variables, in_the_middle]
)
def test_what_pytensor_refuses_is_refused_as_it_does(make):
    plain()
    messages = []
    for is_on in (True, False):
        with enabled(is_on, "cache"):
            try:
                make()
            except Exception as error:
                messages.append((type(error), str(error).split("Backtrace")[0]))
            else:
                messages.append((None, ""))
    assert messages[0] == messages[1]


def test_a_graph_that_overwrites_is_refused():
    def make():
        x = pt.vector("x")
        op = pt.elemwise.Elemwise(pytensor.scalar.add, inplace_pattern={0: 0})
        return [In(x, mutable=True), (y := pt.vector("y"))], op(x, y)

    function(*make(), accept_inplace=True)
    function(*make(), accept_inplace=True)
    with pytest.raises(TypeError, match="inplace"):
        function(*make())


def test_unused_inputs_that_are_allowed():
    def make():
        inputs, outputs = graph()
        return function([*inputs, pt.vector("z")], outputs, on_unused_input="ignore")

    make()
    hit = make()
    assert cache_info().hits == 1
    assert hit.maker.on_unused_input == "ignore"


def test_threads():
    function(*graph())
    expected = function(*graph())(*VALUES)

    def make(_):
        return function(*graph())(*VALUES)

    with ThreadPoolExecutor(4) as pool:
        for results in pool.map(make, range(24)):
            for a, b in zip(results, expected, strict=True):
                np.testing.assert_array_equal(a, b)
    assert not asked_module._empty


def test_a_cache_that_is_switched_off_meanwhile(monkeypatch):
    function(*graph())
    off = switched(cache=False)

    def put_aside(fgraph, asked):
        asked_module.put_aside(fgraph, asked)
        off.__enter__()

    monkeypatch.setattr(deferred_module, "put_aside", put_aside)
    try:
        hit = function(*graph())
    finally:
        off.__exit__(None, None, None)
    assert "prepare_fgraph" not in vars(hit.maker)
    with enabled(False, "cache"):
        assert_same_results(hit, function(*graph()), VALUES)


def test_a_maker_that_fails_leaves_nothing_behind():
    function(*graph())
    inputs, outputs = graph()
    with pytest.raises(TypeError, match="unexpected"):
        FunctionMaker(*_deferred(inputs, outputs), PYTHON, unexpected=True)
    assert function(*graph())(*VALUES)
    assert_untouched(outputs)


def test_a_maker_of_other_inputs():
    function(*graph())
    inputs, outputs = graph()
    specs, deferred = _deferred(inputs, outputs)
    with pytest.raises(UnusedInputError):
        FunctionMaker([*specs, In(pt.vector("z"))], deferred, PYTHON, on_unused_input="raise")
    swapped = FunctionMaker(specs[::-1], deferred, PYTHON).create()
    for a, b in zip(swapped(*VALUES[::-1]), function(*graph())(*VALUES), strict=True):
        np.testing.assert_array_equal(a, b)
    assert_untouched(outputs)


def _deferred(inputs, outputs):
    given = []

    def interrupted(self, *args, **kwargs):
        given.extend(args[:2])
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FunctionMaker, "__init__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            function(inputs, outputs)
    specs, deferred = given
    assert type(deferred[0]) is DeferredOutput
    return specs, deferred


def test_it_is_pytensors_own_where_the_cache_is_off():
    with switched(cache=False):
        for one in (FunctionMaker.__init__, FunctionMaker.create_fgraph):
            assert one.__code__.co_filename.endswith("maker.py")
            assert one.__globals__["__name__"] == "pytensor.compile.maker"
        own = pytensor.compile.maker.construct_function_ins_and_outs
        assert own is pytensor.compile.rebuild.construct_function_ins_and_outs
