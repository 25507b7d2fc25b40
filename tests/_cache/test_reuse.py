"""A graph that is compiled again is not rewritten, and its function shares nothing that changes."""

from __future__ import annotations

import os
import pickle
import threading

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.io import In, Out
from pytensor.compile.mode import Mode, get_mode, optdb
from pytensor.graph.basic import Constant
from pytensor.link.c.type import generic
from pytensor.link.numba.linker import NumbaLinker

import pytensor_fuse
from _cache.test_twins import registered
from pytensor_fuse import enabled
from pytensor_fuse._cache.data.rewritten import Rewritten
from pytensor_fuse._cache.key import cache_key as request
from pytensor_fuse._cache.store.entry import weight
from pytensor_fuse._cache.store.memory import memory
from pytensor_fuse._pytensor.graphs.provenance import line_that_made
from pytensor_fuse.cache import clear as clear_cache
from pytensor_fuse.cache import info as cache_info
from support.cached import (
    PYTHON,
    assert_reused,
    assert_same_graphs,
    assert_same_results,
    compiled,
)
from support.programs.processes import run_python
from support.random_graphs.building import build
from support.random_graphs.strategies import any_programs, seeded_program
from support.switching import switched


def regression():
    x, b = pt.matrix("x"), pt.vector("b")
    mean = pt.exp(x @ b) / (1 + pt.exp(x @ b))
    loss = ((mean - 0.5) ** 2).sum()
    return [x, b], [loss, *pt.grad(loss, [x, b])]


VALUES = [np.linspace(-1, 1, 6).reshape(3, 2), np.array([0.3, -0.2])]


@pytest.mark.parametrize(
    "mode",
    [PYTHON, "CVM", "NUMBA", "FAST_COMPILE", Mode("vm")],
    ids=["python", "cvm", "numba", "fast_compile", "vm"],
)
def test_an_equal_graph_is_not_rewritten_again(mode):
    compiled(*regression(), mode=mode)
    second = compiled(*regression(), mode=mode)
    with enabled(False, "cache"):
        fresh = compiled(*regression(), mode=mode)
    info = cache_info()
    assert (info.misses, info.hits) == (1, 1)
    assert_same_graphs(second, fresh)
    assert_same_results(second, fresh, VALUES)


@given(any_programs(), st.booleans())
def test_random_graphs(program, mutable):
    assert_reused(program, mutable=mutable)


def test_names_and_lines_are_those_of_the_present_graph():
    def make(suffix):
        x = pt.vector("x" + suffix)
        y = pt.exp(x)
        y.name = "y" + suffix
        z = pt.sin(y).sum()
        z.name = "z" + suffix
        return compiled([x], [z, pt.cumsum(y)])

    make("1")
    second = make("2")
    with enabled(False, "cache"):
        fresh = make("2")
    names = [
        [one.name for n in f.maker.fgraph.toposort() for one in n.outputs] for f in (second, fresh)
    ]
    assert names[0] == names[1]
    assert "z2" in names[0]
    assert all("1" not in name for name in names[0] if name)


@pytest.mark.parametrize("names", [("n", "m"), (None, "m"), ("m", None), ("n", "x")])
def test_names_that_are_the_same_or_missing(names):
    def make(name):
        x = pt.vector("n")
        y = pt.exp(x) * 2
        y.name = name
        return compiled([x], [y])

    for name in names:
        function = make(name)
        with enabled(False, "cache"):
            assert_same_graphs(function, make(name))


@pytest.mark.parametrize("names", [("a", "b"), (None, "b"), ("a", None), ("x", "x")])
def test_names_of_constants_that_rewriting_made(names):
    def make(name):
        x = pt.vector("x")
        y = pt.exp(pt.constant(np.array([1.0, 2.0])))
        y.name = name
        return compiled([x], [x / y])

    for name in names:
        function = make(name)
        with enabled(False, "cache"):
            fresh = make(name)
        found, expected = (
            [one.name for one in f.maker.fgraph.toposort()[0].inputs] for f in (function, fresh)
        )
        assert found == expected
    assert cache_info().hits == (names[0] == names[1] or None not in names)


def test_what_a_failing_rewriter_left_is_not_kept(caplog):
    def fail_once(fgraph, node):
        if node.op != pt.sin or failed:
            return [pt.cos(*node.inputs)] if node.op == pt.sin else None
        failed.append(node)
        raise MemoryError("once")

    failed = []
    x = pt.vector("x")
    with registered("fail_once", fail_once), pytensor.config.change_flags(on_opt_error="warn"):
        broken = compiled([x], pt.sin(x))
        whole = compiled([x], pt.sin(x))
    assert cache_info().misses == 1
    assert [one for one in cache_info().not_kept if one.startswith("a rewriter failed: ")]
    assert pytensor_fuse.explain(broken, "cache")[0].startswith("a rewriter failed: ")
    np.testing.assert_array_equal(whole([0.0]), [1.0])


def test_a_failing_call_names_the_line_of_the_present_graph():
    def make():
        x = pt.vector("x")
        return compiled([x], pt.cumsum(x.reshape((2, 2)), axis=0))

    make()
    hit = make()
    node = next(n for n in hit.maker.fgraph.toposort() if type(n.op).__name__ == "Reshape")
    with enabled(False, "cache"):
        fresh = make()
    other = next(n for n in fresh.maker.fgraph.toposort() if type(n.op).__name__ == "Reshape")
    assert line_that_made(node.outputs) == line_that_made(other.outputs)
    assert line_that_made(node.outputs).file == __file__
    with pytest.raises(ValueError, match="reshape"):
        hit(np.zeros(3))


def test_updates_and_shared_variables_are_each_ones_own():
    def make(start):
        state = pytensor.shared(np.array(start), name="state")
        x = pt.vector("x")
        return compiled([x], [x * state], updates={state: state + 1.0}), state

    (f, one), (g, two) = make(1.0), make(5.0)
    assert cache_info().hits == 1
    np.testing.assert_array_equal(f([1.0])[0], [1.0])
    np.testing.assert_array_equal(f([1.0])[0], [2.0])
    np.testing.assert_array_equal(g([1.0])[0], [5.0])
    assert (one.get_value(), two.get_value()) == (3.0, 6.0)


@pytest.mark.parametrize("mode", [PYTHON, "NUMBA"], ids=["python", "numba"])
def test_random_states_are_each_ones_own(mode):
    def make(seed):
        rng = pytensor.shared(np.random.default_rng(seed), name="rng")
        new, draws = pt.random.normal(0, 1, size=(3,), rng=rng, return_next_rng=True)
        return compiled([], [draws], mode=mode, updates={rng: new})

    f, g = make(1), make(2)
    assert cache_info().hits == 1
    with enabled(False, "cache"):
        fresh_f, fresh_g = make(1), make(2)
    for _ in range(3):
        np.testing.assert_array_equal(f()[0], fresh_f()[0])
        np.testing.assert_array_equal(g()[0], fresh_g()[0])


def test_functions_of_numba_share_what_is_compiled():
    with switched(native=False):
        f = compiled(*regression(), mode="NUMBA")
        g = compiled(*regression(), mode="NUMBA")
        assert f.vm.jit_fn is g.vm.jit_fn
        first, second = f(*VALUES), g(VALUES[0] * 2, VALUES[1])
        assert not np.array_equal(first[0], second[0])
        np.testing.assert_array_equal(f(*VALUES)[0], first[0])
        with enabled(False, "cache"):
            assert compiled(*regression(), mode="NUMBA").vm.jit_fn is not f.vm.jit_fn


def test_graphs_of_other_modes_that_numba_links():
    def make():
        x = pt.vector("x")
        return compiled([x], [pt.exp(x)], mode="FAST_COMPILE").maker.fgraph

    def linked(fgraph):
        thunk, [given], [result] = NumbaLinker().accept(fgraph).make_thunk()[:3]
        given.storage[0] = np.zeros(2)
        thunk()
        return result.storage[0]

    changed, whole = make(), make()
    assert cache_info().hits == 1
    changed.replace(changed.outputs[0], changed.inputs[0] - 1)
    np.testing.assert_array_equal(linked(changed), [-1.0, -1.0])
    np.testing.assert_array_equal(linked(whole), [1.0, 1.0])


def test_outputs_are_not_aliased():
    def make():
        x = pt.vector("x")
        return compiled([In(x, borrow=False)], [x, x, x[:1], Out(x + 1, borrow=True)])

    make()
    f = make()
    given = np.array([1.0, 2.0])
    results = f(given)
    for at, one in enumerate(results):
        assert not np.shares_memory(one, given)
        assert not any(np.shares_memory(one, other) for other in results[at + 1 :])


def test_work_in_place_keeps_its_order():
    def make():
        x, i = pt.vector("x"), pt.scalar("i")
        y = pt.cumsum(x)
        parts = [pt.cumsum(y), y[::-1] * i, pt.cumprod(y)]
        return compiled([In(x, mutable=True), i], [*parts, pt.set_subtensor(y[0], i)])

    make()
    hit = make()
    with enabled(False, "cache"):
        fresh = make()
    assert_same_graphs(hit, fresh)
    assert any(node.op.destroy_map for node in hit.maker.fgraph.apply_nodes)
    hit.maker.fgraph.validate()


def test_copies_and_pickles_of_functions():
    compiled(*regression())
    hit = compiled(*regression())
    for again in (hit.copy(), pickle.loads(pickle.dumps(hit))):
        for a, b in zip(again(*VALUES), hit(*VALUES), strict=True):
            np.testing.assert_array_equal(a, b)


def test_reports_go_with_the_graph():
    def make():
        x, y, z = pt.vectors("x", "y", "z")
        return compiled([x, y, z], pt.concatenate([x * 2 + 1, y, pt.exp(z) - 1, pt.cumsum(x)]))

    first, second = make(), make()
    assert pytensor_fuse.explain(first, "joins")
    assert pytensor_fuse.explain(second, "joins") == pytensor_fuse.explain(first, "joins")


def test_threads():
    failures = []

    def work(seed):
        try:
            for _ in range(3):
                case = build(seeded_program(seed, 12))
                f = compiled(list(case.fgraph.inputs), list(case.fgraph.outputs))
                f(*[np.copy(v) for v in case.values])
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed % 2,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_blocks():
    compiled(*regression())
    with enabled(False, "cache"):
        compiled(*regression())
        with enabled("cache"):
            compiled(*regression())
    assert (cache_info().misses, cache_info().hits) == (1, 1)


def test_clearing():
    compiled(*regression())
    clear_cache()
    info = cache_info()
    assert (info.entries, info.nodes, info.misses) == (0, 0, 0)
    compiled(*regression())
    assert cache_info().misses == 1


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(memory, "_heaviest", 60)
    for n in range(20):
        x = pt.vector("x")
        compiled([x], [pt.cumsum(x + n), pt.cumprod(x)])
        assert memory.weight <= 60
    assert 0 < len(memory) < 20
    x = pt.vector("x")
    compiled([x], [pt.cumsum(x + 19), pt.cumprod(x)])
    assert cache_info().hits == 1
    # The data of a constant weighs, too.
    compiled([x], [x + np.arange(100_000.0)])
    assert memory.weight <= 60


def test_what_is_not_kept():
    x = pt.vector("x")
    f = compiled([x], pt.exp(x) + 1, mode=get_mode("NanGuardMode"))
    assert cache_info().misses == 0
    assert cache_info().not_kept == {"the mode is a NanGuardMode": 1}
    assert pytensor_fuse.explain(f, "cache") == ("the mode is a NanGuardMode",)
    query = get_mode("FAST_RUN")._optimizer
    chosen = Mode("py", optdb.query(query))
    compiled([x], pt.exp(x) + 1, mode=chosen)
    assert cache_info().misses == 0
    assert len(cache_info().not_kept) == 2


def test_what_cannot_be_kept_is_compiled_all_the_same(monkeypatch):
    def fail(*_):
        raise BufferError("of a test")

    monkeypatch.setattr("pytensor_fuse._cache.lookup.weight", fail)
    f = compiled(*regression())
    [reason] = pytensor_fuse.explain(f, "cache")
    assert reason == "what came of it cannot be kept: BufferError: of a test"
    with enabled(False, "cache"):
        assert_same_results(f, compiled(*regression()), VALUES)


def test_constants_that_have_no_buffer():
    data = np.array(["2020-01-01"], dtype="datetime64[D]")
    assert weight(1, [Constant(generic, data)], ()) == 1


def test_what_is_profiled_is_rewritten():
    compiled(*regression())
    f = compiled(*regression(), profile=True)
    assert f.profile.rewriting_time > 0
    assert cache_info().not_kept == {"the compilation is profiled": 1}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
def test_after_a_fork():
    """A child uses what its parent kept, also if another thread was compiling at the fork."""
    run_python(
        """
        import os, threading, warnings
        os.environ["PYTENSOR_FUSE_CACHE"] = "memory"
        import pytensor, pytensor.tensor as pt, pytensor_fuse
        from pytensor.compile.mode import Mode

        mode = Mode("py", "fast_run")

        def make(n):
            x = pt.vector("x")
            return pytensor.function([x], pt.cumsum(x + n) * 2, mode=mode)

        make(1)
        stop = threading.Event()

        def work():
            n = 2
            while not stop.is_set():
                make(n)
                n += 1

        thread = threading.Thread(target=work)
        thread.start()
        try:
            for _ in range(5):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DeprecationWarning)
                    child = os.fork()
                if not child:
                    f = make(1)
                    good = pytensor_fuse.explain(f, "cache") == () and f([1.0]) == [4.0]
                    os._exit(0 if good and make(0)([1.0]) == [2.0] else 1)
                _, status = os.waitpid(child, 0)
                assert os.waitstatus_to_exitcode(status) == 0
        finally:
            stop.set()
            thread.join()
        """
    )


def test_what_fails_while_it_is_used_is_rewritten(monkeypatch):
    def fail(*_):
        raise LookupError("of a test")

    compiled(*regression())
    monkeypatch.setattr(Rewritten, "made_for", fail)
    monkeypatch.setattr("pytensor_fuse._cache.variants.large_constants", fail)
    function = compiled(*regression())
    with enabled(False, "cache"):
        assert_same_graphs(function, compiled(*regression()))
    assert "using: LookupError: of a test" in cache_info().failures
    x = pt.vector("x")
    compiled([x], x + np.arange(9.0))
    assert "looking for other data: LookupError: of a test" in cache_info().failures


@pytest.mark.parametrize("mode", ["CVM", PYTHON], ids=["cvm", "python"])
def test_constants_that_rewriting_made_lie_in_memory_as_they_did(mode):
    """BLAS adds up in another order where there are gaps."""
    data = np.random.default_rng(0).normal(size=(120, 4))

    def make(index):
        b = pt.vector("b")
        return compiled([b], pt.constant(data)[index].T @ b, mode=mode)

    for index in [np.s_[::2, ::2], np.s_[::-2, ::2], np.s_[:, 1:3], np.s_[::-1, ::-1]]:
        rows, values = data[index].shape[0], np.random.default_rng(1)
        values = [values.normal(size=rows)]
        with enabled(False, "cache"):
            fresh = make(index)
        for function in (make(index), make(index)):
            assert_same_graphs(function, fresh)
            assert_same_results(function, fresh, values)
    assert cache_info().hits == 4


def test_settings_that_are_found_out_after_the_rewriting(monkeypatch):
    """A graph that was rewritten without them is found again; one that asked for them is not."""
    stock = request.settings
    found = "to be found out"

    def settings():
        return tuple((name, found if name == "blas__ldflags" else value) for name, value in stock())

    monkeypatch.setattr(request, "settings", settings)
    monkeypatch.setattr(request, "setting_as_told", lambda name: dict(settings())[name])
    compiled(*regression())
    found = "-lblas"
    compiled(*regression())
    found = "-lmkl"
    compiled(*regression())
    info = cache_info()
    assert (info.hits, info.misses) == (1, 2)
    pytensor_fuse.cache.clear(disk=False)

    found = "to be found out"

    def finding(fgraph, node):
        nonlocal found
        found = "-lblas"

    with registered("finding", finding):
        compiled(*regression())
        compiled(*regression())
        found = "-lmkl"
        compiled(*regression())
    info = cache_info()
    assert (info.hits, info.misses) == (1, 2)
