"""Streams written straight into the joined buffer: run time, peak memory, and nothing slower."""

from __future__ import annotations

from statistics import geometric_mean, median

import pytest

from benchmarks.graphs.joined import padded_affine, streams
from benchmarks.graphs.packed import packed
from benchmarks.joins import timing
from benchmarks.joins.cases import Case, small_cases
from benchmarks.joins.timing import LARGE_ROUNDS, ROUNDS
from benchmarks.measuring.processes import run_in_turns
from benchmarks.measuring.rows import Report, Row

LINKERS = list(timing.MODES)
LARGE = 10_000
SLOWER = 1.03
"""No case may take more than so many times as long as stock."""


def compare(report: Report, case: Case, floor: float | None, what: str = "join") -> None:
    """Assert the answer, time batches of both, and report."""
    stock, ours, values = timing.checked(case)
    rounds = LARGE_ROUNDS if case.size > LARGE else ROUNDS
    timings = timing.timed(stock, ours, values, rounds=rounds)
    name = case.reference.name if "packed" in case.reference.name else str(case)
    report(Row(f"{what} ({case.linker})", name, timings.ratio, floor=floor))


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("size", [1_000, 100_000, 1_000_000])
def test_cheap_streams(report: Report, size: int, linker: str) -> None:
    floor = 1.0 if size < 100_000 else 1.3 if (linker, size) == ("c", 100_000) else 2.0
    compare(report, Case(streams("affine", 8), linker, size), floor)


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("size", [10, 1_000, 100_000, 1_000_000])
def test_dear_streams(report: Report, size: int, linker: str) -> None:
    compare(report, Case(streams("tanh", 8), linker, size), 1.0)


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("n_rows", [173, 20_000])
def test_packed_gradient(report: Report, n_rows: int, linker: str) -> None:
    compare(report, Case(packed(n_rows), linker, n_rows), 1.0)


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("static", [True, False])
def test_written_slice(report: Report, static: bool, linker: str) -> None:
    size = 1_000_000
    floor = 1.5 if linker == "numba" and static else None
    compare(report, Case(padded_affine(size if static else None), linker, size), floor, "slice")


@pytest.mark.parametrize("linker", LINKERS)
def test_peak_memory(report: Report, linker: str) -> None:
    n_streams, size = 8, 1_000_000
    reference = streams("affine", n_streams)
    given = ("benchmarks.joins.memory:peak_of_call", reference.name, linker, str(size))
    for side, results in run_in_turns(*given, rounds=3).items():
        assert all(result["result_bytes"] == 8 * n_streams * size for result in results)
        peak = median(result["peak_bytes"] / result["result_bytes"] for result in results)
        what = f"peak memory over the result's, {side} ({linker})"
        # The result and one stream; a page here and there is the allocator's.
        ceiling = (n_streams + 1) / n_streams * 1.01 if side == "ours" else None
        report(Row(what, f"{reference.name}, {size:,} each", peak, ceiling=ceiling))


@pytest.mark.parametrize("linker", LINKERS)
def test_nothing_is_slower(report: Report, linker: str) -> None:
    found = timing.slowest_first(small_cases(linker), SLOWER)
    what = f"small joins, ours / stock ({linker})"
    for slower, case in found[:3]:
        report(Row(what, str(case), slower, ceiling=SLOWER, are_all=True))
    mean = geometric_mean(slower for slower, _ in found)
    report(Row(what, f"geometric mean of {len(found)}", mean, ceiling=1.0, are_all=True))
