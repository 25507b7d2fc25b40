"""The planner alone, on large synthetic graphs given as arrays."""

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
