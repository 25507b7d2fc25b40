"""Graphs that are compiled again, and what a cold cache costs."""

from __future__ import annotations

import numpy as np
import pytest
from pytensor.compile.mode import Mode

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


def assert_same_results(reference: Reference, mode: Mode | str) -> None:
    """Fail unless a function from the cache computes what stock's does."""
    values = reference.values(100)
    stock = measure.compiled(*reference.build(), ours=False, mode=mode)(*values)
    measure.compiled(*reference.build(), ours=True, mode=mode, keep=True)
    function = measure.compiled(*reference.build(), ours=True, mode=mode, keep=True)
    assert pytensor_fuse.why_missed(function) == ()
    for ours, theirs in zip(function(*values), stock, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)


@pytest.mark.parametrize("linker", MODES)
@pytest.mark.parametrize("reference", [RADON, STUDENT_T], ids=lambda r: r.name)
def test_compiled_again(pair: Pair, reference: Reference, linker: str) -> None:
    mode = MODES[linker]
    assert_same_results(reference, mode)
    timings = pair.in_process(
        lambda inputs, outputs: measure.compiled(inputs, outputs, ours=False, mode=mode),
        lambda inputs, outputs: measure.compiled(inputs, outputs, ours=True, mode=mode, keep=True),
        reference.build,
        rounds=7,
    )
    pair.report(Row(f"compiled again ({linker})", reference.name, timings.ratio, "x", floor=10))


def test_large_graph_compiled_again(pair: Pair) -> None:
    reference = large(100)
    assert_same_results(reference, MODES["python"])
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
