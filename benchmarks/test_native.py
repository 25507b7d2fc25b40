"""Machine code of our own against Numba's and JAX's: first calls, and calls; issue 28.

The scripts ``native_cold.py``, ``native_calls.py`` and ``native_scaling.py`` measure more, with a
command line each.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

import native_calls
import native_cold
import native_scaling
from conftest import Pair
from native_figures import ONE_THREAD, Figure
from native_models import FIVE, MODELS
from rows import Row

pytest.importorskip("pymc")

SIDES = ["stock", "ours", *(["jax"] if find_spec("jax") else [])]


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    # JAX reads it when it is first used; BLAS has read its part already, see README.
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ONE_THREAD.items():
            patch.setenv(name, value)
        yield


def report(pair: Pair, figures: list[Figure]) -> None:
    for figure in figures:
        for row in figure.rows():
            pair.report(row)


@pytest.mark.parametrize("name", FIVE)
def test_first_call(pair: Pair, name: str) -> None:
    ((_, figures),) = pair.alone(lambda: native_cold.first(MODELS[name], SIDES, 3), rounds=1)
    report(pair, figures)


@pytest.mark.parametrize("name", native_cold.SCRIPT)
def test_script(pair: Pair, name: str) -> None:
    ((_, figures),) = pair.alone(lambda: native_cold.script(MODELS[name], SIDES, 3), rounds=1)
    report(pair, figures)


def test_edits(pair: Pair) -> None:
    ((_, figures),) = pair.alone(lambda: native_cold.edits(MODELS["radon"], SIDES, 3), rounds=1)
    report(pair, figures)


@pytest.mark.parametrize("name", native_cold.NUTPIE)
def test_nutpie(pair: Pair, name: str) -> None:
    pytest.importorskip("nutpie")
    ((_, figures),) = pair.alone(lambda: native_cold.nutpie(MODELS[name], SIDES, 3), rounds=1)
    report(pair, figures)


@pytest.mark.parametrize("name", native_cold.NUTPIE)
def test_nutpie_draws(pair: Pair, name: str) -> None:
    pytest.importorskip("nutpie")
    ((_, figures),) = pair.alone(lambda: native_cold.draws(MODELS[name], SIDES, 3), rounds=1)
    report(pair, figures)


@pytest.mark.parametrize("name", native_cold.SAMPLE)
def test_first_sample(pair: Pair, name: str) -> None:
    ((_, figures),) = pair.alone(lambda: native_cold.sample(MODELS[name], SIDES, 3), rounds=1)
    report(pair, figures)


@pytest.mark.parametrize("size", ["own", "many"])
@pytest.mark.parametrize("name", FIVE)
def test_calls(pair: Pair, name: str, size: str) -> None:
    (figures,) = pair.alone(lambda: native_calls.figures(MODELS[name], SIDES, 21, size), rounds=1)
    report(pair, figures)


@pytest.mark.parametrize("name", native_scaling.MEMORY)
def test_memory(pair: Pair, name: str) -> None:
    (figures,) = pair.alone(lambda: native_scaling.memory(SIDES, 3, name, "imported"), rounds=1)
    report(pair, figures)


def test_growth(pair: Pair) -> None:
    """The exponent of the power of the number of loops in which a first value's time grows."""
    most = native_scaling.LOOPS[-1]
    ((_, exponents),) = pair.alone(lambda: native_scaling.loops(["ours"], 1, most), rounds=1)
    (exponent,) = (x for what, _, x in exponents if what == "function and first call")
    names = f"{native_scaling.LOOPS[0]} to {most:,} loops"
    what = "native: exponent of growth, function and first call"
    pair.report(Row(what, names, exponent, "", ceiling=native_scaling.EXPONENT))


def test_nothing_native(pair: Pair) -> None:
    (found,) = pair.alone(lambda: native_scaling.nothing(41), rounds=1)
    for name, _, _, ratio, _ in found:
        what = "native: compile of what has no rule, on / off"
        pair.report(Row(what, name, ratio, "x", ceiling=native_scaling.NOTHING))
