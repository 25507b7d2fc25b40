"""How joins are timed, one case and all.

    python -m benchmarks.joins.timing noise [numba|c]    # stock against stock: what can be told
    python -m benchmarks.joins.timing sweep [numba|c]    # stock against ours over the small sizes
    python -m benchmarks.joins.timing gate [numba|c]     # the same over other kinds, to 10^6

A round calls each side for a few milliseconds; a figure is the median of the rounds' ratios. The
clock is that of the thread, which stands still while something else has the processor: a batch is
shorter than the time that the system gives to others.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from statistics import median

import numpy as np
from pytensor.compile.executor import Function

from benchmarks.graphs.joined import streams
from benchmarks.graphs.reference import Reference
from benchmarks.joins.cases import SMALL_SIZES, Case, gate_cases, small_cases
from benchmarks.measuring.results import assert_same
from benchmarks.measuring.sides import compiled, compiled_by_both, unchecked
from benchmarks.measuring.turns import Timings, call_times

MODES = {"numba": "NUMBA", "c": "CVM"}
BATCH_SECONDS = 0.003
# With so many rounds stock differs from stock by less than 1.3 %, nine times of ten by 1 %.
ROUNDS = 61
# Of cases that take longer than a batch.
LARGE_ROUNDS = 21


@cache
def both(reference: Reference, linker: str) -> tuple[Function, Function]:
    """The graph compiled by stock and by us."""
    return compiled_by_both(*reference.build(), MODES[linker])


def assert_same_answer(
    stock: Function, ours: Function, values: Sequence[np.ndarray], *, exactly: bool = True
) -> None:
    """Fail unless both give the same, twice over, and leave the arguments as they are."""
    copies = [value.copy() for value in values]
    for _ in range(2):
        expected, got = stock(*values), ours(*values)
        if exactly:
            for a, b in zip(got, expected, strict=True):
                np.testing.assert_array_equal(a, b, strict=True)
        else:
            assert_same(got, expected)
    for value, copy in zip(values, copies, strict=True):
        np.testing.assert_array_equal(value, copy, strict=True)


def checked(case: Case) -> tuple[Function, Function, list[np.ndarray]]:
    """The functions of a case, and values with which both give the same."""
    stock, ours = both(case.reference, case.linker)
    values = case.reference.values(case.size)
    # Sums in the packed gradients may be added in another order.
    assert_same_answer(stock, ours, values, exactly="packed" not in case.reference.name)
    return stock, ours, values


def timed(
    stock: Function, ours: Function, values: Sequence[np.ndarray], *, rounds: int = ROUNDS
) -> Timings:
    """Interleave batches of calls; which side goes first changes from round to round."""
    calls, clock = {"stock": stock, "ours": ours}, time.thread_time
    times = call_times(calls, values, rounds, batch=BATCH_SECONDS, warmup=2, clock=clock)
    return Timings(**times)


def noise(linker: str) -> None:
    """How far stock seems from stock, by the number of rounds."""
    counts = (11, 21, 41, 61, 101)
    off: dict[int, list[float]] = {n: [] for n in counts}
    for producer in ("affine", "tanh"):
        for n_streams in (2, 8):
            reference = streams(producer, n_streams)
            a, b = (
                unchecked(compiled(*reference.build(), ours=False, mode=MODES[linker]))
                for _ in range(2)
            )
            for size in SMALL_SIZES:
                values = reference.values(size)
                assert_same_answer(a, b, values)
                timings = timed(a, b, values, rounds=max(counts))
                ratios = [x / y for x, y in zip(timings.stock, timings.ours, strict=True)]
                for n in counts:
                    off[n].append(abs(median(ratios[:n]) - 1))
                print(f"{linker}: {reference.name}, {size:,}: {timings}", flush=True)
    for n in counts:
        found = sorted(off[n])
        print(
            f"{linker}, {n} rounds: off by {median(found):.2%} (median), "
            f"{found[int(0.9 * len(found))]:.2%} (nine of ten), {found[-1]:.2%} (worst)"
        )


def slowest_first(
    cases: Iterator[Case], limit: float, rounds: int = ROUNDS
) -> list[tuple[float, Case]]:
    """The cases' times as multiples of stock's, the largest first.

    A case over the limit is measured twice more, and the median of the three is taken.
    """
    results = []
    for case in cases:
        stock, ours, values = checked(case)
        n_rounds = min(rounds, LARGE_ROUNDS) if case.size > 10_000 else rounds
        timings = [timed(stock, ours, values, rounds=n_rounds)]
        if 1 / timings[0].ratio > limit:
            timings += [timed(stock, ours, values) for _ in range(2)]
        results.append((median(1 / found.ratio for found in timings), case))
        print(f"{case.linker}: {case}: {timings[0]}", flush=True)
    return sorted(results, key=lambda result: -result[0])


def show(cases: Callable[[str], Iterator[Case]], linker: str, limit: float, rounds: int) -> None:
    """Measure all cases, and print the slowest once more at the end."""
    for slower, case in slowest_first(cases(linker), limit, rounds)[:15]:
        print(f"{linker}: {slower:.3f} of stock's time: {case}")


COMMANDS: dict[str, Callable[[str], None]] = {
    "noise": noise,
    "sweep": lambda linker: show(small_cases, linker, 1.03, ROUNDS),
    "gate": lambda linker: show(gate_cases, linker, 1.02, 31),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("linkers", nargs="*", metavar="linker", default=[*MODES])
    given = parser.parse_args()
    for name in given.linkers:
        COMMANDS[given.command](name)
