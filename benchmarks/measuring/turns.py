"""Fair times of several sides in one process, which take turns.

A round measures each side once. Arguments are made, garbage is collected and answers are checked
outside the clock. The sides take turns in going first, and the figure of a run is the median over
the rounds of stock's time divided by ours, so that a change of the machine's speed between rounds
falls on both.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Timings:
    """What both sides took in each round."""

    stock: Sequence[float]
    ours: Sequence[float]

    @property
    def ratio(self) -> float:
        """How many times faster ours is: the median of the rounds' ratios."""
        return ratio_of(self.stock, self.ours)

    def __str__(self) -> str:
        return (
            f"stock {format_seconds(median(self.stock))}, ours {format_seconds(median(self.ours))},"
            f" {self.ratio:.2f}x in {len(self.ours)} rounds"
        )


def ratio_of(times: Sequence[float], others: Sequence[float]) -> float:
    """The median of the rounds' ratios."""
    return median(a / b for a, b in zip(times, others, strict=True))


def in_turns(
    sides: Mapping[str, Callable[[], T]], rounds: int, *, warmup: int = 0
) -> dict[str, list[T]]:
    """What each side returns in each round; the sides change places from round to round."""
    found: dict[str, list[T]] = {side: [] for side in sides}
    for number in range(-warmup, rounds):
        for side in sides if number % 2 == 0 else reversed(sides):
            result = sides[side]()
            if number >= 0:
                found[side].append(result)
    return found


def seconds(
    function: Callable[..., Any], *args: Any, clock: Callable[[], float] = time.perf_counter
) -> float:
    """The time of one call; garbage left by what came before is collected first."""
    gc.collect()
    start = clock()
    result = function(*args)
    elapsed = clock() - start
    # The result lives until here: its destruction is not part of the time.
    del result
    return elapsed


def interleaved(
    stock: Callable[..., Any],
    ours: Callable[..., Any],
    prepare: Callable[[], Sequence[Any]] = tuple,
    *,
    rounds: int,
    warmup: int = 2,
    clock: Callable[[], float] = time.perf_counter,
) -> Timings:
    """Time both sides in turns; ``prepare()`` makes the arguments of each call."""
    with frozen_heap():
        times = in_turns(
            {
                "stock": lambda: seconds(stock, *prepare(), clock=clock),
                "ours": lambda: seconds(ours, *prepare(), clock=clock),
            },
            rounds,
            warmup=warmup,
        )
    return Timings(**times)


def call_times(
    calls: Mapping[str, Callable[..., Any]],
    values: Sequence[Any],
    rounds: int,
    *,
    batch: float = 0.0,
    warm_calls: int = 0,
    warmup: int = 0,
    clock: Callable[[], float] = time.process_time,
    within: Callable[[str], AbstractContextManager[None]] = lambda side: nullcontext(),
) -> dict[str, list[float]]:
    """Seconds of a call by side, in each round: a call of a batch that takes ``batch`` seconds.

    Unlike in `interleaved`, garbage is not collected before each batch, for a batch is shorter than
    a collection; it is switched off instead. Calls make no cycles. ``warm_calls`` come before each
    batch, within the block of its side.
    """

    def one(side: str, times: int) -> float:
        call = calls[side]
        with within(side):
            for _ in range(warm_calls):
                call(*values)
            start = clock()
            for _ in range(times):
                call(*values)
            return (clock() - start) / times

    with frozen_heap():
        gc.disable()
        try:
            sides = {
                side: partial(one, side, _calls_per_batch(partial(one, side), batch))
                for side in calls
            }
            return in_turns(sides, rounds, warmup=warmup)
        finally:
            gc.enable()


def _calls_per_batch(one: Callable[[int], float], batch: float) -> int:
    """How many calls take ``batch`` seconds; ``one(n)`` is the time of each of ``n``.

    The first calls do not tell: their code and data are not in the processor's caches yet.
    """
    if not batch:
        return 1
    n_calls = 3
    one(n_calls)
    while (taken := n_calls * one(n_calls)) < batch:
        n_calls *= 2
    return max(1, round(n_calls * batch / taken))


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Keep what exists now out of garbage collections within the block.

    A walk over the whole heap between two calls would empty the processor's caches for the next.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def format_seconds(value: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e6:.3g} us"
