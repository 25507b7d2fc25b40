"""The memory of a call, in a new process."""

from __future__ import annotations

from typing import Any

from benchmarks.graphs.named import reference
from benchmarks.joins.timing import MODES
from benchmarks.measuring.memory import peak_bytes, reset_peak, resident_bytes
from benchmarks.measuring.sides import compiled, unchecked


def peak_of_call(name: str, linker: str, size: str, side: str) -> dict[str, Any]:
    """How much a call adds to the memory of the process at most, the result included."""
    graph = reference(name)
    function = unchecked(compiled(*graph.build(), ours=side == "ours", mode=MODES[linker]))
    function(*graph.values(10))
    values = graph.values(int(size))
    reset_peak()
    before = resident_bytes()
    results = function(*values)
    return {
        "peak_bytes": peak_bytes() - before,
        "result_bytes": sum(result.nbytes for result in results),
    }
