"""Test arguments of functions: every binade, the seams of methods, and thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

# The last angle is the double closest to a multiple of pi / 2.
_ANGLES = (
    *(k * math.pi / 4 for k in (1, 2, 3, 4, 400_001)),
    2.0**20,
    1e22,
    6381956970095103 * 2.0**797,
)

# The number for which `log(1 - x**2)` is -5.
_SEAM_OF_ERFINV = math.sqrt(-math.expm1(-5.0))

# The ends of the table of logarithms, and of the interval around 1.
_ENDS_OF_INTERVALS = (0.708984375, 1.41796875, 0.998046875, 1.00390625)

# Arguments where the method of a function changes, or where its result is exceptional.
SEAMS: dict[str, Sequence[float]] = {
    "exp": (709.782712893384, -708.3964185322641, -745.1332191019411, -37, 0.34657359027997264),
    "expm1": (709.782712893384, -37.43, -40, 0.34657359027997264, 37.19, 0.69),
    "exp2": (1024, -1022, -1074, -1075, 0.5, -0.5, 1000, -1000),
    "log": (1, math.sqrt(2), math.sqrt(0.5), 2.0**-1022, 2),
    "log1p": (math.sqrt(2) - 1, math.sqrt(0.5) - 1, -0.5, 1, 2.0**53),
    "log2": (1, *_ENDS_OF_INTERVALS, 2.0**-1022, 2, 8),
    "log10": (1, *_ENDS_OF_INTERVALS, 2.0**-1022, 10, 1000),
    "tanh": (20, 19.06, 0.17328679513998632, 0.55),
    "sigmoid": (37, -37, -709.8, -745.2, 36.04, 0.34657359027997264),
    "softplus": (18, -37, 33.3, -708.4, -745.2, math.log(math.sqrt(2) - 1)),
    "log1mexp": (
        -0.6931471805599453,
        -1.5,
        -37,
        -708.4,
        -745.2,
        -1.2279471772995156,
        -(2.0**-1000),
    ),
    "sqrt": (1, 2, 4),
    "sin": _ANGLES,
    "cos": _ANGLES,
    "tan": _ANGLES,
    "sinh": (1, 710.4758600739439, 0.5),
    "cosh": (1, 710.4758600739439),
    "arctan": (math.sqrt(2) - 1, math.sqrt(2) + 1, 1),
    "arcsin": (0.5, 1),
    "arccos": (0.5, 1, -0.5, -1),
    "arctanh": (0.5, 1, math.sqrt(2) - 1),
    "arcsinh": (1, 2.0**60),
    "arccosh": (1, 1.5, 2.0**60),
    "erf": (0.58, 5.9, 1),
    "erfc": (0.58, 26.5, 27.226, 5.9, -5.9, 1),
    "erfcx": (0.58, -26.6, 10, 2.0**100),
    "erfinv": (0.5205, _SEAM_OF_ERFINV, 0.5, 1 - 2.0**-53),
    "erfcinv": (
        *(0.4795, 1 - _SEAM_OF_ERFINV, 1 + _SEAM_OF_ERFINV, 1, 1.5),
        *(2 - 2.0**-52, 2.3e-16),
    ),
    "gammaln": (1, 2, 3, 4, 5, 2.0**100, 1.5, 2.5599e305, 0.5, 1.4616321449683622),
    "digamma": (1, 3, 4, 5, 7, 8, 1.4616321449683622, 2.0**52),
    "trigamma": (1, 3, 5, 7, 8),
    "gamma": (1, 2, 3, 4, 5, 2.0**-60, 2.0**-1024, 24, 100, 150, 171, 171.62437695630273),
}

# Intervals where errors are largest.
DENSE: dict[str, tuple[float, float]] = {
    "log2": (0.99, 1.01),
    "log10": (0.99, 1.01),
    "tan": (5.4, 5.6),
    "erf": (0.58, 0.7),
    "erfc": (0.58, 0.9),
    "erfcx": (0.45, 1.0),
    "erfinv": (0.1, 0.5),
    "erfcinv": (0.003, 0.02),
    "gammaln": (2.74, 2.79),
    "arctanh": (0.11, 0.13),
    "arccosh": (1.02, 1.04),
    "arcsinh": (0.5, 0.53),
    "exp2": (-0.6, 0.6),
    "expm1": (-0.6, 0.6),
    "log1mexp": (-3.0, -0.5),
}

# Bounds of the arguments in the domain.
DOMAINS: dict[str, tuple[float, float]] = {
    "exp": (-746, 710),
    "expm1": (-100, 710),
    "exp2": (-1080, 1025),
    "log": (0, math.inf),
    "log1p": (-1, math.inf),
    "log2": (0, math.inf),
    "log10": (0, math.inf),
    "sigmoid": (-746, 746),
    "softplus": (-746, math.inf),
    "log1mexp": (-746, 0),
    "sqrt": (0, math.inf),
    "sinh": (-711, 711),
    "cosh": (-711, 711),
    "arcsin": (-1, 1),
    "arccos": (-1, 1),
    "arctanh": (-1, 1),
    "arccosh": (1, math.inf),
    "erfc": (-30, 27.5),
    "erfcx": (-26.6, math.inf),
    "erfinv": (-1, 1),
    "erfcinv": (0, 2),
    "gammaln": (0, 2.6e305),
    "digamma": (0, math.inf),
    "trigamma": (0, math.inf),
    "gamma": (0, 172),
}


def arguments(name: str, count: int, seed: int = 0) -> np.ndarray:
    """Return about `count` arguments of a function of one argument."""
    generator = np.random.default_rng([seed, *name.encode()])
    low, high = DOMAINS.get(name, (-math.inf, math.inf))
    seams = np.array(SEAMS.get(name, ()), dtype=np.float64)
    # Neighbours on both sides of each seam.
    near = [seams, *(seams * (1 + k * 2.0**-52) for k in (-9, -2, -1, 1, 2, 9))]
    near += [seams * (1 + generator.normal(size=len(seams)) * 2.0**-k) for k in (6, 12, 24)]
    exponents = generator.uniform(-1074, 1024, count // 6)
    usual = generator.uniform(-12, 10, count // 3)
    sizes = np.exp2(np.concatenate([exponents, usual]))
    signs = generator.choice([-1.0, 1.0], len(sizes))
    uniform = generator.uniform(max(low, -8.0), min(high, 8.0), count // 2)
    dense = generator.uniform(*DENSE[name], count // 4) if name in DENSE else []
    with np.errstate(over="ignore"):
        found = np.concatenate([*near, sizes * signs, uniform, dense])
    inside = (found > low) & (found < high) & np.isfinite(found) & (found != 0)
    return found[inside]


def negative_arguments(name: str, count: int) -> np.ndarray:
    """Return arguments below zero of the functions that have poles there."""
    generator = np.random.default_rng([7, *name.encode()])
    found = np.concatenate(
        [
            -generator.uniform(0, 12, count // 2),
            -generator.uniform(0, 180, count // 4),
            -np.exp2(generator.uniform(-300, 40, count // 4)),
            -np.arange(1.0, 20) - 2.0**-30,
            -np.arange(1.0, 20) + 2.0**-40,
        ]
    )
    return found[found != np.floor(found)]


def power_arguments(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return bases and exponents whose powers are numbers of all sizes."""
    generator = np.random.default_rng(seed)
    n = count // 6
    bases = [
        generator.uniform(0, 3, n),
        np.exp2(generator.uniform(-1074, 1024, n)),
        1 + generator.normal(size=n) * 2.0 ** generator.uniform(-52, -3, n),
        -np.floor(generator.uniform(1, 60, n)),
        generator.uniform(0, 40, n),
    ]
    # The seams of the table of logarithms, and their neighbours.
    start = np.array(1.0).view(np.int64) - (149 << 44)
    seams = start + (generator.integers(0, 129, n) << 45) + generator.integers(-2, 3, n)
    bases.append(seams.view(np.float64))
    logs = [np.log2(np.abs(base)) for base in bases]
    exponents = [
        generator.uniform(-20, 20, n),
        generator.uniform(-1.2, 1.2, n),
        generator.uniform(-1080, 1080, n) / np.where(logs[2] == 0, 1, logs[2]),
        np.floor(generator.uniform(-40, 40, n)),
        generator.choice([0.5, 1.5, 2, 3, -0.5, -1, -2], n),
        generator.uniform(-1020, 1020, n) / np.where(logs[5] == 0, 1, logs[5]),
    ]
    return np.concatenate(bases), np.concatenate(exponents)
