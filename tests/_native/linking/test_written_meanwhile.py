"""Rewritten graphs are on disk when their function is returned, however it was linked."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.maker import FunctionMaker

import pytensor_fuse
from pytensor_fuse._cache import lookup
from pytensor_fuse._cache.data.inner_constants import inner_constants
from pytensor_fuse._cache.store import disk, setting
from pytensor_fuse._cache.store.meanwhile import catch_up
from pytensor_fuse._cache.store.memory import memory
from pytensor_fuse._cache.store.setting import Level

WORKER = "pytensor_fuse cache"


@pytest.fixture(autouse=True)
def _on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(setting, "_level", Level.DISK)
    monkeypatch.setattr(disk, "default_disk", lambda: disk.Disk(tmp_path / "kept"))
    pytensor_fuse.cache.clear(disk=False)


@pytest.fixture
def writers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record which threads write rewritten graphs."""
    found: list[str] = []
    store = lookup._store

    def noting(*args):
        found.append(threading.current_thread().name)
        store(*args)

    monkeypatch.setattr(lookup, "_store", noting)
    return found


def make(name: str | None = "x"):
    x = pt.vector(name)
    return pytensor.function([x], [pt.log1p(pt.exp(x)) * 3, pt.cumsum(x)], mode="NUMBA")


def assert_on_disk() -> None:
    pytensor_fuse.cache.clear(disk=False)
    f = make()
    info = pytensor_fuse.cache.info()
    assert (info.hits_on_disk, info.misses, dict(info.failures)) == (1, 0, {})
    assert pytensor_fuse.explain(f, "native").is_native
    value = np.array([0.1, -2.0, 3.0])
    with pytensor_fuse.enabled(False, "cache"):
        x = pt.vector("x")
        oracle = pytensor.function(
            [x], [pt.log1p(pt.exp(x)) * 3, pt.cumsum(x)], mode=pytensor.compile.mode.Mode("py")
        )
    for own, other in zip(f(value), oracle(value), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-14)


def test_it_is_written_while_llvm_compiles(writers):
    make()
    assert writers == [WORKER]
    assert_on_disk()


def test_it_is_written_where_llvm_need_not_compile(writers):
    make()
    memory.clear()
    # An unnamed input gives another key for the same machine code.
    make(None)
    assert writers == [WORKER, threading.current_thread().name]
    assert pytensor_fuse.cache.info().misses == 2
    assert_on_disk()


def test_it_is_written_where_llvm_fails(writers, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr("pytensor_fuse._native.linking.graphs.compile_graph", fail)
    monkeypatch.setattr(
        "pytensor_fuse._native.linking.linker._stock_create", lambda *_: pytest.skip("by Numba")
    )
    with pytest.warns(RuntimeWarning), pytest.raises(pytest.skip.Exception):
        make()
    assert writers == [threading.current_thread().name]


def test_what_is_not_linked_is_written_with_the_next(writers):
    x = pt.vector("x")
    FunctionMaker(
        [pytensor.In(x)],
        [pytensor.Out(pt.cosh(x) * 2)],
        pytensor.compile.mode.get_mode("NUMBA"),
    )
    assert writers == []
    make()
    assert writers == [threading.current_thread().name, WORKER]
    catch_up()
    assert len(writers) == 2


def test_what_is_written_to_while_it_waits_is_not_kept(writers):
    """Another process would find the new data under the key of the old data."""
    x, data = pt.vector("x"), np.arange(4.0)
    square = pt.constant(data) * pt.constant(data)
    steps = pytensor.scan(
        lambda state: state / 2 + square, outputs_info=[x], n_steps=3, return_updates=False
    )
    FunctionMaker(
        [pytensor.In(x)], [pytensor.Out(steps[-1])], pytensor.compile.mode.get_mode("NUMBA")
    )
    if not memory.kept():
        pytest.skip("graphs with inner graphs that may be changed are not kept")
    [(_, entry)] = memory.kept()
    for constant in inner_constants(entry.rewritten.ops):
        constant.data[...] = 0
    catch_up()
    assert writers == [threading.current_thread().name]
    assert list(pytensor_fuse.cache.info().not_stored) == [
        "the data of its inner graphs were written to meanwhile"
    ]
    assert disk.default_disk().size() == (0, 0)
