"""Run the benchmarks and write their figures into benchmarks/README.md, between its markers.

python benchmarks/report.py [pytest options]
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import numpy as np
import pytensor

from rows import Row, markdown_rows, with_means

BENCHMARKS = Path(__file__).parent
README = BENCHMARKS / "README.md"
BEGIN = "<!-- figures: written by report.py -->"
END = "<!-- end of figures -->"


def run_benchmarks(options: list[str]) -> list[Row]:
    """The rows that the benchmarks report; their output goes to the terminal as usual."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "benchmarks.json"
        command = [sys.executable, "-m", "pytest", str(BENCHMARKS), "-p", "no:xdist"]
        command += ["--timeout", "3600", f"--benchmark-json={path}", *options]
        subprocess.run(command, check=True, cwd=BENCHMARKS.parent)
        benchmarks = json.loads(path.read_text())["benchmarks"]
    return [Row(**row) for entry in benchmarks for row in entry["extra_info"].get("rows", [])]


def figures(rows: list[Row]) -> str:
    where = (
        f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores, "
        f"PyTensor {pytensor.__version__}, Python {platform.python_version()}, "
        f"Numba {numba.__version__}, NumPy {np.__version__}"
    )
    return f"{where}:\n\n{markdown_rows(with_means(rows))}"


def between_markers(text: str, new: str) -> str:
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{README} must contain {BEGIN!r} and, after it, {END!r}")
    return f"{before}{BEGIN}\n{new}{END}{after}"


def main() -> None:
    text = README.read_text()
    between_markers(text, "")
    README.write_text(between_markers(text, figures(run_benchmarks(sys.argv[1:]))))


if __name__ == "__main__":
    main()
