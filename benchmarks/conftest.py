"""The table of figures at the end of a run, also in README.md."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Compiles are measured as if for the first time, but where the cache itself is.
os.environ.setdefault("PYTENSOR_FUSE_CACHE", "off")

import pytest

from benchmarks.measuring import published, tables
from benchmarks.measuring.machine import machine
from benchmarks.measuring.rows import HEADINGS, Report, Row, with_means

FOLDER = Path(__file__).parent
README = FOLDER / "README.md"

# The files in this order, which the table has as well. `test_accelerators` comes late: it switches
# them on and off thousands of times, and CPython caches no attributes of a class that has changed a
# thousand times, which would slow down what is measured in the same process after it.
ORDER = (
    "test_passes",
    "test_core",
    "test_merging",
    "test_cache",
    "test_freeze",
    "test_compiled",
    "test_joins",
    "test_linalg",
    "test_linalg_structures",
    "test_trace",
    "test_audit",
    "test_import",
    "test_accelerators",
    "test_native",
)

ROWS = pytest.StashKey[list[Row]]()


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Report:
    """Keep rows for the table."""
    kept = request.config.stash[ROWS]
    return lambda *rows: kept.extend(rows)


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
    parser.addoption("--write-figures", action="store_true", help="write them into README.md")
    parser.addoption(
        "--large-matrices", action="store_true", help="linear algebra of size 2000, too"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ROWS] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        return ORDER.index(item.path.stem) if item.path.stem in ORDER else -1

    # Python's sort keeps the order within a file.
    items.sort(key=place)


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    rows = with_means(config.stash[ROWS])
    if rows:
        cells = [row.cells() for row in rows]
        terminalreporter.section("figures")
        terminalreporter.write(f"{machine()}:\n\n{tables.aligned([HEADINGS], cells)}")
        if config.getoption("--write-figures"):
            is_whole = was_whole(config, terminalreporter.stats, exitstatus)
            where = machine(with_load=False)
            text = published.updated(
                README.read_text(), config.stash[ROWS], where, is_whole=is_whole
            )
            README.write_text(text)
            terminalreporter.write(f"\n{README}: {'all' if is_whole else 'these'} rows replaced\n")


def pytest_sessionfinish(session: pytest.Session) -> None:
    missed = [row for row in with_means(session.config.stash[ROWS]) if not row.met]
    if missed and session.config.getoption("--check-floors"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def was_whole(config: pytest.Config, stats: Mapping[str, list[Any]], exitstatus: int) -> bool:
    """Whether all benchmarks ran: nothing was selected, skipped or interrupted, nothing failed."""
    given = {config.invocation_params.dir / argument for argument in config.args}
    left_out = any(stats.get(name) for name in ("deselected", "skipped", "failed", "error"))
    return FOLDER in given and not left_out and exitstatus != pytest.ExitCode.INTERRUPTED
