"""Accuracy: errors against mpmath."""

from __future__ import annotations

import os

import numpy as np
import pytest

from _native.mathematics import oracle, samples
from _native.mathematics.machine import compiled
from _native.mathematics.worst_cases import HARD, POWERS
from pytensor_fuse._native.mathematics import FUNCTIONS

COUNT = 20_000 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 240
UNARY = [name for name, function in FUNCTIONS.items() if function.arguments == 1]


def check(name: str, results: np.ndarray, *arguments: np.ndarray, absolute: float = 0.0) -> None:
    bound = FUNCTIONS[name].ulp
    for result, *row in zip(results, *arguments, strict=True):
        value = oracle.exact(name, *row)
        error = oracle.error(result, value)
        assert error <= bound or oracle.absolute_error(result, value) <= absolute, (
            f"{name}({', '.join(float(x).hex() for x in row)}) is {result!r}, {error:.2f} ulp off"
        )


@pytest.mark.parametrize("fma", [True, False])
@pytest.mark.parametrize("name", UNARY)
def test_the_largest_error_is_what_is_documented(name: str, fma: bool) -> None:
    x = samples.arguments(name, COUNT)
    check(name, compiled(name, fma=fma)(x), x)


@pytest.mark.parametrize("fma", [True, False])
@pytest.mark.parametrize("name", ["gammaln", "digamma", "trigamma", "gamma"])
def test_errors_below_zero(name: str, fma: bool) -> None:
    x = samples.negative_arguments(name, COUNT // 2)
    check(name, compiled(name, fma=fma)(x), x, absolute=FUNCTIONS[name].absolute)


@pytest.mark.parametrize("fma", [True, False])
def test_errors_of_powers(fma: bool) -> None:
    x, y = samples.power_arguments(4 * COUNT)
    check("pow", compiled("pow", fma=fma)(x, y), x, y)


@pytest.mark.parametrize("fma", [True, False])
@pytest.mark.parametrize("name", HARD)
def test_results_that_are_hard_to_round(name: str, fma: bool) -> None:
    x = np.array(HARD[name])
    check(name, compiled(name, fma=fma)(x), x)


@pytest.mark.parametrize("fma", [True, False])
def test_powers_that_are_hard_to_round(fma: bool) -> None:
    x, y = map(np.array, POWERS)
    check("pow", compiled("pow", fma=fma)(x, y), x, y)


@pytest.mark.parametrize("name", UNARY)
def test_single_precision_is_rounded_double_precision(name: str) -> None:
    x = samples.arguments(name, 4000)
    with np.errstate(all="ignore"):
        single = x.astype(np.float32)
        double = compiled(name)(single.astype(np.float64))
        expected = double.astype(np.float32)
    assert np.array_equal(compiled(name, "f32", 16)(single), expected, equal_nan=True)
