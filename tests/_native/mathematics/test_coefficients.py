"""The script generates the coefficients of the package, and tables satisfy their invariants."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from pytensor_fuse._native.mathematics import coefficients
from pytensor_fuse._native.mathematics.exponentials import LOG2_HIGH
from support.effort import IS_DEEP

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts" / "mathematics"
FAST = ["exponential", "logarithm", "sine", "arcs"]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    for name in ("coefficients", "approximation"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import coefficients as script

    return script


def test_fast_families_are_reproduced(script: object) -> None:
    committed = script.MODULE.read_text()
    for family in script.FAMILIES if IS_DEEP else FAST:
        assert "\n".join(script.lines(family)) in committed


@pytest.mark.skipif(not IS_DEEP, reason="takes seconds")
def test_the_module_is_reproduced(script: object) -> None:
    assert script.MODULE.read_text() == script.text()


def test_reductions_of_powers_are_exact() -> None:
    # Mantissas of all intervals: their ends, and some in between.
    start = np.array(1.0).view(np.int64) - (149 << 44)
    generator = np.random.default_rng(0)
    offsets = np.concatenate([[0, 1, (1 << 45) - 1], generator.integers(0, 1 << 45, 20)])
    for interval, inverse in enumerate(coefficients.POWER_INVERSES):
        largest = Fraction(0)
        for m in (start + (interval << 45) + offsets).view(np.float64):
            r = Fraction(m) * Fraction(inverse) - 1
            assert Fraction(float(r)) == r
            largest = max(largest, abs(r))
        # `fast_two_sum` is exact: its first operand is zero or at least as large as the second.
        log = coefficients.POWER_LOGS[interval]
        assert log == 0 or abs(log) >= largest
        for k in (-1074, -1, 1, 1023):
            high = k * Fraction(LOG2_HIGH) + Fraction(log)
            assert Fraction(float(high)) == high
            assert abs(high) > 0.01
