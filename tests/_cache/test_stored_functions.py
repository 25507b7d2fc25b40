"""Other processes find what Numba compiled of a graph without translating it; or translate it."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import wraps
from threading import Thread

import numba
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import AbstractFunctionGraph
from pytensor.link.numba.dispatch import basic
from pytensor.link.numba.dispatch.random import numba_core_rv_funcify

from pytensor_fuse import enabled
from pytensor_fuse._cache.link import stored_functions
from pytensor_fuse._cache.store import setting
from pytensor_fuse._cache.store.memory import memory
from pytensor_fuse._cache.store.setting import Level
from pytensor_fuse._pytensor.linking import numba_sources
from pytensor_fuse._pytensor.linking.numba_sources import are_known, numba_rules
from pytensor_fuse.cache import info as cache_info
from support.cached import assert_same_graphs, assert_same_results, compiled
from support.programs.processes import run_python, with_disk_cache

pytestmark = pytest.mark.usefixtures("numba_alone")

X = np.linspace(-1, 1, 6).reshape(3, 2)
COLUMNS = np.asfortranarray(X)


@pytest.fixture(autouse=True)
def code(monkeypatch, tmp_path):
    """Let Numba keep what it compiles in a folder of the test; return the folder."""
    folder = tmp_path / "numba"
    folder.mkdir()
    monkeypatch.setattr("pytensor.link.numba.cache.NUMBA_CACHE_PATH", folder)
    return folder


@pytest.fixture
def translated(monkeypatch):
    """Note the graphs that are translated."""
    found = []
    stock = basic.numba_funcify_ensure_cache

    def note(op, *args, **kwargs):
        if isinstance(op, AbstractFunctionGraph):
            found.append(op)
        return stock(op, *args, **kwargs)

    monkeypatch.setattr(basic, "numba_funcify_ensure_cache", note)
    return found


def make():
    x = pt.matrix("x")
    return compiled([x], pt.exp(x) - 1.5, mode="NUMBA")


def as_in_another_process(make=make):
    """Compile it anew with nothing in memory; return the function."""
    memory.clear()
    hits = cache_info().hits_on_disk
    function = make()
    assert cache_info().hits_on_disk == hits + 1
    return function


def test_nothing_is_translated(on_disk, translated):
    make()(X)
    assert len(translated) == 1
    again = as_in_another_process()
    assert_same_results(again, again, [X])
    assert len(translated) == 1
    with enabled(False, "cache"):
        fresh = make()
    assert len(translated) == 2
    assert_same_graphs(again, fresh)
    assert_same_results(again, fresh, [X])
    assert not cache_info().failures
    assert make().vm.jit_fn is again.vm.jit_fn


def test_code_that_was_never_compiled(on_disk, translated):
    make()
    again = as_in_another_process()
    assert len(translated) == 2
    assert_same_results(again, make(), [X])


def test_arguments_of_other_types(on_disk, translated):
    """Numba compiles for the layout of arrays, which no type of PyTensor's says."""
    first = make()
    expected = first(X)
    again = as_in_another_process()
    # What becomes of the function's graph does not matter.
    fgraph = again.maker.fgraph
    fgraph.replace(fgraph.outputs[0], fgraph.inputs[0], import_missing=True)
    np.testing.assert_array_equal(again(COLUMNS), expected)
    assert len(translated) == 2
    assert again.vm.jit_fn.targetoptions == first.vm.jit_fn.targetoptions
    np.testing.assert_array_equal(again(X), expected)
    assert len(translated) == 2
    # What was compiled then is on disk, too.
    third = as_in_another_process()
    np.testing.assert_array_equal(third(COLUMNS), expected)
    np.testing.assert_array_equal(third(X), expected)
    assert len(translated) == 2


def test_code_that_is_gone_when_it_is_needed(on_disk, translated, code):
    expected = make()(X)
    again = as_in_another_process()
    for path in code.iterdir():
        path.unlink()
    np.testing.assert_array_equal(again(X), expected)
    assert len(translated) == 2


def test_threads(on_disk, translated):
    expected = make()(X)
    function = as_in_another_process().vm.jit_fn
    results = []
    threads = [Thread(target=lambda: results.append(function(COLUMNS)[0])) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(translated) == 2
    assert [result.tolist() for result in results] == 4 * [expected.tolist()]


def rule(op, node=None, **kwargs):
    return basic.numba_njit(lambda x: x - 1)


@contextmanager
def other_rules(class_, rules):
    """Let somebody else say how Numba computes an op."""
    stock = {dispatcher: dispatcher.dispatch(class_) for dispatcher in rules}
    for dispatcher, own in rules.items():
        dispatcher.register(class_)(own)
    try:
        yield
    finally:
        for dispatcher, one in stock.items():
            dispatcher.register(class_)(one)


def other_rule(class_, wrapped=lambda own: own):
    own = wrapped(lambda *args, **kwargs: (rule(*args), None))
    rules = {basic.numba_funcify: rule, basic.numba_funcify_and_cache_key: own}
    return other_rules(class_, rules)


def as_pytensors_own(own):
    """A rule that says of itself what PyTensor's says."""
    return wraps(basic.numba_funcify_FunctionGraph)(own)


def decremented():
    x = pt.vector("x")
    return compiled([x], pt.cumsum(x), mode="NUMBA")


@pytest.mark.parametrize("level", ["memory", "disk"])
@pytest.mark.parametrize("wrapped", [lambda own: own, as_pytensors_own], ids=["plain", "wrapped"])
def test_rules_of_others(wrapped, level, request, translated):
    if level == "disk":
        request.getfixturevalue("on_disk")
    x = np.array([1.0, 2.0])
    assert decremented()(x).tolist() == [1.0, 3.0]
    with other_rule(pt.extra_ops.CumOp, wrapped):
        assert not are_known(numba_rules())
        if level == "disk":
            memory.clear()
        assert decremented()(x).tolist() == [0.0, 1.0]
        assert len(translated) == 2
        assert decremented()(x).tolist() == [0.0, 1.0]
        assert len(translated) == 2
    assert decremented()(x).tolist() == [1.0, 3.0]
    assert cache_info().hits == 3


def test_rules_of_others_for_random_variables(on_disk):
    size = pt.iscalar("size")
    rng = pytensor.shared(np.random.default_rng(1))

    def make():
        draws = pt.random.normal.make_node(rng, pt.stack([size]), 0.0, 1.0).outputs[1]
        return compiled([size], draws, mode="NUMBA")

    def one(op, node):
        # With a version of its own, which Numba's code has in its key.
        return basic.numba_njit(lambda rng, mean, scale: mean + 1), 77

    drawn = make()(2)
    with other_rules(pt.random.basic.NormalRV, {numba_core_rv_funcify: one}):
        assert make()(2).tolist() == [1.0, 1.0]
        memory.clear()
        assert make()(2).tolist() == [1.0, 1.0]
    assert as_in_another_process(make)(2).shape == drawn.shape


def test_all_tables_of_rules_are_known():
    found = {
        (name.removeprefix("pytensor.link.numba.dispatch."), key)
        for name, module in list(sys.modules.items())
        if name.startswith("pytensor.link.numba.")
        for key, one in vars(module).items()
        if hasattr(one, "dispatch") and hasattr(one, "registry") and one.__module__ == name
    }
    assert found == set(numba_sources._DISPATCHERS)


def test_rules_for_ops_of_others_change_nothing(on_disk, translated):
    class Own(pt.extra_ops.CumOp):
        pass

    Own.__module__ = "somebody"
    make()(X)
    basic.numba_funcify.register(Own)(rule)
    assert rule in numba_rules()
    as_in_another_process()
    assert len(translated) == 1


def test_there_are_rules():
    assert are_known(numba_rules())
    assert len(numba_rules()) > 400


@pytest.mark.parametrize(
    "change",
    [
        {"numba__fastmath": False},
        {"compiler_verbose": True},
        {"numba__cache": False},
    ],
    ids=lambda change: next(iter(change)),
)
def test_settings(change, on_disk, translated):
    make()(X)
    memory.clear()
    with pytensor.config.change_flags(**change):
        make()
    assert len(translated) == 2


def test_other_versions(on_disk, translated, monkeypatch):
    make()(X)
    monkeypatch.setattr(stored_functions, "versions", lambda: (("numba", "1"),))
    as_in_another_process()
    assert len(translated) == 2


def test_other_data_are_other_code(on_disk, translated):
    x = pt.vector("x")

    def fit(data):
        return compiled([x], (x * pt.constant(data)).sum(), mode="NUMBA")

    first, second = np.arange(40.0), np.arange(40.0) + 1
    ones = np.ones(40)
    for _ in range(2):
        assert fit(first)(ones) == first.sum()
        assert fit(second)(ones) == second.sum()
        memory.clear()
    assert cache_info().hits_with_other_data
    assert len(translated) == 2


def test_constants_that_lie_otherwise_are_other_code(on_disk, translated):
    x = pt.matrix("x")

    def make(data):
        return compiled([x], x * pt.constant(data), mode="NUMBA")

    data = np.arange(12.0).reshape(3, 4)
    value = np.full((3, 4), 0.5)
    for lies in (data, np.asfortranarray(data)):
        memory.clear()
        np.testing.assert_array_equal(make(lies)(value), value * data)
    assert len(translated) == 2


def test_in_memory_alone_nothing_is_written(translated, on_disk, monkeypatch):
    monkeypatch.setattr(stored_functions, "source_of", lambda converted: pytest.fail("asked"))
    monkeypatch.setattr(setting, "_level", Level.MEMORY)
    make()
    assert not cache_info().failures


@pytest.mark.parametrize("changed", [{"numba__cache": False}, {"numba__fastmath": False}], ids=str)
def test_settings_are_those_of_the_compilation(changed, on_disk, translated):
    first = make()
    expected = first(X)
    again = as_in_another_process()
    with pytensor.config.change_flags(**changed):
        np.testing.assert_array_equal(again(COLUMNS), expected)
    assert again.vm.jit_fn.targetoptions == first.vm.jit_fn.targetoptions
    assert as_in_another_process()(COLUMNS).tolist() == expected.tolist()
    assert len(translated) == 2


def test_a_rule_that_comes_before_the_translation(on_disk):
    """What then has no key is not written under the one that was kept."""
    x = pt.matrix("x")

    def make():
        return compiled([x], pt.cumsum(x, axis=0), mode="NUMBA")

    expected = make()(X)
    again = as_in_another_process(make)
    with other_rule(pt.extra_ops.CumOp):
        again(COLUMNS)
    np.testing.assert_array_equal(as_in_another_process(make)(COLUMNS), expected)


def test_the_source_can_be_jitted_by_others(on_disk, translated):
    expected = make()(X)
    again = as_in_another_process()
    source = again.vm.jit_fn.py_func
    assert source.__module__ == basic.__name__
    assert len(translated) == 1
    (result,) = numba.njit(source)(X)
    np.testing.assert_array_equal(result, expected)
    assert len(translated) == 2
    np.testing.assert_array_equal(again(COLUMNS), expected)
    assert len(translated) == 2


PROGRAM = """
import sys
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytensor_fuse
from pytensor.link.numba.linker import NumbaLinker

RULES = "pytensor.link.numba.dispatch.basic"
A, x = pt.matrix("A"), pt.vector("x")
spd = A @ A.T + pt.eye(3)
rng = pytensor.shared(np.random.default_rng(1), name="rng")
state, draws = pt.random.normal(x, 1.0, rng=rng).owner.outputs
graphs = {
    "sorted": ([x], [pt.sort(x), pt.exp(x)], {}),
    "solve": ([A, x], [pt.linalg.solve(spd, x)], {}),
    "drawn": ([x], [draws], {rng: state}),
}
early = 0
for name, (inputs, outputs, updates) in graphs.items():
    function = pytensor.function(inputs, outputs, updates=updates, mode="NUMBA",
                                 on_unused_input="ignore")
    early += RULES not in sys.modules
    values = [np.arange(9.0).reshape(3, 3) % 4 if one is A else np.array([0.5, 2.0, 1.0])
              for one in inputs]
    for _ in range(2):
        print(name, [np.asarray(one).tobytes().hex() for one in function(*values)])
info = pytensor_fuse.cache.info()
assert not info.failures, info
print(info.hits_on_disk, early)
"""


def test_processes(tmp_path):
    """Another process computes the same, and loads no rules before the first function is called."""

    def run():
        output = run_python(PROGRAM, env=with_disk_cache(tmp_path)).stdout
        *results, counts = output.splitlines()
        return results, tuple(map(int, counts.split()))

    expected, (hits, n_early) = run()
    assert (hits, n_early) == (0, 0)
    results, (hits, n_early) = run()
    assert results == expected
    assert (hits, n_early) == (3, 1)


@pytest.mark.parametrize("needs_numba", [True, False])
def test_nothing_that_decides_is_registered_late(needs_numba: bool) -> None:
    """Neither rewriting nor Numba's rules register rewriters but those of modules loaded before."""
    run_python(
        """
        import os
        import sys

        os.environ["PYTENSOR_FUSE_NATIVE"] = "on"
        from importlib import import_module

        import pytensor
        from pytensor import tensor as pt
        from pytensor.compile.mode import get_mode
        import pytensor_fuse
        from pytensor_fuse._pytensor.rewriting.environment import load_registering, registered
        """,
        f"needs_numba = {needs_numba}",
        """
        load_registering(get_mode("NUMBA"), lambda: needs_numba)
        assert ("pytensor.sparse" in sys.modules) == needs_numba
        before = registered()
        if needs_numba:
            import_module("pytensor.link.numba.dispatch")
        x = pt.vector("x")
        y = pt.exp(x).sum()
        pytensor.function([x], [y, pt.grad(y, x)], mode="NUMBA")
        assert registered() == before
        assert ("pytensor.sparse" in sys.modules) == needs_numba
        """,
    )


@pytest.mark.parametrize(
    ("native", "expression"),
    [
        ("on", "pt.dot(x, x)"),
        ("off", "pt.exp(x)"),
        ("on", "pt.exp(x)"),
        ("on", "pt.dot(DATA, x[:3, 0]).sum()"),
        ("on", "pt.dot(pt.constant(DATA).T, x[:9, 0]).sum()"),
    ],
    ids=["in parts", "off", "native", "data", "transposed data"],
)
def test_second_compile_of_a_process_is_a_hit(native: str, expression: str) -> None:
    """Linking loads nothing that changes what is registered, whoever links."""
    run_python(f"""
        import os

        os.environ["PYTENSOR_FUSE_NATIVE"] = "{native}"
        os.environ["PYTENSOR_FUSE_CACHE"] = "memory"
        import numpy as np
        import pytensor, pytensor_fuse
        from pytensor import tensor as pt

        DATA = np.arange(27.0).reshape(9, 3)
        for expected in (0, 1, 2):
            x = pt.tensor("x", dtype="float64", shape=(9, 9))
            pytensor.function([x], {expression}, mode="NUMBA")
            assert pytensor_fuse.cache.info().hits == expected
    """)
