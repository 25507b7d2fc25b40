"""The Rust core alone, on large synthetic graphs given as arrays."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest

from benchmarks.measuring import processes
from benchmarks.measuring.rows import Report, Row

GIGABYTE = 1e9


def runs(function: str, n_nodes: int, rounds: int) -> list[dict[str, Any]]:
    """What so many processes report."""
    name = f"benchmarks.fusion.core:{function}"
    return [processes.run(name, str(n_nodes)) for _ in range(rounds)]


@pytest.mark.parametrize(("n_nodes", "ceiling"), [(100_000, 0.3), (1_000_000, 4.0)])
def test_local_dag(report: Report, n_nodes: int, ceiling: float) -> None:
    results = runs("plan", n_nodes, 3)
    for result in results:
        assert result["distinct"] == result["clustered"], "a node is in two clusters"
        # Every cluster of k nodes is one kernel in the place of k.
        saved = result["clustered"] - result["clusters"]
        assert result["before"][0] - result["after"][0] == saved > 0
        assert result["clusters"] == results[0]["clusters"]
    graph = f"local DAG, {n_nodes:.0e} nodes".replace("e+0", "e")
    seconds = median(result["seconds"] for result in results)
    peak = max(result["peak_bytes"] for result in results) / GIGABYTE
    report(
        Row("core planner", graph, seconds, " s", ceiling=ceiling),
        Row("core planner, peak memory", graph, peak, " GB", ceiling=1.5),
    )


def test_table(report: Report) -> None:
    n_nodes = 1_000_000
    results = runs("intern", n_nodes, 5)
    for result in results:
        assert result["new"] == result["distinct"] <= n_nodes
        assert result["distinct"] > 0.99 * n_nodes
        assert result["same_again"]
    what, graph = "hash-cons table", "random DAG, 1e6 nodes"
    seconds, released = (median(r[key] for r in results) for key in ("seconds", "release_seconds"))
    memory = max(result["bytes_per_node"] for result in results)
    report(
        Row(f"{what}, interning", graph, seconds, " s", ceiling=0.5),
        Row(f"{what}, releasing", graph, released, " s"),
        Row(f"{what}, memory", graph, memory, " bytes per node", ceiling=200),
    )
