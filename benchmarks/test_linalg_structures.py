"""Matrices of known structure with the feature `linalg`: against LAPACK by hand, against stock."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np
import pytensor
import pytest
from pytensor.compile.executor import Function

import pytensor_fuse
from conftest import Pair
from linalg_structures import CASES
from rows import Row
from support.switching import switched

LINKERS = ["NUMBA", "CVM"]


def compiled(inputs: list[Any], outputs: list[Any], linker: str, *, ours: bool) -> Function:
    """Compile with the feature alone, or by stock PyTensor."""
    only = {name: ours and name == "linalg" for name in pytensor_fuse.status()}
    with pytensor_fuse.enabled(False), switched(**only):
        function = pytensor.function(inputs, outputs, mode=linker)
    function.trust_input = True
    return function


def seconds(call: Callable[..., Any], arguments: Sequence[Any]) -> float:
    # LAPACK is to use one thread: the clock of this one does not see others.
    start = time.thread_time()
    call(*arguments)
    return time.thread_time() - start


# Stock's has an identity of all rows, which Numba does not store.
@pytest.mark.filterwarnings("ignore:Cannot cache compiled function")
@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("name", CASES)
def test_run_time(pair: Pair, request: pytest.FixtureRequest, name: str, linker: str) -> None:
    if "N = 2000" in name and not request.config.getoption("--large-matrices"):
        pytest.skip("needs --large-matrices")
    case = CASES[name]
    inputs, outputs = case.graph()
    arguments = case.values()
    numbers = [np.asarray(one) for one in case.reference(*arguments)]
    calls = [compiled(inputs, outputs, linker, ours=True)]
    if case.least is not None:
        calls.append(compiled(inputs, outputs, linker, ours=False))
    if case.most is not None:
        calls.append(case.reference)
    for call in calls:
        for mine, theirs in zip(call(*arguments), numbers, strict=True):
            # Stock's determinant of a Kronecker product overflows.
            if call is calls[0] or np.isfinite(mine).all():
                np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-8)

    def rounds() -> list[list[float]]:
        once = max(seconds(calls[-1], arguments), 1e-6)
        turns = 61 if once < 0.02 else 7 if once < 1 else 3
        return [[seconds(one, arguments) for one in calls] for _ in range(turns)]

    [times] = pair.alone(rounds, rounds=1)
    if case.most is not None:
        against = median(row[0] / row[-1] for row in times)
        what = f"ours / LAPACK by hand ({linker})"
        pair.report(Row(what, name, against, "x", ceiling=case.most))
    if case.least is not None:
        faster = median(row[1] / row[0] for row in times)
        pair.report(Row(f"linalg ({linker})", name, faster, "x", floor=case.least))
