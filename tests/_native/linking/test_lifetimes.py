"""Machine code that Numba's code calls lives as long as that can run, and no longer."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import numba
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

import pytensor_fuse
from pytensor_fuse._cache.store.memory import memory
from pytensor_fuse._native.linking import lifetimes
from pytensor_fuse._native.linking.regions import parts_of
from support.native.functions import native_function
from support.programs.processes import run_python, with_disk_cache
from support.switching import switched

# A megabyte of doubles.
N = 1 << 17
DATA = np.random.default_rng(1).normal(size=N)
X = np.array([0.5, -1.0, 2.0])


pytestmark = pytest.mark.usefixtures("empty_memory")


def forget():
    pytensor_fuse.cache.clear(disk=False)
    # The dispatcher's compiled code is freed after it.
    gc.collect()
    gc.collect()


def whole():
    """Return a function of machine code, its value at X, and a weak reference to its data."""
    x = pt.vector("x")
    function = native_function([x], [pt.exp(x[0] * DATA).sum()])
    return function, np.exp(X[0] * DATA).sum(), of_data(function.vm.compiled)


def apart():
    """Return a function in parts, its value at X, and a weak reference to the data of a region."""
    x = pt.vector("x")
    function = pytensor.function(
        [x], [pt.exp(pt.linalg.pinv((x * 2)[None])[0, 0] * DATA).sum()], mode="NUMBA"
    )
    data = of_data(region_of(function).compiled)
    return function, np.exp(np.linalg.pinv(2 * X[None])[0, 0] * DATA).sum(), data


def region_of(function):
    """Return the region that contains the data."""
    regions = parts_of(function.maker.fgraph).regions
    [found] = [one for one in regions if any(each.nbytes > N for each in one.compiled.constants)]
    return found


def of_data(compiled):
    [found] = [one for one in compiled.constants if one.nbytes >= 8 * N]
    return weakref.ref(found)


def caller_of(call):
    """Return a function that keeps only Numba's compiled code of another function alive."""
    scope = {"call": call}
    exec("def caller(x): return call(x)[0]", scope)
    jitted = numba.njit(scope["caller"])
    jitted(X)
    del scope["call"]
    # Numba keeps the typed code for display, which refers to the dispatcher.
    for kinds, made in jitted.overloads.items():
        jitted.overloads[kinds] = made._replace(type_annotation=None)
    return jitted


@pytest.mark.parametrize("make", [whole, apart])
def test_data_live_as_long_as_the_function_its_dispatcher_and_callers(make):
    function, wanted, data = make()
    np.testing.assert_allclose(function(X)[0], wanted)
    forget()
    np.testing.assert_allclose(function(X)[0], wanted)
    call = function.vm.jit_fn
    del function
    forget()
    np.testing.assert_allclose(call(X)[0], wanted)
    # One function calls the other, whose dispatcher is then dropped.
    first = caller_of(call)
    scope = {"first": first}
    exec("def second(x): return first(x) * 2", scope)
    second = numba.njit(scope["second"])
    np.testing.assert_allclose(second(X), 2 * wanted)
    scope.clear()
    dispatcher = weakref.ref(call)
    del call
    forget()
    assert dispatcher() is None
    np.testing.assert_allclose(first(X), wanted)
    del first
    forget()
    np.testing.assert_allclose(second(X), 2 * wanted)
    assert data() is not None
    del second
    forget()
    assert data() is None


def test_callbacks_keep_what_they_call():
    function, wanted, _ = whole()
    scope = {"call": function.vm.jit_fn, "np": np}
    exec("def callback(a): return call(np.array([a]))[0][()]", scope)
    callback = numba.cfunc("float64(float64)")(scope["callback"])
    scope.clear()
    del function
    forget()
    np.testing.assert_allclose(callback.ctypes(X[0]), wanted)


@pytest.mark.parametrize("make", [whole, apart])
def test_what_is_freed_all_the_same_raises(make):
    function, wanted, data = make()
    function(X)
    caller = caller_of(function.vm.jit_fn)
    lifetimes._kept.clear()
    del function
    forget()
    assert data() is None
    for _ in range(2):
        with pytest.raises(RuntimeError, match="has been freed: keep the function, or its jit_fn"):
            caller(X)
    # Numba's compiled code looks up regions only, by their digests.
    again, *_ = make()
    if make is apart:
        np.testing.assert_allclose(caller(X), wanted)
    else:
        with pytest.raises(RuntimeError, match="has been freed"):
            caller(X)
    np.testing.assert_allclose(again(X)[0], wanted)


def test_equal_regions_share_their_data():
    with switched(cache=False):
        first, wanted, data = apart()
        second, *_ = apart()
    assert region_of(first).place is region_of(second).place
    del first
    forget()
    np.testing.assert_allclose(second(X)[0], wanted)
    del second
    forget()
    assert data() is None


def test_the_cache_counts_the_data_of_regions():
    function, _, data = apart()
    function(X)
    [(_, entry)] = memory.kept()
    assert entry.code_weight >= data().nbytes // 1024
    assert memory.weight == entry.weight + entry.code_weight
    del function
    gc.collect()
    # The entry keeps Numba's result for the graph.
    assert data() is not None
    again, wanted, _ = apart()
    np.testing.assert_allclose(again(X)[0], wanted)


PROGRAM = """
    import sys
    sys.path.insert(0, TESTS)
    from _native.linking.test_lifetimes import *
    from pytensor_fuse._cache.store import setting
    from pytensor_fuse._cache.store.setting import Level
    setting._level = Level(LEVEL)
    function, wanted, data = apart()
    np.testing.assert_allclose(function(X)[0], wanted)
    call = function.vm.jit_fn
    is_translated = "_LateTranslation" not in str(type(call.py_func.__globals__))
    is_loaded = not any(call.stats.cache_misses.values()) and bool(call.stats.cache_hits)
    del function
    forget()
    np.testing.assert_allclose(call(X)[0], wanted)
    caller = caller_of(call)
    del call
    forget()
    np.testing.assert_allclose(caller(X), wanted)
    assert data() is not None
    del caller
    forget()
    assert data() is None
    function, wanted, data = apart()
    np.testing.assert_allclose(function(X)[0], wanted)
    del function
    forget()
    assert data() is None
    print(is_translated, is_loaded)
"""


def test_what_numba_loads_from_disk_keeps_it_as_well(tmp_path):
    """With and without this package's cache, which finds Numba's code without translating."""
    tests = str(Path(__file__).parents[2])
    found = []
    for level in ("disk", "disk", "off"):
        program = PROGRAM.replace("TESTS", repr(tests)).replace("LEVEL", repr(level))
        ran = run_python(program, env=with_disk_cache(tmp_path, PYTENSOR_FUSE_CACHE=level))
        found.append(ran.stdout.split())
    assert found == [["True", "False"], ["False", "True"], ["True", "True"]]
