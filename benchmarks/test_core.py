"""The Rust core alone, on large synthetic graphs given as arrays."""

from __future__ import annotations

from statistics import median

import pytest

import child
from conftest import Pair
from rows import Row

GIGABYTE = 1e9


@pytest.mark.parametrize(("n_nodes", "ceiling"), [(100_000, 0.3), (1_000_000, 4.0)])
def test_local_dag(pair: Pair, n_nodes: int, ceiling: float) -> None:
    results = pair.alone(lambda: child.run("core", str(n_nodes)), rounds=3)
    for result in results:
        assert result["distinct"] == result["clustered"], "a node is in two clusters"
        # Every cluster of k nodes is one kernel in the place of k.
        saved = result["clustered"] - result["clusters"]
        assert result["before"][0] - result["after"][0] == saved > 0
        assert result["clusters"] == results[0]["clusters"]
    graph = f"local DAG, {n_nodes:.0e} nodes".replace("e+0", "e")
    seconds = median(result["seconds"] for result in results)
    pair.report(Row("core planner", graph, seconds, " s", ceiling=ceiling))
    peak = max(result["peak_bytes"] for result in results) / GIGABYTE
    pair.report(Row("core planner, peak memory", graph, peak, " GB", ceiling=1.5))


def test_table(pair: Pair) -> None:
    n_nodes = 1_000_000
    results = pair.alone(lambda: child.run("table", str(n_nodes)), rounds=5)
    for result in results:
        assert result["new"] == result["distinct"] <= n_nodes
        assert result["distinct"] > 0.99 * n_nodes
        assert result["same_again"]
    graph = "random DAG, 1e6 nodes"
    seconds = median(result["seconds"] for result in results)
    pair.report(Row("hash-cons table, interning", graph, seconds, " s", ceiling=0.5))
    seconds = median(result["release_seconds"] for result in results)
    pair.report(Row("hash-cons table, releasing", graph, seconds, " s"))
    memory = max(result["bytes_per_node"] for result in results)
    pair.report(Row("hash-cons table, memory", graph, memory, " bytes per node", ceiling=200))
