"""Graphs that are compiled again, and what a cold cache costs."""

from __future__ import annotations

import itertools
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import numpy as np
import pytensor.compile.maker
import pytensor.tensor as pt
import pytest
from pytensor.compile.executor import Function
from pytensor.compile.io import SymbolicOutput
from pytensor.compile.maker import FunctionMaker
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.replace import clone_replace

import child
import measure
import pytensor_fuse
from conftest import Pair
from graphs import (
    GP,
    MIXTURE,
    RADON,
    STUDENT_T,
    Reference,
    has_pymc,
    large,
    pymc_references,
)
from rows import Row

MODES = {"python": Mode("py", "fast_run"), "cvm": "CVM", "numba": "NUMBA"}
MODELS = [RADON, GP, MIXTURE, STUDENT_T, *pymc_references()]


@pytest.fixture(autouse=True)
def _in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from pytensor_fuse._cache.store import setting

    monkeypatch.setattr(setting, "_level", setting.Level.MEMORY)
    pytensor_fuse.cache.clear(disk=False)


def nodes(function: Function) -> list[str]:
    return [str(node) for node in function.maker.fgraph.toposort()]


def assert_same(reference: Reference, mode: Mode | str) -> None:
    """Fail unless a function from the cache is as rewritten, and computes what stock's does.

    In Python, PyTensor cannot run kernels of as many operands as some have here.
    """
    fresh = measure.compiled(*reference.build(), ours=True, mode=mode)
    measure.compiled(*reference.build(), ours=True, mode=mode, keep=True)
    function = measure.compiled(*reference.build(), ours=True, mode=mode, keep=True)
    assert pytensor_fuse.explain(function, "cache") == ()
    assert nodes(function) == nodes(fresh)
    if mode is MODES["python"]:
        return
    values = reference.values(100)
    stock = measure.compiled(*reference.build(), ours=False, mode=mode)(*values)
    assert measure.largest_difference(function(*values), stock) <= measure.ROUNDING


@pytest.mark.parametrize("linker", MODES)
@pytest.mark.parametrize("reference", MODELS, ids=lambda r: r.name)
def test_compiled_again(pair: Pair, reference: Reference, linker: str) -> None:
    mode = MODES[linker]
    assert_same(reference, mode)
    timings = pair.in_process(
        lambda inputs, outputs: measure.compiled(inputs, outputs, ours=False, mode=mode),
        lambda inputs, outputs: measure.compiled(inputs, outputs, ours=True, mode=mode, keep=True),
        reference.build,
        rounds=7,
    )
    pair.report(Row(f"compiled again ({linker})", reference.name, timings.ratio, "x", floor=10))


def test_large_graph_compiled_again(pair: Pair) -> None:
    reference = large(100)
    assert_same(reference, MODES["python"])
    timings = pair.in_process(
        lambda inputs, outputs: measure.compiled(inputs, outputs, ours=False, mode=MODES["python"]),
        lambda inputs, outputs: measure.compiled(
            inputs, outputs, ours=True, mode=MODES["python"], keep=True
        ),
        reference.build,
        rounds=3,
    )
    pair.report(Row("compiled again (python)", reference.name, timings.ratio, "x", floor=50))


@pytest.mark.parametrize("linker", ["python", "native"])
@pytest.mark.parametrize("level", ["memory", "disk"])
@pytest.mark.parametrize("reference", [RADON, MIXTURE, STUDENT_T], ids=lambda r: r.name)
def test_cold(
    pair: Pair, reference: Reference, level: str, linker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Report the extra cost of a compile whose graph is cached for the first time.

    With the Python linker a compile is rewriting alone; with machine code it is what users have.
    """
    from pytensor_fuse._cache.store import setting

    monkeypatch.setattr(setting, "_level", setting.Level(level))
    native = linker == "native"
    mode = "NUMBA" if native else MODES["python"]

    def compiled(inputs: list[Any], outputs: list[Any], *, keep: bool) -> Function:
        return measure.compiled(inputs, outputs, ours=True, mode=mode, keep=keep, native=native)

    def emptied() -> tuple[list[Any], list[Any]]:
        # Each graph is forgotten, but the file stays: only the first one of a machine makes it.
        pytensor_fuse.cache.clear(disk=False)
        path = pytensor_fuse.cache.info().path
        if path is not None and Path(path).exists():
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("DELETE FROM entries")
        return reference.build()

    if native:
        assert pytensor_fuse.explain(compiled(*emptied(), keep=True), "native").is_native
    timings = pair.in_process(
        lambda inputs, outputs: compiled(inputs, outputs, keep=False),
        lambda inputs, outputs: compiled(inputs, outputs, keep=True),
        emptied,
        rounds=15,
    )
    figure = 1 / timings.ratio
    what = "cold cache / without" if level == "memory" else "cold cache on disk / without"
    ceiling = 1.02 if level == "memory" else 1.03
    pair.report(Row(f"{what} ({linker})", reference.name, figure, "x", ceiling=ceiling))


# The inputs of these that are data, and what would pick from coefficients.
DATA = {"radon": ("county", "floor", "log_radon"), "student-t(40)": ("x", "y")}


def with_other_data(reference: Reference, seed: int) -> tuple[list[Any], list[Any]]:
    """Return a graph with data as constants: other numbers for each seed, the same groups."""
    inputs, outputs = reference.build()
    rng = np.random.default_rng(seed)
    data = {}
    for one, value in zip(inputs, reference.values(919), strict=True):
        if one.name in DATA[reference.name]:
            new = value if value.dtype.kind == "i" else rng.normal(size=value.shape)
            data[one] = pt.constant(new, name=one.name)
    return [one for one in inputs if one not in data], clone_replace(list(outputs), data)


@pytest.mark.parametrize("linker", ["python", "cvm"])
@pytest.mark.parametrize("reference", [RADON, STUDENT_T], ids=lambda r: r.name)
def test_refit(pair: Pair, reference: Reference, linker: str) -> None:
    mode = MODES[linker]
    seeds = itertools.count()

    def ours(inputs: list[Any], outputs: list[Any]) -> Function:
        return measure.compiled(inputs, outputs, ours=True, mode=mode, keep=True)

    ours(*with_other_data(reference, next(seeds)))
    graph = with_other_data(reference, next(seeds))
    function = ours(*graph)
    assert pytensor_fuse.cache.info().hits_with_other_data == 1
    assert nodes(function) == nodes(measure.compiled(*graph, ours=True, mode=mode))
    timings = pair.in_process(
        lambda inputs, outputs: measure.compiled(inputs, outputs, ours=False, mode=mode),
        ours,
        lambda: with_other_data(reference, next(seeds)),
        rounds=7,
    )
    pair.report(
        Row(f"refit with other data ({linker})", reference.name, timings.ratio, "x", floor=8)
    )


@pytest.mark.parametrize("linker", ["CVM", "NUMBA"])
@pytest.mark.parametrize("reference", MODELS, ids=lambda r: r.name)
def test_new_process(pair: Pair, reference: Reference, linker: str, tmp_path: Path) -> None:
    def run(ours: bool) -> dict[str, Any]:
        side = "ours" if ours else "stock"
        flags = f"base_compiledir={tmp_path / side}"
        arguments = ("function", reference.name, linker, side)
        return child.run(*arguments, ours=ours, flags=flags, cache="disk")

    # What is compiled is kept by both, and what is rewritten by ours.
    run(False), run(True)
    results = pair.in_processes(run, rounds=3)
    for stock, ours in results:
        assert ours["hits"] == 1
        assert_same_results(ours, stock)
    timings = measure.Timings.of_results(results, "seconds")
    floor = {"CVM": 8, "NUMBA": 4}[linker]
    what = f"compiled in a new process ({linker.lower()})"
    pair.report(Row(what, reference.name, timings.ratio, "x", floor=floor))


def assert_same_results(ours: dict[str, Any], stock: dict[str, Any]) -> None:
    both = ([np.array(value) for value in side["results"]] for side in (ours, stock))
    assert measure.largest_difference(*both) <= measure.ROUNDING


@pytest.mark.skipif(not has_pymc(), reason="PyMC is not installed")
@pytest.mark.parametrize("native", ["on", "off"])
@pytest.mark.parametrize("name", ["student-t(40)", "pymc student-t(40)", "radon", "pymc radon"])
def test_whole_script(
    pair: Pair, name: str, native: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script that was run before: it imports PyMC, builds a model, compiles and calls it.

    Stock finds what Numba compiled, ours its machine code (``on``, the default) or the same.
    """
    monkeypatch.setenv("PYTENSOR_FUSE_NATIVE", native)

    def run(ours: bool) -> dict[str, Any]:
        side = "ours" if ours else "stock"
        flags = f"base_compiledir={tmp_path / side}"
        return child.run("script", name, side, ours=ours, flags=flags, cache="disk")

    run(False), run(True)
    results = pair.in_processes(run, rounds=5)
    for stock, ours in results:
        assert_same_results(ours, stock)
    timings = measure.Timings.of_results(results, "process")
    what = "a script's second run" + (", machine code off" if native == "off" else "")
    # Most of a small model's script is the import of PyMC.
    floor = 2 if native == "on" and "student" in name else None
    pair.report(Row(what, name, timings.ratio, "x", floor=floor))


@pytest.mark.skipif(not has_pymc(), reason="PyMC is not installed")
def test_sampled_again(pair: Pair) -> None:
    """How long a second `pm.sample` compiles, of an equal model that is built anew."""
    import pymc as pm

    def model() -> Any:
        rng = np.random.default_rng(1)
        county = rng.integers(85, size=919)
        floor = rng.integers(2, size=919).astype("float64")
        with pm.Model() as made:
            mu_a, mu_b = pm.Normal("mu_a", 0, 10), pm.Normal("mu_b", 0, 10)
            sigma_a, sigma_b = pm.HalfNormal("sigma_a", 5), pm.HalfNormal("sigma_b", 5)
            a = mu_a + pm.Normal("z_a", 0, 1, shape=85) * sigma_a
            b = mu_b + pm.Normal("z_b", 0, 1, shape=85) * sigma_b
            pm.Normal("y", a[county] + b[county] * floor, pm.HalfCauchy("s", 5), observed=floor)
        return made

    def compiling(ours: bool) -> tuple[float, np.ndarray]:
        with (
            measure.side(ours=ours),
            pytensor_fuse.enabled(ours, "cache"),
            model(),
            compiling_seconds() as seconds,
        ):
            trace = pm.sample(
                draws=10,
                tune=10,
                chains=1,
                cores=1,
                random_seed=1,
                progressbar=False,
                compute_convergence_checks=False,
                # Others compile functions of their own.
                nuts_sampler="pymc",
            )
        return sum(seconds), trace.posterior["mu_a"].to_numpy()

    for ours in (False, True):
        compiling(ours)
    results = pair.alone(lambda: [compiling(ours) for ours in (False, True)], rounds=5)
    for (_, stock), (_, ours) in results:
        # The order of additions differs, and a sampler drifts apart; the first draws are the same.
        np.testing.assert_allclose(ours[0, 0], stock[0, 0], rtol=1e-3)
    figure = median(ours / stock for (stock, _), (ours, _) in results)
    pair.report(Row("compiling of a second pm.sample", "radon", figure, "x", ceiling=0.1))


@contextmanager
def compiling_seconds() -> Iterator[list[float]]:
    """Note how long this thread works on compiling, from the graph that is given to a function.

    What compiles as part of another compilation is counted once.
    """
    seconds: list[float] = []
    depth = 0

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            depth += 1
            start = time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                depth -= 1
                if not depth:
                    seconds.append(time.thread_time() - start)

        return run

    maker: Any = pytensor.compile.maker
    with (
        mock.patch.object(FunctionMaker, "__init__", timed(FunctionMaker.__init__)),
        mock.patch.object(FunctionMaker, "create", timed(FunctionMaker.create)),
        mock.patch.object(
            maker,
            "construct_function_ins_and_outs",
            timed(maker.construct_function_ins_and_outs),
        ),
    ):
        yield seconds


def test_key(pair: Pair) -> None:
    """How long it takes to tell the largest graph from all others."""
    from pytensor_fuse._cache.key.cache_key import request_for
    from pytensor_fuse._cache.key.places import Origins

    mode = get_mode(MODES["python"])

    def key() -> tuple[float, Any, int]:
        inputs, outputs = large(200).build()
        specs = [FunctionMaker.wrap_in(one) for one in inputs]
        results = [SymbolicOutput(one) for one in outputs]
        fgraph, _ = FunctionMaker.create_fgraph(specs, results, force_clone=True)
        start = time.thread_time()
        request = request_for(
            specs, results, fgraph, Origins(fgraph.inputs, fgraph.outputs), mode, None
        )
        return time.thread_time() - start, request, len(fgraph.apply_nodes)

    with pytensor_fuse.enabled(), measure.frozen_heap():
        key()
        results = pair.alone(key, rounds=9)
    assert len({request for _, request, _ in results}) == 1
    (n_nodes,) = {n for _, _, n in results}
    milliseconds = 1e3 * median(seconds for seconds, _, _ in results)
    pair.report(Row("key", f"large(200), {n_nodes:,} nodes", milliseconds, " ms", ceiling=30))
