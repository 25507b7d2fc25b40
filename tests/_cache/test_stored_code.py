"""Other processes find the C code of a graph's nodes without PyTensor's keys; or ask PyTensor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.scalar import exp
from pytensor.tensor.elemwise import Elemwise

from _cache.test_loaded import inner_graphs_are_frozen, modules, with_inner_function
from _cache.test_reuse import VALUES, regression
from pytensor_fuse import enabled
from pytensor_fuse._cache.key import processor as processor_module
from pytensor_fuse._cache.key.processor import processor
from pytensor_fuse._cache.link import stored_code
from pytensor_fuse._cache.link.linked_only import forget_code
from pytensor_fuse._cache.store.memory import memory
from pytensor_fuse._pytensor.linking.c_thunks import loaded_module, settings_of_code
from pytensor_fuse.cache import info as cache_info
from support.cached import assert_same_graphs, assert_same_results, compiled
from support.programs.processes import run_python, with_disk_cache

pytestmark = pytest.mark.skipif(processor() is None, reason="the system tells no processors apart")


def make():
    return compiled(*regression(), mode="CVM")


def as_in_another_process():
    """Compile it anew with nothing in memory; return the function."""
    memory.clear()
    hits = cache_info().hits_on_disk
    function = make()
    assert cache_info().hits_on_disk == hits + 1
    return function


def test_no_keys_are_made(on_disk, asked):
    first = make()
    assert len(asked) > 3
    asked.clear()
    again = as_in_another_process()
    assert not asked
    assert modules(again) == modules(first)
    with enabled(False, "cache"):
        fresh = make()
    assert_same_graphs(again, fresh)
    assert_same_results(again, fresh, VALUES)
    assert not cache_info().failures


def test_in_memory_alone_nothing_is_written(asked):
    make()
    memory.clear()
    asked.clear()
    make()
    assert len(asked) > 3


@pytest.mark.parametrize(
    "what", ["written to", "gone", "another processor", "another compiler", "other settings"]
)
def test_what_may_be_other_code_is_left_to_pytensor(what, on_disk, asked, monkeypatch):
    once = len(modules(make()))
    stamp = stored_code._stamp
    victim = {"written to": (1, 2), "gone": None, "another compiler": (1, 2)}.get(what)

    def other_stamp(path):
        of_compiler = str(path) == pytensor.config.cxx
        return victim if of_compiler == (what == "another compiler") else stamp(path)

    if what == "another processor":
        monkeypatch.setattr(stored_code, "processor", lambda: "another one")
    elif what != "other settings":
        monkeypatch.setattr(stored_code, "_stamp", other_stamp)
    asked.clear()
    flags = " -DPYTENSOR_FUSE_STORED" if what == "other settings" else ""
    with pytensor.config.change_flags(gcc__cxxflags=pytensor.config.gcc__cxxflags + flags):
        again = as_in_another_process()
        # Elementwise kernels and all else.
        assert len(asked) >= once
        with enabled(False, "cache"):
            fresh = make()
    assert_same_results(again, fresh, VALUES)


def test_where_processors_are_not_told_apart_pytensor_is_asked(on_disk, asked, monkeypatch):
    monkeypatch.setattr(stored_code, "processor", lambda: None)
    make()
    asked.clear()
    as_in_another_process()
    assert asked


def sources(function):
    """Return the code in C of a function's nodes."""
    return [Path(one.__file__).with_name("mod.cpp").read_text() for one in modules(function)]


@pytest.mark.parametrize("settings", [{"openmp_elemwise_minsize": 3}, {"lib__amdlibm": True}])
def test_settings_that_code_depends_on(settings):
    """They are in no digest of PyTensor's, but in arguments of the compiler and versions of ops."""
    told = settings_of_code()
    with pytensor.config.change_flags(**settings):
        assert settings_of_code() != told


def test_twins_of_such_settings(on_disk):
    x = pt.vector("x")
    for length in (200000, 3):
        memory.clear()
        with pytensor.config.change_flags(openmp=True, openmp_elemwise_minsize=length):
            made = compiled([x], [Elemwise(exp)(x)], mode=Mode("cvm", None))
        assert f">={length})" in sources(made)[0]


@pytest.mark.parametrize("first", [False, True])
def test_ops_with_another_openmp_than_the_setting(first, on_disk):
    """It is no property of theirs, but in their code."""
    x = pt.vector("x")
    made = [
        compiled([x], [Elemwise(exp, openmp=own)(x)], mode=Mode("cvm", None))
        for own in (first, not first)
    ]
    assert ["pragma omp" in sources(one)[0] for one in made] == [first, not first]


def test_another_environment_has_code_of_its_own(on_disk, asked, monkeypatch):
    """Code is linked to the libraries of the environment that it was made in."""
    make()
    asked.clear()
    stored_code._libraries.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(stored_code.sys, "prefix", "/another")
        as_in_another_process()
    assert len(asked) > 3
    stored_code._libraries.cache_clear()
    asked.clear()
    as_in_another_process()
    assert not asked


@pytest.mark.parametrize("junk", [b"", [(0,)], [(0, ("missing", (1, 2)), None, ())], 3])
def test_what_cannot_be_read_is_not_there(junk, on_disk, asked, monkeypatch):
    make()
    monkeypatch.setattr(type(on_disk), "put", lambda *_: None)
    get = type(on_disk).get

    def damaged(self, key):
        found = get(self, key)
        return junk if isinstance(found, list) else found

    monkeypatch.setattr(type(on_disk), "get", damaged)
    asked.clear()
    again = as_in_another_process()
    assert len(asked) > 3
    with enabled(False, "cache"):
        assert_same_results(again, make(), VALUES)


def test_some_nodes_have_no_code(on_disk, asked, monkeypatch):
    """What PyTensor runs in Python is asked for again; the others' code is found."""

    def refuse(self, *args):
        raise NotImplementedError

    monkeypatch.setattr(pt.extra_ops.CumOp, "c_code", refuse)

    def make():
        x = pt.vector("x")
        return compiled([x], [pt.cumsum(x), pt.exp(x).sum()], mode="CVM")

    make()
    memory.clear()
    asked.clear()
    found = make()
    assert not [name for name in asked if "Cum" not in name]
    np.testing.assert_allclose(found([1.0, 2.0])[0], [1.0, 3.0])


@inner_graphs_are_frozen
def test_code_of_inner_functions(on_disk, asked):
    compiled(*with_inner_function(), mode="CVM")
    asked.clear()
    forget_code()
    memory.clear()
    again = compiled(*with_inner_function(), mode="CVM")
    assert not asked
    with enabled(False, "cache"):
        fresh = compiled(*with_inner_function(), mode="CVM")
    assert_same_results(again, fresh, [np.array([0.5, 1.0]), np.array([3.0, 4.0])])


PROGRAM = """
    import sys
    import numpy as np, pytensor, pytensor.tensor as pt
    import pytensor_fuse
    from pytensor.link.c.cmodule import GCC_compiler, ModuleCache
    calls = []
    for owner, name in ((GCC_compiler, "compile_args"), (ModuleCache, "refresh")):
        def counted(*args, stock=getattr(owner, name), name=name, **options):
            calls.append(name)
            return stock(*args, **options)
        setattr(owner, name, staticmethod(counted) if name == "compile_args" else counted)
    x, y = pt.vector("x"), pt.matrix("y")
    out = [pt.log(1 + pt.exp(x)).sum(), pt.cumsum(x), pt.exp(y)[1:, 0] * x[0], y.T[::2] + 1]
    f = pytensor.function([x, y], out, mode="CVM")
    for result in f(np.arange(3.0), np.arange(6.0).reshape(3, 2)):
        print(result.tolist())
    info = pytensor_fuse.cache.info()
    assert not info.failures, info
    print(info.hits_on_disk, len(calls))
"""


def test_processes(tmp_path):
    """Another process asks neither the compiler nor the directory of modules."""

    def run():
        output = run_python(PROGRAM, env=with_disk_cache(tmp_path)).stdout
        *results, counts = output.splitlines()
        return results, tuple(map(int, counts.split()))

    expected, (hits, n_calls) = run()
    assert hits == 0
    assert n_calls > 0
    assert run() == (expected, (1, 0))


def test_a_file_is_loaded_once():
    compiled(*regression(), mode="CVM")
    module = modules(compiled(*regression(), mode="CVM"))[0]
    assert loaded_module(Path(module.__file__)) is module


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", None),
        ("processor\t: 0\n\n", None),
        ("model name\t: A\nflags\t\t: avx\n\nprocessor\t: 1\n", "model name\t: A\nflags\t\t: avx"),
        ("processor\t: 0\nflags\t\t: fpu\ncpu MHz\t\t: 1\n\n", "flags\t\t: fpu"),
        ("Features\t: asimd\nCPU part\t: 0xd0c\n\n", "CPU part\t: 0xd0c\nFeatures\t: asimd"),
        ("flags\t\t: cut off", None),
    ],
)  # fmt: skip
def test_processors(text, told, tmp_path, monkeypatch):
    path = tmp_path / "cpuinfo"
    path.write_text(text)
    monkeypatch.setattr(processor_module, "_INFORMATION", str(path))
    assert processor.__wrapped__() == told
    monkeypatch.setattr(processor_module, "_INFORMATION", str(tmp_path / "none"))
    assert processor.__wrapped__() is None
