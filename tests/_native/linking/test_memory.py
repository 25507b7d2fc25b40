"""The data of machine code are freed with the last function that can call it."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

import pytensor_fuse
from pytensor_fuse._cache.key.cache_key import Request
from pytensor_fuse._cache.store.memory import Memory, memory
from pytensor_fuse._native.runtime import objects
from support.native.functions import native_function
from support.programs.processes import run_python

# A megabyte of doubles.
N = 1 << 17


pytestmark = pytest.mark.usefixtures("empty_memory")


def data(seed):
    return np.random.default_rng(seed).normal(size=N)


def with_data(seed):
    """Return a function of machine code with a megabyte of data."""
    x = pt.vector("x")
    return native_function([x], pt.exp(x[0] * data(seed)).sum())


def constant_of(function):
    """Return a weak reference to the data in the layout that machine code reads."""
    [found] = [one for one in function.vm.compiled.constants if one.nbytes >= 8 * N]
    return weakref.ref(found)


def test_code_lives_as_long_as_the_entry_of_its_graph():
    function = with_data(1)
    constant = constant_of(function)
    again = with_data(1)
    assert again.vm.compiled is function.vm.compiled
    del function, again
    gc.collect()
    assert constant() is not None
    pytensor_fuse.cache.clear(disk=False)
    gc.collect()
    assert constant() is None
    assert not objects._loaded


def test_functions_work_after_the_cache_was_cleared():
    function = with_data(2)
    wanted = function(np.ones(1))
    pytensor_fuse.cache.clear(disk=False)
    gc.collect()
    assert function(np.ones(1)) == wanted
    assert with_data(2)(np.ones(1)) == wanted


def test_code_counts_in_what_the_cache_may_hold(monkeypatch):
    monkeypatch.setattr(memory, "_heaviest", 10_000)
    constants = []
    for seed in range(6):
        constants.append(constant_of(with_data(seed)))
        gc.collect()
        n_bytes = sum(one().nbytes for one in constants if one() is not None)
        assert n_bytes // 1024 < memory.weight <= 10_000
    assert constants[-1]() is not None
    assert sum(one() is not None for one in constants) == 2


def test_what_is_too_heavy_with_its_code_is_kept_without(monkeypatch):
    with_data(3)
    [(_, entry)] = memory.kept()
    assert entry.native is not None
    weight = memory.weight
    assert weight == entry.weight + entry.code_weight
    pytensor_fuse.cache.clear(disk=False)
    monkeypatch.setattr(memory, "_heaviest", weight - 1)
    with_data(3)
    [(_, other)] = memory.kept()
    assert other.native is None
    assert memory.weight == other.weight == entry.weight


def test_an_entry_of_two_requests_counts_twice():
    with_data(4)
    [(request, entry)] = memory.kept()
    small, weight = Memory(4 * memory.weight), entry.weight + entry.code_weight
    for number in range(2):
        small.put(Request(request.graph, (("number", number),), request.registrations), entry)
    assert small.weight == 2 * weight
    small.put_code(entry, entry.native, entry.code_weight + 5)
    assert small.weight == 2 * (weight + 5)
    assert small.has_room(entry, entry.code_weight)
    assert not small.has_room(entry, 2 * weight)
    small.clear()
    assert small.weight == 0
    small.put_code(entry, None, 0)
    assert small.weight == 0


def test_a_heavy_entry_drops_no_others():
    x = pt.vector("x")
    for k in range(3):
        pytensor.function([x], x * (k + 2.0), mode="NUMBA")
    entries = memory.kept()
    request_of_heavy, heavy = entries[-1]
    others = [entry for _, entry in entries if entry is not heavy]
    bound = 2 * memory.weight
    kept = Memory(bound)
    for request, entry in entries:
        kept.put(request, entry)
    code, weight = heavy.native, heavy.code_weight
    try:
        kept.put_code(heavy, code, bound + 1)
        assert [entry for _, entry in kept.kept()] == others
        kept.put(request_of_heavy, heavy)
        assert [entry for _, entry in kept.kept()] == others
        assert kept.weight == sum(entry.weight + entry.code_weight for entry in others)
    finally:
        heavy.native, heavy.code_weight = code, weight


def test_a_rule_registered_again_is_asked():
    """The code of an equal graph was made by the previous rule."""
    run_python("""
        import os

        os.environ["PYTENSOR_FUSE_NATIVE"] = "on"
        os.environ["PYTENSOR_FUSE_CACHE"] = "memory"
        import numpy as np
        import pytensor, pytensor.tensor as pt, pytensor_fuse
        from pytensor.tensor.sort import SortOp
        from pytensor_fuse import explain
        from pytensor_fuse.native import lower

        def times(factor):
            def rule(op, node, context, inputs):
                builder, x = context.builder, inputs[0]
                scale = builder.constant("f64", factor)
                return [
                    context.materialized(
                        x.dtype, x.lengths, lambda index: builder.op("mul", scale, x.at(index))
                    )
                ]

            return rule

        def result():
            x = pt.vector("x")
            f = pytensor.function([x], pt.sort(x), mode="NUMBA")
            return f(np.ones(2)).tolist(), explain(f, "native").is_native

        for factor in (2.0, 3.0):
            lower.register(SortOp)(times(factor))
            for _ in range(2):
                assert result() == ([factor, factor], True)
        lower.register(SortOp, refuses=lambda op, node: "no")(times(4.0))
        assert result() == ([1, 1], False)
    """)
