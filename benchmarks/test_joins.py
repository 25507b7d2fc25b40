"""Streams written straight into the joined buffer: run time, peak memory, and nothing slower."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest

import child
import joins
import measure
from conftest import Pair
from graphs import packed, padded_affine, streams
from joins import LARGE_ROUNDS, ROUNDS, Case
from rows import Row

LINKERS = list(joins.MODES)
LARGE = 10_000
SLOWER = 1.03
"""No case may take more than so many times as long as stock."""


def compared(pair: Pair, case: Case, *, exactly: bool = True) -> measure.Timings:
    """Assert the answer, then time batches of both."""
    stock, ours = joins.both(case.reference, case.linker)
    values = case.reference.values(case.size)
    joins.assert_same_answer(stock, ours, values, exactly=exactly)
    rounds = LARGE_ROUNDS if case.size > LARGE else ROUNDS
    [timings] = pair.alone(lambda: joins.timed(stock, ours, values, rounds=rounds), rounds=1)
    return timings


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("size", [1_000, 100_000, 1_000_000])
def test_cheap_streams(pair: Pair, size: int, linker: str) -> None:
    floor = 1.0 if size < 100_000 else 1.3 if (linker, size) == ("c", 100_000) else 2.0
    case = Case(streams("affine", 8), linker, size)
    pair.report(Row(f"join ({linker})", str(case), compared(pair, case).ratio, "x", floor=floor))


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("size", [10, 1_000, 100_000, 1_000_000])
def test_dear_streams(pair: Pair, size: int, linker: str) -> None:
    case = Case(streams("tanh", 8), linker, size)
    pair.report(Row(f"join ({linker})", str(case), compared(pair, case).ratio, "x", floor=1.0))


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("n_rows", [173, 20_000])
def test_packed_gradient(pair: Pair, n_rows: int, linker: str) -> None:
    case = Case(packed(n_rows), linker, n_rows)
    timings = compared(pair, case, exactly=False)
    pair.report(Row(f"join ({linker})", case.reference.name, timings.ratio, "x", floor=1.0))


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("static", [True, False])
def test_written_slice(pair: Pair, static: bool, linker: str) -> None:
    size = 1_000_000
    case = Case(padded_affine(size if static else None), linker, size)
    floor = 1.5 if linker == "numba" and static else None
    pair.report(Row(f"slice ({linker})", str(case), compared(pair, case).ratio, "x", floor=floor))


@pytest.mark.parametrize("linker", LINKERS)
def test_peak_memory(pair: Pair, linker: str) -> None:
    n_streams, size = 8, 1_000_000
    reference = streams("affine", n_streams)

    def run(ours: bool) -> dict[str, Any]:
        return child.run("peak-of-call", reference.name, linker, str(size), ours=ours)

    results = pair.in_processes(run, rounds=3)
    for result in (result for both in results for result in both):
        assert result["result_bytes"] == 8 * n_streams * size
    for number, side in enumerate(("stock", "ours")):
        peak = median(both[number]["peak_bytes"] / both[number]["result_bytes"] for both in results)
        what = f"peak memory over the result's, {side} ({linker})"
        # The result and one stream; a page here and there is the allocator's.
        ceiling = (n_streams + 1) / n_streams * 1.01 if side == "ours" else None
        pair.report(Row(what, f"{reference.name}, {size:,} each", peak, "x", ceiling=ceiling))


@pytest.mark.parametrize("linker", LINKERS)
def test_nothing_is_slower(pair: Pair, linker: str) -> None:
    (found,) = pair.alone(lambda: joins.slowest_first(joins.small_cases(linker), SLOWER), rounds=1)
    what = f"small joins, ours / stock ({linker})"
    for slower, case in found[:3]:
        pair.report(Row(what, str(case), slower, "x", ceiling=SLOWER))
    mean = measure.geometric_mean([slower for slower, _ in found])
    pair.report(Row(what, f"geometric mean of {len(found)}", mean, "x", ceiling=1.0))
