"""The script gives the coefficients that the package has."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts" / "mathematics"
DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
FAST = ["exponential", "logarithm", "sine", "arcs"]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    for name in ("coefficients", "approximation"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import coefficients

    return coefficients


def test_fast_families_are_reproduced(script: object) -> None:
    committed = script.MODULE.read_text()
    for family in script.FAMILIES if DEEP else FAST:
        assert "\n".join(script.lines(family)) in committed


@pytest.mark.skipif(not DEEP, reason="takes seconds")
def test_the_module_is_reproduced(script: object) -> None:
    assert script.MODULE.read_text() == script.text()
