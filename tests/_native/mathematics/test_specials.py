"""Zeros, infinities, NaN, and the thresholds of overflow and underflow."""

from __future__ import annotations

import math

import numpy as np
import pytest

from _native.mathematics.machine import compiled
from pytensor_fuse._native.mathematics import FUNCTIONS

INF, NAN, TINY, HUGE = math.inf, math.nan, 5e-324, 1.7976931348623157e308

# Arguments and results, with the signs of zeros. Any function of NaN is NaN.
SPECIALS: dict[str, list[tuple[float, float]]] = {
    "exp": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, 0.0), (TINY, 1), (709.7827128933841, INF),
            (709.782712893384, 1.7976931348622732e308), (-745.1332191019411, TINY),
            (-745.1332191019412, 0.0), (HUGE, INF), (-HUGE, 0.0)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1), (TINY, TINY), (-TINY, -TINY),
              (709.782712893384, 1.7976931348622732e308), (709.7827128933841, INF), (-HUGE, -1)],
    "exp2": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, 0.0), (1024, INF), (1023, 2.0**1023),
             (-1074, TINY), (-1075, 0.0), (-1022, 2.0**-1022), (10, 1024), (-HUGE, 0.0)],
    "log": [(1, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1, NAN), (-INF, NAN), (-TINY, NAN),
            (TINY, -744.4400719213812), (HUGE, 709.782712893384)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1, -INF), (INF, INF), (-1.0000000000000002, NAN),
              (-INF, NAN), (TINY, TINY), (-TINY, -TINY), (HUGE, 709.782712893384)],
    "log2": [(1, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1, NAN), (TINY, -1074), (8, 3)],
    "log10": [(1, 0.0), (0.0, -INF), (INF, INF), (-1, NAN), (1000, 3), (1e22, 22), (1e-5, -5)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1), (-INF, -1), (TINY, TINY), (-TINY, -TINY),
             (HUGE, 1), (-22, -1)],
    "sigmoid": [(0.0, 0.5), (-0.0, 0.5), (INF, 1), (-INF, 0.0), (HUGE, 1), (-HUGE, 0.0), (40, 1),
                (-745.1332191019411, TINY), (-746, 0.0)],
    "softplus": [(0.0, math.log(2)), (INF, INF), (-INF, 0.0), (HUGE, HUGE), (-HUGE, 0.0),
                 (-745.1332191019411, TINY), (40, 40)],
    "log1mexp": [(0.0, -INF), (-0.0, -INF), (-INF, -0.0), (1, NAN), (INF, NAN), (TINY, NAN),
                 (-TINY, -744.4400719213812), (-HUGE, -0.0), (-745.1332191019411, -TINY)],
    "sqrt": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-1, NAN), (4, 2)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (TINY, TINY), (-TINY, -TINY)],
    "cos": [(0.0, 1), (-0.0, 1), (INF, NAN), (-INF, NAN), (TINY, 1)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (TINY, TINY), (-TINY, -TINY)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (TINY, TINY), (-TINY, -TINY),
             (710.475860073944, INF), (-711, -INF), (HUGE, INF)],
    "cosh": [(0.0, 1), (INF, INF), (-INF, INF), (TINY, 1), (710.475860073944, INF), (HUGE, INF)],
    "arctan": [(0.0, 0.0), (-0.0, -0.0), (INF, math.pi / 2), (-INF, -math.pi / 2), (TINY, TINY),
               (-TINY, -TINY), (HUGE, math.pi / 2), (1, math.pi / 4)],
    "arcsin": [(0.0, 0.0), (-0.0, -0.0), (1, math.pi / 2), (-1, -math.pi / 2), (2, NAN),
               (-INF, NAN), (TINY, TINY), (-TINY, -TINY)],
    "arccos": [(1, 0.0), (-1, math.pi), (0.0, math.pi / 2), (2, NAN), (-2, NAN), (INF, NAN)],
    "arctanh": [(0.0, 0.0), (-0.0, -0.0), (1, INF), (-1, -INF), (2, NAN), (-2, NAN), (INF, NAN),
                (TINY, TINY), (-TINY, -TINY)],
    "arcsinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (TINY, TINY), (-TINY, -TINY),
                (HUGE, 710.4758600739439)],
    "arccosh": [(1, 0.0), (0.5, NAN), (-1, NAN), (-INF, NAN), (INF, INF),
                (HUGE, 710.4758600739439)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1), (-INF, -1), (HUGE, 1), (6, 1)],
    "erfc": [(0.0, 1), (-0.0, 1), (INF, 0.0), (-INF, 2), (HUGE, 0.0), (-7, 2), (27.3, 0.0)],
    "erfcx": [(0.0, 1), (-0.0, 1), (INF, 0.0), (-INF, INF), (-27, INF)],
    "erfinv": [(0.0, 0.0), (-0.0, -0.0), (1, INF), (-1, -INF), (1.5, NAN), (-1.5, NAN), (INF, NAN)],
    "erfcinv": [(1, 0.0), (0.0, INF), (2, -INF), (-1, NAN), (3, NAN), (INF, NAN), (-INF, NAN)],
    "gammaln": [(1, 0.0), (2, 0.0), (0.0, INF), (-0.0, INF), (-1, INF), (-2, INF), (INF, INF),
                (-INF, INF), (TINY, 744.4400719213812), (-TINY, 744.4400719213812), (HUGE, INF),
                (3, math.log(2)), (-HUGE, INF),
                (float.fromhex("0x1.754d9278b51a7p+1014"), 1.7976931348623157e308),
                (float.fromhex("0x1.754d9278b51a8p+1014"), INF)],
    # The sign at minus zero is SciPy's.
    "digamma": [(0.0, -INF), (-0.0, INF), (-1, NAN), (-2, NAN), (INF, INF), (-INF, NAN),
                (TINY, -INF), (-TINY, INF), (-HUGE, NAN)],
    "trigamma": [(0.0, INF), (-0.0, INF), (-1, INF), (INF, 0.0), (-HUGE, INF)],
    # SciPy is infinite already at the number before, and zero from -170.6 on.
    "gamma": [(0.0, INF), (-0.0, -INF), (-1, NAN), (-2, NAN), (-171, NAN), (INF, INF), (-INF, NAN),
              (TINY, INF), (-TINY, -INF), (HUGE, INF), (-HUGE, NAN), (172, INF),
              (171.6243769563027, 1.7976931348622299e308), (171.62437695630274, INF),
              (5.562684646268003e-309, INF), (5.56268464626801e-309, 1.7976931348623143e308),
              (-5.562684646268003e-309, -INF), (-5.56268464626801e-309, -1.7976931348623143e308),
              (-177.5, TINY), (-178.5, -0.0), (-183.5, 0.0), (-100000.5, -0.0),
              (-(2.0**52) + 0.5, 0.0), (-(2.0**51) - 0.5, -0.0), (-(2.0**52), NAN),
              (0.5, 1.772453850905516), (-171.5, 1.9316265431712e-310)],
}  # fmt: skip

POWERS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    -2.0,
    3.0,
    -3.0,
    4.0,
    INF,
    -INF,
    NAN,
    2.0**53,
    -(2.0**52) - 1,
]


@pytest.mark.parametrize("fma", [True, False])
@pytest.mark.parametrize("name", SPECIALS)
def test_special_values(name: str, fma: bool) -> None:
    x, expected = map(np.array, zip(*SPECIALS[name], (NAN, NAN), strict=True))
    result = compiled(name, fma=fma)(x)
    assert np.array_equal(result, expected, equal_nan=True), [
        *zip(x, result, expected, strict=True)
    ]
    numbers = ~np.isnan(expected)
    assert np.array_equal(np.signbit(result[numbers]), np.signbit(expected[numbers]))


def test_every_function_has_special_values() -> None:
    assert {*SPECIALS, "pow"} == set(FUNCTIONS)


def _power(x: float, y: float) -> float:
    # Python raises errors where C returns numbers.
    if x == 0 and y < 0:
        odd = y % 2 == 1 and not math.isinf(y)
        return math.copysign(INF, x) if odd else INF
    try:
        return math.pow(x, y)
    except ValueError:
        return NAN
    except OverflowError:
        return -INF if x < 0 and y % 2 == 1 else INF


@pytest.mark.parametrize("fma", [True, False])
def test_special_powers(fma: bool) -> None:
    x, y = (grid.ravel() for grid in np.meshgrid(POWERS, POWERS))
    expected = np.array([_power(float(a), float(b)) for a, b in zip(x, y, strict=True)])
    result = compiled("pow", fma=fma)(x, y)
    same = (result == expected) | (np.isnan(result) & np.isnan(expected))
    near = np.isclose(result, expected, rtol=2.0**-52, atol=0) & (y != np.round(y))
    assert (same | near).all(), [
        *zip(x[~same], y[~same], result[~same], expected[~same], strict=True)
    ]
    numbers = ~np.isnan(expected)
    assert np.array_equal(np.signbit(result[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize("fma", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_bits_of_what_is_no_number_make_one(name: str, fma: bool) -> None:
    # The payloads include that of R's NA, and low bits, where `round_to_integer` has its integer.
    payloads = [0x7A2, 1, 2, 0x3FF, 0x7FF, 0xFFF, 0x8000000000000, 0x8000000000002, 2**52 - 1]
    bits = np.array([(0x7FF << 52) + one for one in payloads], dtype=np.uint64)
    x = np.concatenate([bits, bits | np.uint64(1 << 63)]).view(np.float64)
    for lanes in (1, 8):
        function = compiled(name, lanes=lanes, fma=fma)
        if name == "pow":
            assert np.isnan(function(x, np.full_like(x, 1.5))).all()
            assert np.isnan(function(np.full_like(x, 1.5), x)).all()
        else:
            assert np.isnan(function(x)).all()


@pytest.mark.parametrize("fma", [True, False])
def test_one_to_any_power_is_one(fma: bool) -> None:
    y = np.ldexp([1.0, -1.0, 1.99], [[1023], [1000], [997], [996], [990], [-1000]]).ravel()
    assert np.array_equal(compiled("pow", fma=fma)(np.ones_like(y), y), np.ones_like(y))


@pytest.mark.parametrize("fma", [True, False])
def test_powers_that_are_numbers_are_exact(fma: bool) -> None:
    power = compiled("pow", fma=fma)
    k = np.arange(1.0, 3000.0)
    assert np.array_equal(power(k, np.full_like(k, 2)), k * k)
    assert np.array_equal(power(-k, np.full_like(k, 3)), -(k * k * k))
    assert np.array_equal(power(k * k, np.full_like(k, 0.5)), k)
    assert np.array_equal(power(k * k, np.full_like(k, 1.5)), k * k * k)
    assert np.array_equal(
        power(np.full(2098, 2.0), np.arange(-1074.0, 1024.0)), 2.0 ** np.arange(-1074.0, 1024.0)
    )


@pytest.mark.parametrize("fma", [True, False])
def test_factorials_that_are_numbers_are_exact(fma: bool) -> None:
    k = np.arange(1.0, 24.0)
    expected = np.array([float(math.factorial(int(one) - 1)) for one in k])
    assert np.array_equal(compiled("gamma", fma=fma)(k), expected)


@pytest.mark.parametrize(
    "name", ["exp", "log", "tanh", "sigmoid", "softplus", "erf", "digamma", "gamma"]
)
@pytest.mark.parametrize("fma", [True, False])
def test_increasing_across_seams(name: str, fma: bool) -> None:
    seams = {
        "exp": np.arange(-40, 40) * math.log(2) + math.log(2) / 2,
        "log": np.sqrt(0.5) * 2.0 ** np.arange(-20, 20),
        "digamma": np.array([1.0, 3.0, 4.0, 5.0, 7.0, 8.0]),
        "gamma": np.array([2.0, 3.0, 4.0, 100.0]),
        "erf": np.array([0.58, -0.58]),
        "softplus": np.array([math.log(math.sqrt(2) - 1), 0.0, 18.0]),
    }.get(name, np.arange(-20, 20) * math.log(2) / 2)
    # Steps wide enough to exceed errors of two units of the last place.
    steps = np.arange(-40, 41) * 2.0**-44
    x = seams[:, None] * (1 + steps)
    results = compiled(name, fma=fma)(x)
    assert (np.diff(results, axis=1) * np.sign(np.diff(x, axis=1)) >= 0).all()
