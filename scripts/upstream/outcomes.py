"""A plugin of pytest that notes how each test went, and runs none but those that are chosen."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    path = os.environ.get("UPSTREAM_CHOSEN")
    if path is None:
        return
    chosen = set(json.loads(Path(path).read_text()))
    config.hook.pytest_deselected(items=[one for one in items if one.nodeid not in chosen])
    items[:] = [one for one in items if one.nodeid in chosen]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write a line: at once, so that nothing is lost if the process is killed.

    With several workers, each report comes to their master, too, which alone writes.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    if report.when == "call" or report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        said = str(crash.message if crash else report.longrepr).strip().splitlines()
        # Neither what failed as expected nor what was left out is a failure.
        _note(report.nodeid, not report.failed, said[0] if report.failed and said else "")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Write a line of a file whose tests cannot be asked for: none of them is told otherwise."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        said = str(report.longrepr).strip().splitlines()
        # The error comes last, below where it was raised.
        _note(f"collecting {report.nodeid}", False, said[-1] if said else "")


def _note(name: str, passed: bool, message: str) -> None:
    with Path(os.environ["UPSTREAM_OUTCOMES"]).open("a") as file:
        file.write(json.dumps([name, passed, message]) + "\n")
