"""Pairs of stock and ours under pytest-benchmark, and the table of figures at the end."""

from __future__ import annotations

import gc
import os
import platform
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

# Compiles are measured as if for the first time, but where the cache itself is.
os.environ.setdefault("PYTENSOR_FUSE_CACHE", "off")

import numpy as np
import pytensor
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import measure
from rows import Row, format_rows, with_means

T = TypeVar("T")

ROWS = pytest.StashKey[list[Row]]()


class Pair:
    """One comparison of stock with ours; pytest-benchmark times ours, its setup times stock."""

    def __init__(self, benchmark: BenchmarkFixture, rows: list[Row]) -> None:
        self._benchmark = benchmark
        self._rows = rows

    def in_process(
        self,
        stock: Callable[..., Any],
        ours: Callable[..., Any],
        prepare: Callable[[], Sequence[Any]] = tuple,
        *,
        rounds: int,
    ) -> measure.Timings:
        """Interleave calls of both; ``prepare()`` makes the arguments of each outside the clock."""
        stock_times: list[float] = []

        def setup() -> tuple[Sequence[Any], dict[str, Any]]:
            arguments = prepare()
            stock_times.append(measure.seconds(stock, *prepare()))
            gc.collect()
            return arguments, {}

        with measure.frozen_heap():
            self._benchmark.pedantic(ours, setup=setup, rounds=rounds, warmup_rounds=2)
        if self._benchmark.stats is None:
            pytest.skip("needs pytest-benchmark's clock, which --benchmark-disable turns off")
        our_times = self._benchmark.stats.stats.data
        return measure.Timings(tuple(stock_times[-len(our_times) :]), tuple(our_times))

    def in_processes(
        self, run: Callable[[bool], dict[str, Any]], *, rounds: int
    ) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Call ``run(ours)``, which starts a process, for both sides in turns."""
        stock_results: list[dict[str, Any]] = []
        our_results: list[dict[str, Any]] = []

        def setup() -> None:
            stock_results.append(run(False))

        self._benchmark.pedantic(lambda: our_results.append(run(True)), setup=setup, rounds=rounds)
        return list(zip(stock_results, our_results, strict=True))

    def alone(self, run: Callable[[], T], *, rounds: int) -> list[T]:
        """Call ``run``, which measures for itself, for our side only."""
        results: list[T] = []
        self._benchmark.pedantic(lambda: results.append(run()), rounds=rounds)
        return results

    def report(self, row: Row) -> None:
        """Keep a row for the table and for the file that ``--benchmark-json`` writes."""
        self._rows.append(row)
        self._benchmark.extra_info.setdefault("rows", []).append(row.as_dict())


@pytest.fixture
def pair(benchmark: BenchmarkFixture, request: pytest.FixtureRequest) -> Pair:
    return Pair(benchmark, request.config.stash[ROWS])


@pytest.fixture(autouse=True)
def _quiet_stock() -> Any:
    # Stock drops what exceeds the operand limit, and says so.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Loop fusion failed")
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--check-floors", action="store_true", help="fail if a figure does not reach its floor"
    )
    parser.addoption(
        "--large-matrices", action="store_true", help="linear algebra of size 2000, too"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ROWS] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # In the order of the table; Python's sort keeps the order within a file.
    order = [
        "test_planning",
        "test_pass",
        "test_merging",
        "test_cache",
        "test_core",
        "test_freeze",
        "test_compiled",
        "test_joins",
        "test_linalg",
        "test_linalg_structures",
        "test_trace",
        "test_import",
        "test_audit",
        "test_accelerators",
        "test_native",
    ]
    items.sort(key=lambda item: order.index(item.path.stem) if item.path.stem in order else -1)


def pytest_report_header() -> str:
    return (
        f"figures of PyTensor {pytensor.__version__}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}"
    )


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    rows = with_means(config.stash[ROWS])
    if rows:
        terminalreporter.section("figures")
        terminalreporter.write(format_rows(rows))


def pytest_sessionfinish(session: pytest.Session) -> None:
    missed = [row for row in with_means(session.config.stash[ROWS]) if not row.met]
    if missed and session.config.getoption("--check-floors"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
