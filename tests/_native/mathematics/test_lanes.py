"""An element has the same bits in every form of a function and in every lane."""

from __future__ import annotations

import re

import numpy as np
import pytest

from _native.mathematics import machine, samples
from _native.mathematics.machine import DTYPES, Compiled, compiled
from pytensor_fuse._native.mathematics import FUNCTIONS, LANES, definitions

SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 5e-324, -5e-324, 2.0**1023])


def _arguments(name: str) -> list[np.ndarray]:
    if FUNCTIONS[name].arguments == 2:
        x, y = samples.power_arguments(200)
        return [np.concatenate([x, SPECIAL]), np.concatenate([y, SPECIAL[::-1]])]
    x = samples.arguments(name, 150)
    return [np.concatenate([x, -x[::2], SPECIAL])]


def _bits(results: np.ndarray) -> np.ndarray:
    """Return the bits of numbers, with one pattern for all NaNs."""
    alike = np.where(np.isnan(results), results.dtype.type(np.nan), results)
    return alike.view({4: np.uint32, 8: np.uint64}[alike.itemsize])


@pytest.mark.parametrize("fma", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_forms_and_places_give_the_same_bits(name: str, fma: bool) -> None:
    arguments = _arguments(name)
    expected = _bits(compiled(name, lanes=1, fma=fma)(*arguments))
    for lanes in LANES[1:]:
        function = compiled(name, lanes=lanes, fma=fma)
        for shift in range(0, lanes, max(1, lanes // 4)):
            moved = [np.roll(argument, shift) for argument in arguments]
            assert np.array_equal(np.roll(_bits(function(*moved)), -shift), expected)


@pytest.mark.parametrize("element", ["f64", "f32"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_single_numbers_beside_vectors_have_the_same_bits(name: str, element: str) -> None:
    with np.errstate(all="ignore"):
        arguments = [argument.astype(DTYPES[element]) for argument in _arguments(name)]
    alone = compiled(name, element, lanes=1, inline=False)
    beside = Compiled(name, element, 1, fma=True, inline=False, beside=(4, 8))
    assert np.array_equal(_bits(beside(*arguments)), _bits(alone(*arguments)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_forms_of_single_precision_give_the_same_bits(name: str) -> None:
    with np.errstate(all="ignore"):
        arguments = [argument.astype(np.float32) for argument in _arguments(name)]
    expected = _bits(compiled(name, "f32", 1)(*arguments))
    for lanes in (4, 16):
        assert np.array_equal(_bits(compiled(name, "f32", lanes)(*arguments)), expected)


@pytest.mark.parametrize("name", ["exp", "sin", "gammaln", "pow"])
def test_called_and_copied_functions_give_the_same_bits(name: str) -> None:
    arguments = _arguments(name)
    copied = compiled(name, inline=True)(*arguments)
    assert np.array_equal(_bits(compiled(name, inline=False)(*arguments)), _bits(copied))


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_ones_are_never_rare(name: str, lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # The lanes beyond the end of an array hold ones.
    mark = 12345.0

    def without_rare_paths(*args: object, **kwargs: object) -> str:
        text = definitions(*args, **kwargs)  # type: ignore[arg-type]
        one = f"double {mark}"
        vector = f"<8 x double> <{', '.join([one] * 8)}>"
        rare = r"(define internal (double|<8 x double>) @\S+\(.*\) cold noinline.*\{\n)[^}]*\n\}"
        return re.sub(
            rare,
            lambda found: f"{found[1]}  ret {one if found[2] == 'double' else vector}\n}}",
            text,
        )

    monkeypatch.setattr(machine, "definitions", without_rare_paths)
    function = Compiled(name, "f64", lanes, fma=True, inline=True)
    ones = [np.ones(lanes)] * FUNCTIONS[name].arguments
    assert not (function(*ones) == mark).any()
    if name in ("sin", "log", "erfinv", "gamma", "pow"):
        rare = [np.full(lanes, -1e300)] * FUNCTIONS[name].arguments
        assert (function(*rare) == mark).all()
