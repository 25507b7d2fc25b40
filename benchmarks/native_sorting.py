"""Sorts, searches and convolutions of doubles, ours and stock Numba mode's; issue 31.

    python benchmarks/native_sorting.py                           # two minutes
    python benchmarks/native_sorting.py --only sort,argsort --lengths 1000,1000000

Each call is given other numbers: a processor learns the branches of a sort of the same 1,000
numbers, which flatters sorts that branch. Both take turns, and the figure is the median.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt

import pytensor_fuse

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


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--lengths", default="100,1000,10000,100000,1000000")
    options = parser.parse_args()
    print(f"{'':14}{'order':8}{'length':>9}{'ours, us':>12}{'Numba, us':>12}{'ratio':>8}")
    for name in options.only.split(","):
        inputs, output = CASES[name]
        ours = pytensor.function(inputs, output, mode="NUMBA")
        with pytensor_fuse.enabled(False):
            stock = pytensor.function(inputs, output, mode="NUMBA")
        for length in map(int, options.lengths.split(",")):
            for order in ORDERS[: 1 if name == "convolve1d" else 2]:
                first = arguments(name, length, order, 0)
                assert np.array_equal(ours(*first), stock(*first)) or name == "convolve1d"
                # As many calls as take a while, and few enough to hold their arguments.
                n_calls = int(ROUND_SECONDS / max(seconds(ours, [first]), 1e-6))
                n_calls = max(3, min(n_calls, 4_000_000 // length))
                calls = [arguments(name, length, order, seed) for seed in range(n_calls)]
                pairs = [(seconds(ours, calls), seconds(stock, calls)) for _ in range(N_ROUNDS)]
                mine, other = [1e6 * statistics.median(side) for side in zip(*pairs, strict=True)]
                ratio = statistics.median(one / two for one, two in pairs)
                print(f"{name:14}{order:8}{length:9}{mine:12.1f}{other:12.1f}{ratio:8.2f}")


if __name__ == "__main__":
    main()
