"""The time of a compile with some accelerators."""

from __future__ import annotations

import time
from typing import Any

import pytensor
from pytensor.compile.mode import Mode

from benchmarks.graphs.reference import Reference
from benchmarks.measuring.turns import seconds
from support.switching import switched

# Rewriting alone: the Python linker compiles nothing.
MODE = Mode(linker="py", optimizer="fast_run")


def compile_seconds(reference: Reference, mode: Mode | str = MODE, **settings: Any) -> float:
    """Processor time of one compile; the graph is built, and garbage collected, before."""
    inputs, outputs = reference.build()
    with switched(**settings):
        return seconds(
            lambda: pytensor.function(inputs, outputs, mode=mode), clock=time.process_time
        )
