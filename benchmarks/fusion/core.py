"""The Rust core on large synthetic graphs; each function is called in a new process."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.fusion.synthetic import interned_dag, local_dag
from benchmarks.measuring import memory
from pytensor_fuse import _core
from pytensor_fuse.graph import HashConsTable


def plan(n_nodes: str) -> dict[str, Any]:
    """The time and peak memory of planning a synthetic local DAG given as arrays."""
    arrays = local_dag(int(n_nodes), seed=1)
    start = time.perf_counter()
    offsets, nodes, before, after, _ = _core.plan_arrays(**arrays)
    elapsed = time.perf_counter() - start
    return {
        "seconds": elapsed,
        "peak_bytes": memory.peak_bytes(),
        "clusters": len(offsets) - 1,
        "clustered": len(nodes),
        "distinct": len(set(nodes.tolist())),
        "before": list(before),
        "after": list(after),
    }


def intern(n_nodes: str) -> dict[str, Any]:
    """The time and memory of interning the nodes of a synthetic DAG given as arrays."""
    table = HashConsTable()
    arrays = interned_dag(table, int(n_nodes), seed=1)
    before, bytes_before = len(table), memory.resident_bytes()
    start = time.perf_counter()
    terms = table.intern(**arrays)
    elapsed = time.perf_counter() - start
    ids = terms.ids
    # The object has a handle on each, too, of the same size.
    resident = memory.resident_bytes() - bytes_before - 2 * ids.nbytes
    new = len(table) - before
    again = table.intern(**arrays).ids
    start = time.perf_counter()
    del terms
    released = time.perf_counter() - start
    return {
        "seconds": elapsed,
        "release_seconds": released,
        "new": new,
        "distinct": len(set(ids.tolist())),
        "same_again": ids.tolist() == again.tolist(),
        "bytes_per_node": max(resident, table.stats()["bytes"]) / new,
    }
