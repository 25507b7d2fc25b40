"""The corpus of fusion problems: what is recorded of them is true, and plans are no worse."""

from __future__ import annotations

import json
from pathlib import Path

from support.processes import run_process

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_plans_are_as_good_as_recorded() -> None:
    # Everything but the search, which takes seconds where it ends at its limit.
    done = run_process("-W", "ignore", str(BENCHMARKS / "corpus.py"), "--quick", cwd=BENCHMARKS)
    assert "82 problems, 78 solved" in done.stdout
    # 98 % of them.
    assert "the fast plan has as many kernels as the best on 81" in done.stdout


def test_files_are_small_and_most_problems_are_solved() -> None:
    paths = sorted((BENCHMARKS / "corpus").glob("*.json"))
    assert len(paths) >= 80
    assert all(path.stat().st_size < 20_000 for path in paths)
    records = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    small = [r for r in records if sum(g >= 0 for g in r["problem"]["groups"]) <= 60]
    solved = [r for r in small if r["cost"] == r["bound"]]
    assert len(solved) >= 0.95 * len(small)
