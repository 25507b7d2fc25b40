"""Whole compiles: the package, with and without accelerators, against stock PyTensor."""

from __future__ import annotations

import gc
import time
from statistics import median
from typing import Any

import numpy as np
import pytensor
import pytest
from pytensor.compile.mode import Mode

import measure
import pytensor_fuse
from conftest import Pair
from graphs import GP, MIXTURE, RADON, STUDENT_T, Reference, deep, large
from pytensor_fuse import freeze
from rows import Row

COMPILE = "whole compile, Python linker"
ALONE = "whole compile, accelerators on against off"
MODE = Mode(linker="py", optimizer="fast_run")


def compiled(reference: Reference, **features: Any) -> Any:
    inputs, outputs = reference.build()
    with pytensor_fuse.enabled(**features):
        return pytensor.function(inputs, outputs, mode=MODE)


def seconds(reference: Reference, **features: Any) -> float:
    """Processor time of one compile; the graph is built, and garbage collected, before."""
    inputs, outputs = reference.build()
    with pytensor_fuse.enabled(**features):
        gc.collect()
        start = time.process_time()
        function = pytensor.function(inputs, outputs, mode=MODE)
        elapsed = time.process_time() - start
    del function
    return elapsed


@pytest.mark.parametrize(
    ("reference", "rounds"),
    [
        pytest.param(RADON, 11, id="radon"),
        pytest.param(deep(20), 21, id="deep-20"),
        pytest.param(GP, 11, id="gaussian-process"),
        pytest.param(STUDENT_T, 5, id="student-t-40"),
        pytest.param(MIXTURE, 11, id="mixture"),
        pytest.param(large(25), 5, id="large-25"),
        pytest.param(deep(400), 3, id="deep-400"),
        pytest.param(large(100), 3, id="large-100"),
    ],
)
def test_whole_compiles(pair: Pair, reference: Reference, rounds: int) -> None:
    sides: list[dict[str, Any]] = [{"flag": False}, {"accelerators": False}, {}]
    stock, without, ours = (compiled(reference, **side) for side in sides)
    assert freeze(ours.maker.fgraph).digest == freeze(without.maker.fgraph).digest
    # Kernels of more operands than NumPy takes do not run with the Python linker.
    if reference is not STUDENT_T and not reference.name.startswith("large"):
        values = reference.values(10)
        results = [[np.asarray(v) for v in function(*values)] for function in (ours, stock)]
        assert measure.largest_difference(*results) <= measure.ROUNDING

    def round_of_all() -> list[float]:
        return [seconds(reference, **side) for side in sides]

    round_of_all()
    with measure.frozen_heap():
        times = pair.alone(round_of_all, rounds=rounds)
    pair.report(Row(COMPILE, reference.name, median(s / o for s, _, o in times), "x"))
    pair.report(Row(ALONE, reference.name, median(w / o for _, w, o in times), "x"))
