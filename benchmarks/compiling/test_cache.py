"""Graphs that are compiled again, and what a cold cache costs."""

from __future__ import annotations

import itertools
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
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

import pytensor_fuse
from benchmarks.graphs.named import (
    GP,
    MIXTURE,
    RADON,
    STUDENT_T,
    Reference,
    has_pymc,
    large,
    pymc_references,
)
from benchmarks.measuring.processes import REWRITING, Results, run_in_turns, samples
from benchmarks.measuring.results import assert_same as assert_same_results
from benchmarks.measuring.results import assert_same_reported
from benchmarks.measuring.rows import Report, Row
from benchmarks.measuring.sides import compiled, side
from benchmarks.measuring.turns import Timings, frozen_heap, in_turns, interleaved

MODES = {"python": Mode("py", "fast_run"), "cvm": "CVM", "numba": "NUMBA"}
CACHED = {**REWRITING, "PYTENSOR_FUSE_CACHE": "disk"}
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
    fresh = compiled(*reference.build(), ours=True, mode=mode)
    compiled(*reference.build(), ours=True, mode=mode, keep=True)
    function = compiled(*reference.build(), ours=True, mode=mode, keep=True)
    assert pytensor_fuse.explain(function, "cache") == ()
    assert nodes(function) == nodes(fresh)
    if mode is MODES["python"]:
        return
    values = reference.values(100)
    stock = compiled(*reference.build(), ours=False, mode=mode)(*values)
    assert_same_results(function(*values), stock)


@pytest.mark.parametrize(
    ("reference", "linker", "floor", "rounds"),
    [
        *((reference, linker, 10, 7) for reference in MODELS for linker in MODES),
        (large(100), "python", 50, 3),
    ],
    ids=str,
)
def test_compiled_again(
    report: Report, reference: Reference, linker: str, floor: float, rounds: int
) -> None:
    mode = MODES[linker]
    assert_same(reference, mode)
    timings = interleaved(
        partial(compiled, ours=False, mode=mode),
        partial(compiled, ours=True, mode=mode, keep=True),
        reference.build,
        rounds=rounds,
    )
    report(Row(f"compiled again ({linker})", reference.name, timings.ratio, floor=floor))


@pytest.mark.parametrize("linker", ["python", "native"])
@pytest.mark.parametrize("level", ["memory", "disk"])
@pytest.mark.parametrize("reference", [RADON, MIXTURE, STUDENT_T], ids=str)
def test_cold(
    report: Report, reference: Reference, level: str, linker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Report the extra cost of a compile whose graph is cached for the first time.

    With the Python linker a compile is rewriting alone; with machine code it is what users have.
    """
    from pytensor_fuse._cache.store import setting

    monkeypatch.setattr(setting, "_level", setting.Level(level))
    native = linker == "native"
    mode = "NUMBA" if native else MODES["python"]

    compile_it = partial(compiled, ours=True, mode=mode, native=native)

    def emptied() -> tuple[list[Any], list[Any]]:
        # Each graph is forgotten, but the file stays: only the first one of a machine makes it.
        pytensor_fuse.cache.clear(disk=False)
        path = pytensor_fuse.cache.info().path
        if path is not None and Path(path).exists():
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("DELETE FROM entries")
        return reference.build()

    if native:
        assert pytensor_fuse.explain(compile_it(*emptied(), keep=True), "native").is_native
    timings = interleaved(
        partial(compile_it, keep=False),
        partial(compile_it, keep=True),
        emptied,
        rounds=15,
    )
    figure = 1 / timings.ratio
    what = "cold cache / without" if level == "memory" else "cold cache on disk / without"
    ceiling = 1.02 if level == "memory" else 1.03
    report(Row(f"{what} ({linker})", reference.name, figure, ceiling=ceiling))


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
@pytest.mark.parametrize("reference", [RADON, STUDENT_T], ids=str)
def test_refit(report: Report, reference: Reference, linker: str) -> None:
    mode = MODES[linker]
    seeds = itertools.count()
    ours = partial(compiled, ours=True, mode=mode, keep=True)
    ours(*with_other_data(reference, next(seeds)))
    graph = with_other_data(reference, next(seeds))
    function = ours(*graph)
    assert pytensor_fuse.cache.info().hits_with_other_data == 1
    assert nodes(function) == nodes(compiled(*graph, ours=True, mode=mode))
    timings = interleaved(
        partial(compiled, ours=False, mode=mode),
        ours,
        lambda: with_other_data(reference, next(seeds)),
        rounds=7,
    )
    report(Row(f"refit with other data ({linker})", reference.name, timings.ratio, floor=8))


def in_warm_processes(function: str, *given: str, rounds: int, **options: Any) -> Results:
    """What new processes report, after one of each side, whose files both find."""
    name = f"benchmarks.compiling.processes:{function}"
    # What is compiled is kept by both, and what is rewritten by ours.
    for times in (1, rounds):
        results = run_in_turns(name, *given, rounds=times, **options)
    assert_same_reported(results)
    return results


@pytest.mark.parametrize("linker", ["CVM", "NUMBA"])
@pytest.mark.parametrize("reference", MODELS, ids=str)
def test_new_process(report: Report, reference: Reference, linker: str, tmp_path: Path) -> None:
    given = ("function_time", reference.name, linker)
    results = in_warm_processes(*given, rounds=3, directory=tmp_path, variables=CACHED)
    assert all(result["hits"] == 1 for result in results["ours"])
    timings = Timings(**samples(results, "seconds"))
    floor = {"CVM": 8, "NUMBA": 4}[linker]
    what = f"compiled in a new process ({linker.lower()})"
    report(Row(what, reference.name, timings.ratio, floor=floor))


@pytest.mark.skipif(not has_pymc(), reason="PyMC is not installed")
@pytest.mark.parametrize("native", ["on", "off"])
@pytest.mark.parametrize("name", ["student-t(40)", "pymc student-t(40)", "radon", "pymc radon"])
def test_whole_script(report: Report, name: str, native: str, tmp_path: Path) -> None:
    """A script that was run before: it imports PyMC, builds a model, compiles and calls it.

    Stock finds what Numba compiled, ours its machine code (``on``, the default) or the same.
    """
    variables = {**CACHED, "PYTENSOR_FUSE_NATIVE": native}
    options = {"directory": tmp_path, "variables": variables}
    results = in_warm_processes("script", name, rounds=5, **options)
    timings = Timings(**samples(results, "process"))
    what = "a script's second run" + (", machine code off" if native == "off" else "")
    # Most of a small model's script is the import of PyMC.
    floor = 2 if native == "on" and "student" in name else None
    report(Row(what, name, timings.ratio, floor=floor))


@pytest.mark.skipif(not has_pymc(), reason="PyMC is not installed")
def test_sampled_again(report: Report) -> None:
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
            side(ours=ours),
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

    sides = {"stock": lambda: compiling(False), "ours": lambda: compiling(True)}
    results = in_turns(sides, 5, warmup=1)
    rounds = list(zip(*results.values(), strict=True))
    for (_, stock), (_, ours) in rounds:
        # The order of additions differs, and a sampler drifts apart; the first draws are the same.
        np.testing.assert_allclose(ours[0, 0], stock[0, 0], rtol=1e-3)
    figure = median(ours / stock for (stock, _), (ours, _) in rounds)
    report(Row("compiling of a second pm.sample", "radon", figure, ceiling=0.1))


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


def test_key(report: Report) -> None:
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

    with pytensor_fuse.enabled(), frozen_heap():
        key()
        results = [key() for _ in range(9)]
    assert len({request for _, request, _ in results}) == 1
    (n_nodes,) = {n for _, _, n in results}
    milliseconds = 1e3 * median(seconds for seconds, _, _ in results)
    report(Row("key", f"large(200), {n_nodes:,} nodes", milliseconds, " ms", ceiling=30))
