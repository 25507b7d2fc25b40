"""Sorts, searches and convolutions of doubles, ours and stock Numba mode's.

    python -m benchmarks.native.sorting                           # two minutes
    python -m benchmarks.native.sorting --only sort,argsort --lengths 1000,1000000

Each call is given other numbers: a processor learns the branches of a sort of the same 1,000
numbers, which flatters sorts that branch. Both take turns, and the figure is the median.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt

import pytensor_fuse
from benchmarks.measuring import tables
from benchmarks.measuring.turns import in_turns, ratio_of

X, V = pt.vector("x"), pt.vector("v")
CASES: dict[str, tuple[list[Any], Any]] = {
    "sort": ([X], pt.sort(X)),
    "argsort": ([X], pt.argsort(X)),
    "unique": ([X], pt.unique(X)),
    "searchsorted": ([X, V], pt.searchsorted(X, V)),
    "convolve1d": ([X, V], pt.signal.convolve1d(X, V, mode="valid")),
}
ORDERS = ("random", "sorted")
KERNEL = 20
ROUND_SECONDS = 0.05
N_ROUNDS = 3


def arguments(name: str, length: int, order: str, seed: int) -> list[np.ndarray]:
    """Return the arguments of a call."""
    random = np.random.default_rng(seed)
    x = random.normal(size=length)
    if name == "convolve1d":
        return [x, random.normal(size=KERNEL)]
    if name == "searchsorted":
        numbers = random.normal(size=length)
        return [np.sort(x), np.sort(numbers) if order == "sorted" else numbers]
    return [np.sort(x) if order == "sorted" else x]


def seconds(function: Any, calls: list[list[np.ndarray]]) -> float:
    """Return how long a call takes."""
    begin = time.perf_counter()
    for given in calls:
        function(*given)
    return (time.perf_counter() - begin) / len(calls)


def rows_of(name: str, lengths: list[int]) -> Iterator[list[str]]:
    """The cells of each length and order."""
    inputs, output = CASES[name]
    ours = pytensor.function(inputs, output, mode="NUMBA")
    with pytensor_fuse.enabled(False):
        stock = pytensor.function(inputs, output, mode="NUMBA")
    for length in lengths:
        for order in ORDERS[: 1 if name == "convolve1d" else 2]:
            first = arguments(name, length, order, 0)
            assert np.array_equal(ours(*first), stock(*first)) or name == "convolve1d"
            # As many calls as take a while, and few enough to hold their arguments.
            n_calls = int(ROUND_SECONDS / max(seconds(ours, [first]), 1e-6))
            n_calls = max(3, min(n_calls, 4_000_000 // length))
            calls = [arguments(name, length, order, seed) for seed in range(n_calls)]
            times = in_turns(
                {"ours": partial(seconds, ours, calls), "Numba": partial(seconds, stock, calls)},
                N_ROUNDS,
            )
            both = [f"{1e6 * median(of_side):.1f}" for of_side in times.values()]
            yield [name, order, str(length), *both, f"{ratio_of(*times.values()):.2f}"]


def main() -> None:
    """Print a table."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--lengths", default="100,1000,10000,100000,1000000")
    options = parser.parse_args()
    lengths = [int(length) for length in options.lengths.split(",")]
    rows = [row for name in options.only.split(",") for row in rows_of(name, lengths)]
    headings = ["function", "order", "length", "ours, us", "Numba, us", "ratio"]
    print(tables.markdown(headings, rows), end="")


if __name__ == "__main__":
    main()
