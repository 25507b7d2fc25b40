"""Graphs that Numba compiles in part."""

from __future__ import annotations

import random
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.io import In
from pytensor.graph.basic import Constant
from pytensor.raise_op import Assert

import pytensor_fuse
from pytensor_fuse._native.linking import addresses
from pytensor_fuse._native.linking.regions import NativeRegion, parts_of, take_apart, whole
from pytensor_fuse._native.linking.thunks import NativeThunk
from pytensor_fuse._native.lowering.registry import Lowering
from support.effort import IS_DEEP
from support.native.functions import stock_function
from support.numba_only import IMPORT, numba_inverse
from support.programs.processes import run_python, with_disk_cache
from support.switching import switched

X = np.random.default_rng(1).normal(size=(4, 4)) + 4 * np.eye(4)
V = np.arange(4.0)


def of_both_kinds():
    """Return a graph whose middle part only Numba can compile."""
    x, v = pt.matrix("x"), pt.vector("v")
    before = pt.exp(x * 0.1) + v * 2
    inverse = numba_inverse(before)
    return [x, v], [pt.tanh(inverse).sum(axis=0) * v, inverse, before * 3]


def apart(inputs, outputs, **kwargs):
    """Return a function in parts."""
    function = pytensor.function(inputs, outputs, mode="NUMBA", **kwargs)
    assert not isinstance(function.vm, NativeThunk)
    assert parts_of(function.maker.fgraph) is not None
    return function


@pytest.fixture(scope="module")
def function():
    return apart(*of_both_kinds())


@pytest.fixture(scope="module")
def stock():
    return stock_function(*of_both_kinds())


def test_parts_give_what_the_whole_gives(function, stock):
    for layout in (np.asarray, np.asfortranarray, lambda x: np.repeat(x, 2, axis=1)[:, ::2]):
        for ours, theirs in zip(function(layout(X), V), stock(X, V), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def as_it_is(*args, **kwargs):
    """Compile nothing, as PyTensor's own tests of functions for Numba do."""
    if len(args) != 1 or not callable(args[0]):
        return as_it_is
    args[0].py_func = args[0]
    return args[0]


def test_functions_that_are_not_compiled_call_no_machine_code():
    x = pt.matrix("x")
    inverse = numba_inverse(pt.exp(x) * 2)
    with (
        mock.patch("numba.njit", as_it_is),
        mock.patch("pytensor.link.numba.dispatch.basic.numba_njit", as_it_is),
    ):
        plain = pytensor.function([x], [pt.tanh(inverse).sum(), inverse], mode="NUMBA")
        assert parts_of(plain.maker.fgraph) is None
        total, own = plain(X)
    np.testing.assert_allclose(own, np.linalg.inv(np.exp(X) * 2), rtol=1e-12)
    np.testing.assert_allclose(total, np.tanh(own).sum(), rtol=1e-12)


def test_regions_are_few_and_the_graph_stays_as_it_was(function):
    fgraph = function.maker.fgraph
    parts = parts_of(fgraph)
    assert len(parts.regions) == 2
    assert not any(isinstance(node.op, NativeRegion) for node in fgraph.apply_nodes)
    others = [node for node in parts.order if not isinstance(node.op, NativeRegion)]
    n_native = sum(
        len(region.nodes) for region in pytensor_fuse.explain(function, "native").regions
    )
    assert n_native + len(others) == len(fgraph.apply_nodes)
    with whole(fgraph):
        assert parts_of(fgraph) is None
    assert parts_of(fgraph) is parts


def test_a_graph_of_numbas_alone_has_no_parts():
    x = pt.matrix("x")
    graph = pytensor.function([x], numba_inverse(x) * 2, mode="NUMBA").maker.fgraph
    assert parts_of(graph) is None


def test_equal_graphs_share_what_numba_made(function):
    again = apart(*of_both_kinds())
    assert [one.digest for one in parts_of(again.maker.fgraph).regions] == [
        one.digest for one in parts_of(function.maker.fgraph).regions
    ]


def test_digests_tell_constants_and_failures():
    def digest(constant, message):
        x = pt.vector("x")
        y = Assert(message)(pt.exp(x) + constant, pt.all(x > 0))
        graph = pytensor.graph.fg.FunctionGraph([x], [pt.tanh(y), pt.exp(y)], clone=False)
        return take_apart(graph, graph.toposort()).told()

    same, again = (digest(np.arange(3.0), "a") for _ in range(2))
    assert same == again
    assert len({same, digest(np.arange(3.0) + 1, "a"), digest(np.arange(3.0), "b")}) == 3


def test_failures_in_a_region():
    x = pt.matrix("x")
    checked = Assert("x is not positive")(pt.exp(x) * 2 + 1, pt.all(x > 0))
    inverse = numba_inverse(checked)
    function = apart([x], [pt.tanh(inverse).sum(axis=0)])
    function(np.abs(X))
    with pytest.raises(AssertionError, match="x is not positive"):
        function(-X)


def test_the_dispatcher_works_inside_of_others(function, stock):
    numba = pytest.importorskip("numba")
    call = function.vm.jit_fn
    for ours, theirs in zip(numba.njit(lambda x, v: call(x, v))(X, V), stock(X, V), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_updates_and_what_is_overwritten():
    """Regions read values before other nodes overwrite them, and overwrite nothing themselves."""
    state = pytensor.shared(X.copy(), name="state")
    y = pt.matrix("y")
    read = pt.exp(state * 0.1) + y
    inverse = numba_inverse(state + y)
    new = pt.set_subtensor(state[0], 1.0)
    step = apart(
        [In(y, mutable=True)], [read * 2 - 1, pt.tanh(inverse) + y * 3], updates={state: new}
    )
    given, before = np.full((4, 4), 0.5), X.copy()
    for _ in range(2):
        first, second = step(given.copy())
        np.testing.assert_allclose(first, (np.exp(before * 0.1) + 0.5) * 2 - 1)
        np.testing.assert_allclose(second, np.tanh(np.linalg.inv(before + 0.5)) + 1.5)
        before[0] = 1.0
        np.testing.assert_array_equal(state.get_value(), before)


@contextmanager
def refusing(monkeypatch, seed):
    """Remove the rules of some nodes, which a seed determines."""
    stock, refused = Lowering.refusal, {}
    draw = random.Random(seed)

    def refusal(self, node):
        if node not in refused:
            refused[node] = draw.random() < 0.3
        return "no rule in this test" if refused[node] else stock(self, node)

    with monkeypatch.context() as patch:
        patch.setattr(Lowering, "refusal", refusal)
        yield


def graph_of_many_kinds():
    x, v, i = pt.matrix("x"), pt.vector("v"), pt.lscalar("i")
    a = pt.exp(x * 0.1) + v
    b = pt.set_subtensor(a[1:3], v * 2)
    c = pt.inc_subtensor(b[i], pt.tanh(v))
    d = (c.T - c.mean(axis=0)).reshape((2, -1))
    e = pt.concatenate([d.ravel(), v, pt.stack([c.sum(), x[0, i]])])
    f = pt.switch(e > 1, pt.log1p(abs(e)), e.max())
    return [In(x, mutable=True), v, i], [f, c, d[::-1], pt.cumsum(f) * 2, (a > v).any(axis=1)]


@pytest.mark.parametrize("seed", range(30 if IS_DEEP else 2))
def test_any_partition_is_right(monkeypatch, seed):
    inputs, outputs = graph_of_many_kinds()
    with refusing(monkeypatch, seed):
        function = pytensor.function(inputs, outputs, mode="NUMBA")
    parts = parts_of(function.maker.fgraph)
    assert parts is not None
    for i in (0, 2):
        wanted = native(X.copy(), V, i)
        for ours, theirs in zip(function(X.copy(), V, i), wanted, strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def native(*values):
    function = pytensor.function(*graph_of_many_kinds(), mode="NUMBA")
    assert isinstance(function.vm, NativeThunk)
    return function(*values)


@pytest.fixture(scope="module")
def rewritten_graph_of_many_kinds():
    return pytensor.function(*graph_of_many_kinds(), mode="NUMBA").maker.fgraph


@pytest.mark.parametrize("seed", range(40))
def test_orders_run_readers_before_those_who_overwrite(
    monkeypatch, rewritten_graph_of_many_kinds, seed
):
    """Tests the order alone, without Numba."""
    fgraph = rewritten_graph_of_many_kinds
    with refusing(monkeypatch, seed):
        parts = take_apart(fgraph, fgraph.toposort())
    if parts is None:
        return
    known = set(parts.fgraph.inputs)
    dead = set()
    for node in parts.order:
        for variable in node.inputs:
            assert isinstance(variable, Constant) or variable in known
            assert variable not in dead
        for places in node.op.destroy_map.values():
            dead.update(node.inputs[place] for place in places)
        known.update(node.outputs)
    assert known.issuperset(one for one in parts.fgraph.outputs if not isinstance(one, Constant))


def test_code_that_is_not_there_raises(monkeypatch):
    monkeypatch.setattr(addresses, "_by_digest", {})
    x, v = pt.matrix("x"), pt.vector("v")
    function = apart([x, v], [pt.exp(numba_inverse(x * 3 + v)).sum(axis=0) + 0.5])
    monkeypatch.setattr(addresses, "_by_digest", {})
    with pytest.raises(RuntimeError, match="is not in this process"):
        function(X, V)


PROGRAM = """
    import sys
    import numpy as np, pytensor, pytensor.tensor as pt
    import pytensor_fuse
    IMPORT
    x, v = pt.matrix("x"), pt.vector("v")
    before = pt.exp(x * 0.1) + v * np.arange(1.0, 5.0)
    inverse = numba_inverse(before)
    outputs = [pt.tanh(inverse).sum(axis=0) * v, before * 3]
    function = pytensor.function([x, v], outputs, mode="NUMBA")
    compiled = []
    from numba.core import event
    class Listener(event.Listener):
        def on_start(self, event): compiled.append(event)
        def on_end(self, event): pass
    with event.install_listener("numba:compile", Listener()):
        first, second = function(np.eye(4) * 3, np.arange(4.0))
    print(len(compiled), repr(first.tolist()), "pytensor.link.numba.dispatch.basic" in sys.modules)
"""


def test_other_processes_load_what_numba_compiled(tmp_path):
    """With and without this package's cache, which finds Numba's code without translating."""
    results = []
    for cache in ("disk", "disk", "off"):
        ran = run_python(
            PROGRAM.replace("IMPORT", IMPORT),
            env=with_disk_cache(tmp_path, PYTENSOR_FUSE_CACHE=cache),
        )
        n_compiled, _, rest = ran.stdout.partition(" ")
        results.append((int(n_compiled), rest.rpartition(" ")[0]))
    numbers = [number for number, _ in results]
    assert numbers[0] > 0
    assert numbers[1:] == [0, 0]
    assert len({text for _, text in results}) == 1
    off = run_python(
        PROGRAM.replace("IMPORT", IMPORT), env=with_disk_cache(tmp_path, PYTENSOR_FUSE_NATIVE="off")
    )
    assert int(off.stdout.partition(" ")[0]) > 0


def test_nothing_is_in_parts_once_the_feature_is_off():
    with switched(native=False):
        function = pytensor.function(*of_both_kinds(), mode="NUMBA")
        assert parts_of(function.maker.fgraph) is None


@pytest.mark.parametrize("ndim", [2, 3])
def test_one_factorization_is_worth_a_region(ndim):
    x = pt.tensor("x", shape=(None,) * ndim)
    with_rule = pt.linalg.cholesky(x).sum(axis=0) if ndim == 3 else pt.linalg.cholesky(x)
    function = pytensor.function([x], numba_inverse(with_rule), mode="NUMBA")
    assert len(pytensor_fuse.explain(function, "native").regions) == 1
    given = np.eye(2) * 4 if ndim == 2 else np.eye(2)[None] * 4
    np.testing.assert_allclose(function(given), np.eye(2) / 2)
