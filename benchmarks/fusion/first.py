"""What a process does for the first time: each function is called in a new one, and says how long.

The package is imported on both sides, since the measurements use it; for stock it is off.
"""

from __future__ import annotations

import time
from typing import Any

import pytensor

from benchmarks.fusion import passes
from benchmarks.graphs.named import reference
from benchmarks.measuring import turns
from benchmarks.measuring.processes import assert_honored, lists


def plan(name: str, side: str) -> dict[str, Any]:
    """The time of the process's first planning."""
    planner = passes.our_plan if side == "ours" else passes.stock_plan
    return {"seconds": turns.seconds(planner, passes.copy(reference(name).fgraph()))}


def fuse(name: str, earlier: str, side: str) -> dict[str, Any]:
    """The time of the first fusion of a graph, and what came out.

    ``earlier`` names a graph that the process fuses before, or is "nothing".
    """
    fuse_it = passes.our_pass if side == "ours" else passes.stock_pass
    if earlier != "nothing":
        fuse_it(passes.copy(reference(earlier).fgraph()))
    fgraph = passes.copy(reference(name).fgraph())
    elapsed = turns.seconds(fuse_it, fgraph)
    fused = passes.tally(fgraph)
    return {"seconds": elapsed, "plan": [fused.kernels, fused.arrays]}


def call(name: str, side: str) -> dict[str, Any]:
    """The times of compiling in NUMBA mode and of the first call, and the results.

    The just-in-time compiler's own start is no part of them.
    """
    import numba

    assert_honored(ours=side == "ours")
    numba.njit(lambda x: x + 1)(1.0)
    graph = reference(name)
    inputs, outputs = graph.build()
    values = graph.values(10)
    start = time.perf_counter()
    function = pytensor.function(inputs, outputs, mode="NUMBA")
    compiled = time.perf_counter()
    results = function(*values)
    called = time.perf_counter()
    return {"compile": compiled - start, "call": called - compiled, "results": lists(results)}
