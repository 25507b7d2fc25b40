"""What compiling keeps in memory, and what the feature costs where nothing is native.

    python -m benchmarks.native.overhead                            # everything
    python -m benchmarks.native.overhead --only memory --rounds 1
    python -m benchmarks.native.overhead --only nothing

memory   what a process has more after its first compile and call, imports not counted
nothing  pytensor.function of a graph of only complex matrices, with the native back-end on and off,
         in turns in one process
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytensor

import pytensor_fuse
from benchmarks.measuring.processes import samples
from benchmarks.measuring.turns import frozen_heap, in_turns, seconds
from benchmarks.native.cold import cold
from benchmarks.native.figures import Figure, arguments, compared, report, say, sides_of
from benchmarks.native.models import only_matrices

MEMORY = ("scalars", "large(100)")
MEMORY_RATIO = 4.0

NOTHING = 1.01
NOTHING_NATIVE = "100 factors, solutions and products of complex matrices"
PARTS = ("memory", "nothing")


def memory(name: str, sides: Sequence[str], rounds: int) -> list[Figure]:
    """Bytes added by the first compile and call."""
    say(f"memory, {name}")
    added = samples(cold(sides, rounds, "memory", name), "added")
    return [Figure("memory added, imports not counted", name, "MB", added, MEMORY_RATIO)]


def nothing(rounds: int) -> dict[str, list[float]]:
    """Seconds of a compile with the native back-end and without it."""
    say(f"nothing native: {NOTHING_NATIVE}")
    inputs, outputs = only_matrices(100)

    def compile_it(*off: str) -> float:
        with pytensor_fuse.enabled(), pytensor_fuse.enabled(False, "cache", *off):
            return seconds(pytensor.function, inputs, outputs, clock=time.process_time)

    with frozen_heap():
        sides = {"on": compile_it, "off": lambda: compile_it("native")}
        return in_turns(sides, rounds, warmup=2)


def main() -> None:
    options = arguments(__doc__, rounds=3).parse_args()
    parts = options.only or PARTS
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise SystemExit(f"no part is called {unknown[0]!r}; there are {', '.join(PARTS)}")
    figures: list[Figure] = []
    rows: list[list[str]] = []
    if "memory" in parts:
        for name in MEMORY:
            figures += memory(name, sides_of(options.sides), options.rounds)
    if "nothing" in parts:
        # A percent takes more rounds than the rest.
        times = nothing(max(41, 7 * options.rounds))
        rows = [compared("compiling", NOTHING_NATIVE, times, "s", NOTHING)]
    report(figures, rows)


if __name__ == "__main__":
    main()
