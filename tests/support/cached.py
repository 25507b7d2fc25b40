"""Comparison of two functions: the oracle of the cache is a compilation without it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytensor
from pytensor.compile.executor import Function
from pytensor.compile.io import In
from pytensor.compile.mode import Mode, optdb
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse import enabled
from pytensor_fuse._cache.data.rewritten import Rewritten
from pytensor_fuse._cache.key.places import Origins
from pytensor_fuse._cache.store.memory import memory
from pytensor_fuse._cache.store.origin import origin_of
from pytensor_fuse._pytensor.rewriting.failures import noted_failures
from support.random_graphs.building import Program, build

PYTHON = Mode("py", "fast_run")


def rewritten(function: Function) -> Rewritten:
    """Return the graph of a function, independent of its variables."""
    fgraph = function.maker.fgraph
    fgraph.check_integrity()
    return Rewritten.of(fgraph, Origins(fgraph.inputs, fgraph.outputs))[0]


def assert_same_graphs(function: Function, fresh: Function) -> None:
    """Assert that two functions have the same graphs, with the same order and roles."""
    difference = rewritten(function).difference(rewritten(fresh))
    assert difference is None, difference
    for ours, theirs in zip(function.maker.inputs, fresh.maker.inputs, strict=True):
        assert ours.mutable == theirs.mutable
        assert getattr(ours, "borrow", None) == getattr(theirs, "borrow", None)
        assert (ours.update is None) == (theirs.update is None)
    names = [one.name for one in function.maker.fgraph.outputs]
    assert names == [one.name for one in fresh.maker.fgraph.outputs]


def assert_same_results(function: Function, fresh: Function, values: list[Any]) -> None:
    """Assert that two functions compute the same, twice, bit for bit."""
    for _ in range(2):
        results = [f(*[np.copy(value) for value in values]) for f in (function, fresh)]
        ours, theirs = (r if isinstance(r, list) else [r] for r in results)
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a, b)
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def compiled(inputs: Any, outputs: Any, mode: Any = PYTHON, **options: Any) -> Function:
    """Compile, with inputs that may be unused."""
    return pytensor.function(inputs, outputs, mode=mode, on_unused_input="ignore", **options)


def assert_reused(program: Program, mode: Any = PYTHON, *, mutable: bool) -> list[Function]:
    """Assert that a graph from the cache equals one compiled without it; return both functions.

    PyTensor's own rewriters fail on some graphs, whose results are not cached.
    """

    def make() -> Function:
        again = build(program).fgraph
        inputs = [In(one, mutable=mutable) for one in again.inputs]
        return compiled(inputs, list(again.outputs), mode)

    memory.clear()
    make()
    hit = make()
    with enabled(False, "cache"), noted_failures() as failures:
        fresh = make()
    origin = origin_of(hit.maker.fgraph)
    assert origin is not None
    assert (origin.made is None) == bool(failures), origin.reason
    assert_same_graphs(hit, fresh)
    assert_same_results(hit, fresh, build(program).values)
    return [hit, fresh]


@contextmanager
def registered(name: str, function: Any) -> Iterator[None]:
    """Run a rewriter of elementwise nodes in canonicalization, in a block."""
    database = optdb["canonicalize"]
    database.register(name, node_rewriter([Elemwise])(function), "fast_run", "fast_compile")
    try:
        yield
    finally:
        for tag, rewriters in list(vars(database)["__db__"].items()):
            for one in [one for one in rewriters if one.name == name]:
                rewriters.remove(one)
            if not rewriters:
                del vars(database)["__db__"][tag]
        database._names.remove(name)
