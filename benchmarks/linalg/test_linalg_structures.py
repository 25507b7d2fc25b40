"""Matrices of known structure with the feature `linalg`: against LAPACK by hand, against stock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.linalg.by_feature import compiled
from benchmarks.linalg.structures import CASES
from benchmarks.measuring.rows import Report, Row
from benchmarks.measuring.turns import call_times, ratio_of, seconds

LINKERS = ["NUMBA", "CVM"]


# Stock's has an identity of all rows, which Numba does not store.
@pytest.mark.filterwarnings("ignore:Cannot cache compiled function")
@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("name", CASES)
def test_run_time(report: Report, request: pytest.FixtureRequest, name: str, linker: str) -> None:
    if "N = 2000" in name and not request.config.getoption("--large-matrices"):
        pytest.skip("needs --large-matrices")
    case = CASES[name]
    inputs, outputs = case.graph()
    arguments = case.values()
    ours = compiled(inputs, outputs, linker, ours=True)
    calls: dict[str, Callable[..., Any]] = {"ours": ours}
    if case.least is not None:
        calls["stock"] = compiled(inputs, outputs, linker, ours=False)
    if case.most is not None:
        calls["LAPACK"] = case.reference
    numbers = case.reference(*arguments)
    for side, call in calls.items():
        for mine, theirs in zip(call(*arguments), numbers, strict=True):
            # Stock's determinant of a Kronecker product overflows.
            if side == "ours" or np.isfinite(mine).all():
                np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-8)
    # LAPACK is to use one thread: the clock of this one does not see others.
    clock = time.thread_time
    once = max(seconds(call, *arguments, clock=clock) for call in calls.values())
    rounds = 61 if once < 0.02 else 7 if once < 1 else 3
    times = call_times(calls, arguments, rounds, clock=clock)
    if case.most is not None:
        against = ratio_of(times["ours"], times["LAPACK"])
        report(Row(f"ours / LAPACK by hand ({linker})", name, against, ceiling=case.most))
    if case.least is not None:
        faster = ratio_of(times["stock"], times["ours"])
        report(Row(f"linalg ({linker})", name, faster, floor=case.least))
