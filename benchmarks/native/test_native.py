"""Machine code of our own against Numba's and JAX's: first values, calls, memory.

The scripts ``cold.py``, ``calls.py`` and ``overhead.py`` measure more, with a command line each.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from benchmarks.measuring.processes import ONE_THREAD
from benchmarks.measuring.rows import Report, Row
from benchmarks.measuring.turns import ratio_of
from benchmarks.native import calls, overhead
from benchmarks.native.cold import STEPS
from benchmarks.native.figures import Figure
from benchmarks.native.models import FIVE, MODELS

pytest.importorskip("pymc")

SIDES = ["stock", "ours", *(["jax"] if find_spec("jax") else [])]


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    # JAX reads it when it is first used; BLAS has read its part already, see README.
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ONE_THREAD.items():
            patch.setenv(name, value)
        yield


def rows_of(figures: list[Figure]) -> list[Row]:
    return [row for figure in figures for row in figure.rows()]


@pytest.mark.parametrize(
    ("step", "name"),
    [
        (step, name)
        for step in ("first", "script", "edited", "nutpie", "draws", "sample")
        for name in STEPS[step][1]
    ],
)
def test_first_value(report: Report, step: str, name: str) -> None:
    if step in ("nutpie", "draws"):
        pytest.importorskip("nutpie")
    report(*rows_of(STEPS[step][0](MODELS[name], SIDES, 3)))


@pytest.mark.parametrize("size", ["own", "many"])
@pytest.mark.parametrize("name", FIVE)
def test_calls(report: Report, name: str, size: str) -> None:
    report(*rows_of(calls.figures(MODELS[name], SIDES, 21, size)))


@pytest.mark.parametrize("name", overhead.MEMORY)
def test_memory(report: Report, name: str) -> None:
    report(*rows_of(overhead.memory(name, SIDES, 3)))


def test_nothing_native(report: Report) -> None:
    times = overhead.nothing(41)
    what = "native: compile of what has no rule, on / off"
    ratio = ratio_of(times["on"], times["off"])
    report(Row(what, overhead.NOTHING_NATIVE, ratio, ceiling=overhead.NOTHING))
