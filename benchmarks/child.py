"""Measurements that need a process of their own; each prints one JSON object.

    python benchmarks/child.py first-plan radon ours

What a process does for the first time it can do only once: import, ask PyTensor about scalar ops,
build kernels, fill the just-in-time compiler's caches. So each side gets a process, and the caller
starts them in turns. Peak memory belongs to a process as well.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).parent


def run(
    *arguments: str, ours: bool = True, flags: str = "", cache: str | None = None
) -> dict[str, Any]:
    """Run one measurement in a new process, with the package on or off; its JSON as a dict.

    ``process`` in it is the processor time of all of the process. Numba compiles on both sides:
    machine code is off unless the environment says otherwise.
    """
    environment = {
        "PYTENSOR_FUSE_CACHE": "off",
        "PYTENSOR_FUSE_NATIVE": "off",
        **os.environ,
        "PYTENSOR_FUSE": "1" if ours else "0",
    }
    if cache is not None:
        environment["PYTENSOR_FUSE_CACHE"] = cache
    if flags:
        given = os.environ.get("PYTENSOR_FLAGS")
        environment["PYTENSOR_FLAGS"] = f"{given},{flags}" if given else flags
    command = [sys.executable, str(BENCHMARKS / "child.py"), *arguments]
    start = _children_seconds()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    elapsed = _children_seconds() - start
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {"process": elapsed, **result}


def run_in_empty_compiledir(*arguments: str, ours: bool) -> dict[str, Any]:
    """As ``run``, with an empty compile directory and no cache of compiled code."""
    with tempfile.TemporaryDirectory(prefix="pytensor-fuse-bench-") as directory:
        return run(*arguments, ours=ours, flags=f"base_compiledir={directory}")


def _children_seconds() -> float:
    times = os.times()
    return times.children_user + times.children_system


def first_plan(name: str, side: str) -> dict[str, Any]:
    """The time of the process's first planning."""
    import measure
    from graphs import reference

    fgraph = measure.copy(reference(name).fgraph())
    planner = measure.our_plan if side == "ours" else measure.stock_plan
    return {"seconds": measure.seconds(planner, fgraph)}


def first_pass(name: str, side: str, earlier: str) -> dict[str, Any]:
    """The time of the first fusion of a graph, and what came out.

    ``earlier`` names a graph that the process fuses before, or is "nothing".
    """
    import measure
    from graphs import reference

    fuse = measure.our_pass if side == "ours" else measure.stock_pass
    if earlier != "nothing":
        fuse(measure.copy(reference(earlier).fgraph()))
    fgraph = measure.copy(reference(name).fgraph())
    elapsed = measure.seconds(fuse, fgraph)
    fused = measure.tally(fgraph)
    return {"seconds": elapsed, "kernels": fused.kernels, "arrays": fused.arrays}


def first_call(name: str, side: str) -> dict[str, Any]:
    """The times of compiling in NUMBA mode and of the first call, and the results.

    The just-in-time compiler's own start is no part of them.
    """
    import numba
    import numpy as np
    import pytensor

    import pytensor_fuse
    from graphs import reference

    assert pytensor_fuse.status()["fusion"].is_on == (side == "ours"), (
        "PYTENSOR_FUSE was not honored"
    )
    numba.njit(lambda x: x + 1)(1.0)
    graph = reference(name)
    inputs, outputs = graph.build()
    values = graph.values(10)
    start = time.perf_counter()
    function = pytensor.function(inputs, outputs, mode="NUMBA")
    compiled = time.perf_counter()
    results = function(*values)
    called = time.perf_counter()
    return {
        "compile": compiled - start,
        "call": called - compiled,
        "results": [np.asarray(result).tolist() for result in results],
    }


def function_time(name: str, linker: str, side: str) -> dict[str, Any]:
    """The processor time of one compile, without the start of the just-in-time compiler.

    That of compilers that it starts counts as well; the garbage of what was imported does not.
    """
    import gc

    import numpy as np
    import pytensor

    import pytensor_fuse
    from graphs import reference

    assert pytensor_fuse.status()["fusion"].is_on == (side == "ours"), (
        "PYTENSOR_FUSE was not honored"
    )
    if linker == "NUMBA":
        import numba

        numba.njit(lambda x: x + 1)(1.0)
    graph = reference(name)
    inputs, outputs = graph.build()
    gc.collect()
    gc.freeze()
    start = time.process_time() + _children_seconds()
    function = pytensor.function(inputs, outputs, mode=linker)
    elapsed = time.process_time() + _children_seconds() - start
    results = function(*graph.values(10))
    return {
        "seconds": elapsed,
        "hits": pytensor_fuse.cache.info().hits_on_disk,
        "results": [np.asarray(result).tolist() for result in results],
    }


def script(name: str, side: str) -> dict[str, Any]:
    """What a script does: import PyMC, build a model, compile value and gradient, call.

    The caller times all of the process.
    """
    import numpy as np
    import pymc  # noqa: F401 - the import is part of what is timed

    if side == "ours":
        import pytensor_fuse

        assert pytensor_fuse.status()["fusion"].is_on
    import pytensor

    from graphs import reference

    graph = reference(name)
    function = pytensor.function(*graph.build())
    results = function(*graph.values(10))
    return {"results": [np.asarray(result).tolist() for result in results]}


def import_time() -> dict[str, Any]:
    """The time of importing the package once PyTensor is there."""
    import pytensor  # noqa: F401 - its import is not ours to answer for

    start = time.perf_counter()
    import pytensor_fuse  # noqa: F401 - the import is what is timed

    return {"seconds": time.perf_counter() - start}


def core(n_nodes: str) -> dict[str, Any]:
    """The time and peak memory of planning a synthetic local DAG given as arrays."""
    from pytensor_fuse import _core
    from synthetic import local_dag

    arrays = local_dag(int(n_nodes), seed=1)
    start = time.perf_counter()
    offsets, nodes, before, after, _ = _core.plan_arrays(**arrays)
    elapsed = time.perf_counter() - start
    return {
        "seconds": elapsed,
        "peak_bytes": _peak_bytes(),
        "clusters": len(offsets) - 1,
        "clustered": len(nodes),
        "distinct": len(set(nodes.tolist())),
        "before": list(before),
        "after": list(after),
    }


def table(n_nodes: str) -> dict[str, Any]:
    """The time and memory of interning the nodes of a synthetic local DAG given as arrays."""
    from pytensor_fuse.graph import HashConsTable
    from synthetic import interned_dag

    table = HashConsTable()
    arrays = interned_dag(table, int(n_nodes), seed=1)
    before, bytes_before = len(table), _resident_bytes()
    start = time.perf_counter()
    terms = table.intern(**arrays)
    elapsed = time.perf_counter() - start
    ids = terms.ids
    # The object has a handle on each, too, of the same size.
    resident = _resident_bytes() - bytes_before - 2 * ids.nbytes
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


def peak_of_call(name: str, linker: str, size: str) -> dict[str, Any]:
    """How much a call adds to the memory of the process at most, the result included."""
    import joins
    import pytensor_fuse
    from graphs import reference

    graph = reference(name)
    function = joins.function_of(graph, linker, ours=pytensor_fuse.status()["fusion"].is_on)
    function(*graph.values(10))
    values = graph.values(int(size))
    _reset_peak()
    before = _resident_bytes()
    results = function(*values)
    return {
        "peak_bytes": _peak_bytes() - before,
        "result_bytes": sum(result.nbytes for result in results),
    }


def _reset_peak() -> None:
    """Let the peak start anew; Linux only."""
    Path("/proc/self/clear_refs").write_text("5")


def _resident_bytes() -> int:
    """Bytes in memory now, where the platform tells (Linux), else 0."""
    return _of_status("VmRSS:") or 0


def _of_status(name: str) -> int | None:
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    (line,) = (x for x in status.read_text().splitlines() if x.startswith(name))
    return int(line.split()[1]) * 1024


def _peak_bytes() -> int:
    # Unlike getrusage's, this figure does not start at the size of the parent that forked.
    peak = _of_status("VmHWM:")
    if peak is not None:
        return peak
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


COMMANDS = {
    "first-plan": first_plan,
    "first-pass": first_pass,
    "first-call": first_call,
    "function": function_time,
    "script": script,
    "import": import_time,
    "core": core,
    "table": table,
    "peak-of-call": peak_of_call,
}

if __name__ == "__main__":
    print(json.dumps(COMMANDS[sys.argv[1]](*sys.argv[2:])))
