"""Graphs that are compiled again, and what a cold cache costs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.compile.executor import Function
from pytensor.compile.mode import Mode
from pytensor.graph.replace import clone_replace

import measure
import pytensor_fuse
from conftest import Pair
from graphs import RADON, STUDENT_T, Reference, large
from rows import Row

MODES = {"python": Mode("py", "fast_run"), "cvm": "CVM", "numba": "NUMBA"}


@pytest.fixture(autouse=True)
def _in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from pytensor_fuse._cache import setting

    monkeypatch.setattr(setting, "_level", setting.Level.MEMORY)
    pytensor_fuse.clear_cache(disk=False)


def nodes(function: Function) -> list[str]:
    return [str(node) for node in function.maker.fgraph.toposort()]


def assert_same(reference: Reference, mode: Mode | str) -> None:
    """Fail unless a function from the cache is as rewritten, and computes what stock's does.

    In Python, PyTensor cannot run kernels of as many operands as some have here.
    """
    fresh = measure.compiled(*reference.build(), ours=True, mode=mode)
    measure.compiled(*reference.build(), ours=True, mode=mode, keep=True)
    function = measure.compiled(*reference.build(), ours=True, mode=mode, keep=True)
    assert pytensor_fuse.why_missed(function) == ()
    assert nodes(function) == nodes(fresh)
    if mode is MODES["python"]:
        return
    values = reference.values(100)
    stock = measure.compiled(*reference.build(), ours=False, mode=mode)(*values)
    for ours, theirs in zip(function(*values), stock, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)


@pytest.mark.parametrize("linker", MODES)
@pytest.mark.parametrize("reference", [RADON, STUDENT_T], ids=lambda r: r.name)
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


@pytest.mark.parametrize("reference", [RADON, STUDENT_T], ids=lambda r: r.name)
def test_cold(pair: Pair, reference: Reference) -> None:
    mode = MODES["python"]

    def cold(inputs: list, outputs: list) -> object:
        pytensor_fuse.clear_cache(disk=False)
        return measure.compiled(inputs, outputs, ours=True, mode=mode, keep=True)

    timings = pair.in_process(
        lambda inputs, outputs: measure.compiled(inputs, outputs, ours=True, mode=mode),
        cold,
        reference.build,
        rounds=15,
    )
    figure = 1 / timings.ratio
    pair.report(Row("cold cache / without", reference.name, figure, "x", ceiling=1.03))


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
    assert pytensor_fuse.cache_info().hits_with_other_data == 1
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
