"""Importing the package once PyTensor is imported."""

from __future__ import annotations

from statistics import median

from benchmarks.measuring import processes
from benchmarks.measuring.rows import Report, Row


def test_import(report: Report) -> None:
    function = "benchmarks.compiling.processes:import_time"
    processes.run(function)  # writes the byte code
    results = [processes.run(function) for _ in range(7)]
    # A fifth of PyTensor's own import: the features are compared with its sources, and switched on.
    milliseconds = 1e3 * median(result["seconds"] for result in results)
    report(Row("import after PyTensor's", "", milliseconds, " ms", ceiling=50))
