"""The measurements of joins: their cases, and how one case is timed.

    python benchmarks/joins.py noise [numba|c]    # stock against stock: what the harness can tell
    python benchmarks/joins.py sweep [numba|c]    # stock against ours over the small sizes
    python benchmarks/joins.py gate [numba|c]     # the same over other kinds of joins, to 10^6

A round calls each side for a few milliseconds; a figure is the median of the rounds' ratios. The
clock is that of the thread, which stands still while something else has the processor: a batch is
shorter than the time that the system gives to others.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median

import numpy as np
from pytensor.compile.executor import Function

import measure
from graphs import Reference, columns, few_written, packed, rows_stacked, streams

MODES = {"numba": "NUMBA", "c": "CVM"}
BATCH_SECONDS = 0.003
# With so many rounds stock differs from stock by less than 1.3 %, nine times of ten by 1 %.
ROUNDS = 61
# Of cases that take longer than a batch.
LARGE_ROUNDS = 21

SMALL_SIZES = (1, 10, 100, 1_000, 10_000)
STREAM_COUNTS = (2, 4, 8, 16)
SMALL_PRODUCERS = ("affine", "rational", "exp", "tanh")


@dataclass(frozen=True)
class Case:
    """A graph, the compiler it is for, and the size of its arrays."""

    reference: Reference
    linker: str
    size: int

    def __str__(self) -> str:
        return f"{self.reference.name}, {self.size:,} each"


def small_cases(linker: str) -> Iterator[Case]:
    """The set on which no function may become slower by more than 3 %."""
    for producer in SMALL_PRODUCERS:
        for n_streams in STREAM_COUNTS:
            for size in SMALL_SIZES:
                yield Case(streams(producer, n_streams), linker, size)
    for producer in ("affine", "tanh"):
        for size in SMALL_SIZES:
            yield Case(streams(producer, 4, size), linker, size)


def gate_cases(linker: str) -> Iterator[Case]:
    """Joins of other kinds, of which what does not pay must be left alone."""
    for producer in ("affine", "tanh"):
        for n_streams in (2, 4, 16):
            for size in (1, 10, 100, 1_000, 10_000, 100_000):
                yield Case(few_written(producer, n_streams), linker, size)
        for size in (10, 100, 1_000, 10_000):
            yield Case(few_written(producer, 4, size), linker, size)
        for n_streams in (2, 4):
            for size in (1, 10, 100, 1_000, 10_000, 100_000):
                yield Case(rows_stacked(producer, n_streams), linker, size)
                for width in (None, 3, 100):
                    if size * (width or 1) <= 300_000:
                        yield Case(columns(producer, n_streams, width), linker, size)
    for n_streams in (2, 16):
        for size in (100_000, 1_000_000):
            if n_streams * size <= 2_000_000:
                yield Case(streams("affine", n_streams), linker, size)
    for n_rows in (20, 173, 2_000, 20_000):
        yield Case(packed(n_rows), linker, n_rows)


def function_of(reference: Reference, linker: str, *, ours: bool) -> Function:
    inputs, outputs = reference.build()
    function = measure.compiled(inputs, outputs, ours=ours, mode=MODES[linker])
    # As PyMC does: the checks of the arguments would hide the kernels of small inputs.
    function.trust_input = True
    return function


@cache
def both(reference: Reference, linker: str) -> tuple[Function, Function]:
    """The graph compiled by stock and by us."""
    stock, ours = (function_of(reference, linker, ours=ours) for ours in (False, True))
    return stock, ours


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
            assert measure.largest_difference(got, expected) <= measure.ROUNDING
    for value, copy in zip(values, copies, strict=True):
        np.testing.assert_array_equal(value, copy, strict=True)


def calls_per_batch(function: Function, values: Sequence[np.ndarray]) -> int:
    call_often(function, values, 3)
    times, start = 0, time.thread_time()
    while time.thread_time() - start < BATCH_SECONDS:
        call_often(function, values, 1)
        times += 1
    return times


def call_often(function: Function, values: Sequence[np.ndarray], times: int) -> None:
    for _ in range(times):
        function(*values)


def timed(
    stock: Function, ours: Function, values: Sequence[np.ndarray], *, rounds: int = ROUNDS
) -> measure.Timings:
    """Interleave batches of calls; which side goes first changes from round to round.

    Unlike in `measure.interleaved` garbage is not collected before each batch, for a batch here is
    shorter than a collection; it is switched off instead. Calls make no cycles.
    """
    times = calls_per_batch(stock, values)
    seconds: tuple[list[float], list[float]] = ([], [])
    with measure.frozen_heap():
        gc.disable()
        try:
            for number in range(-2, rounds):
                for side in (0, 1) if number % 2 else (1, 0):
                    function = (stock, ours)[side]
                    start = time.thread_time()
                    call_often(function, values, times)
                    elapsed = time.thread_time() - start
                    if number >= 0:
                        seconds[side].append(elapsed / times)
        finally:
            gc.enable()
    return measure.Timings(tuple(seconds[0]), tuple(seconds[1]))


def noise(linker: str) -> None:
    """How far stock seems from stock, by the number of rounds."""
    counts = (11, 21, 41, 61, 101)
    off: dict[int, list[float]] = {n: [] for n in counts}
    for producer in ("affine", "tanh"):
        for n_streams in (2, 8):
            reference = streams(producer, n_streams)
            a, b = (function_of(reference, linker, ours=False) for _ in range(2))
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
        linker = case.linker
        stock, ours = both(case.reference, linker)
        values = case.reference.values(case.size)
        # Sums in the packed gradients may be added in another order.
        assert_same_answer(stock, ours, values, exactly="packed" not in case.reference.name)
        n_rounds = min(rounds, LARGE_ROUNDS) if case.size > 10_000 else rounds
        timings = [timed(stock, ours, values, rounds=n_rounds)]
        if 1 / timings[0].ratio > limit:
            timings += [timed(stock, ours, values) for _ in range(2)]
        results.append((median(1 / found.ratio for found in timings), case))
        print(f"{linker}: {case}: {timings[0]}", flush=True)
    return sorted(results, key=lambda result: -result[0])


def sweep(linker: str) -> None:
    """The set, and the slowest of it once more at the end."""
    _show(linker, slowest_first(small_cases(linker), limit=1.03))


def gate(linker: str) -> None:
    """The same over other kinds of joins."""
    _show(linker, slowest_first(gate_cases(linker), limit=1.02, rounds=31))


def _show(linker: str, found: list[tuple[float, Case]]) -> None:
    for slower, case in found[:15]:
        print(f"{linker}: {slower:.3f} of stock's time: {case}")


COMMANDS: dict[str, Callable[[str], None]] = {"noise": noise, "sweep": sweep, "gate": gate}

if __name__ == "__main__":
    for name in sys.argv[2:] or [*MODES]:
        COMMANDS[sys.argv[1]](name)
