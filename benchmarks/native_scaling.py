"""How compiling grows with the number of loops, what it keeps in memory, and what it costs where
nothing is native; issue 28.

    python benchmarks/native_scaling.py                                    # everything
    python benchmarks/native_scaling.py --only loops --most 100 --rounds 1
    python benchmarks/native_scaling.py --only memory --rounds 1
    python benchmarks/native_scaling.py --only nothing

loops    a function of n loops that cannot be fused, each compile a process with empty directories;
         the exponent is that of the least-squares line through the logarithms
memory   what a process has more after its first compile and call, imports not counted
nothing  pytensor.function of a graph of only complex matrices, with the native back-end on and off,
         in turns in one process
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from statistics import median
from typing import Any

import numpy as np

import pytensor_fuse
from native_cold import check, cold
from native_figures import Figure, arguments, in_turns, report, samples, say, sides_of

LOOPS = (10, 30, 100, 300, 1000)
# Numba takes a second for a dozen loops: what it does with a thousand nobody waits for.
MOST_OF_NUMBA = 100
EXPONENT = 1.1

MEMORY = ("scalars", "large(100)")
MEMORY_RATIO = 4.0

NOTHING = 1.01
PARTS = ("loops", "memory", "nothing")


def has_native() -> bool:
    """Whether the package has the feature."""
    from pytensor_fuse._startup.features import FEATURES

    return "native" in FEATURES


def exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """That of the power of the size that fits the times best."""
    slope, _ = np.polyfit(np.log(sizes), np.log(times), 1)
    return float(slope)


def loops(
    sides: Sequence[str], rounds: int, most: int
) -> tuple[list[Figure], list[tuple[str, str, float]]]:
    """Compile times by number of loops; and the exponents, by what and by side."""
    figures: list[Figure] = []
    by_size: dict[str, dict[int, dict[str, float]]] = {side: {} for side in sides}
    for n in LOOPS:
        numba = [side for side in sides if side == "stock" or (side == "ours" and not has_native())]
        left = [s for s in sides if n <= (min(most, MOST_OF_NUMBA) if s in numba else most)]
        if not left:
            continue
        say(f"{n} loops: {', '.join(left)}")
        results = in_turns(left, lambda side, n=n: cold("loops", str(n), side=side), rounds)
        check(results)
        name = f"{n} loops"
        found = [
            Figure("pytensor.function", name, "s", samples(results, "function")),
            Figure("first call", name, "s", samples(results, "call")),
            Figure("function and first call", name, "s", samples(results, "function", "call")),
        ]
        say("\n".join(" | ".join(figure.cells()) for figure in found))
        figures += found
        for side in left:
            by_size[side][n] = {f.what: median(f.samples[side]) for f in found}
    exponents = [
        (what, side, exponent([*of_side], [times[what] for times in of_side.values()]))
        for what in ("pytensor.function", "first call", "function and first call")
        for side, of_side in by_size.items()
        if len(of_side) > 1
    ]
    return figures, exponents


def memory(sides: Sequence[str], rounds: int, name: str, what: str) -> list[Figure]:
    """Bytes added by the first compile and call, and the most that there were meanwhile."""
    say(f"memory, {name}, {what}")
    results = in_turns(sides, lambda side: cold("memory", name, what, side=side), rounds)
    if name == "scalars":
        check(results)
    imports = "imports not counted" if what == "imported" else "Numba's or JAX's import counted"
    return [
        Figure(f"memory added, {imports}", name, "MB", samples(results, "added"), MEMORY_RATIO),
        Figure(f"peak of it, {imports}", name, "MB", samples(results, "peak")),
    ]


def without_native() -> AbstractContextManager[None]:

    # The keyword is there when the feature is.
    return pytensor_fuse.enabled(False, "native")


def nothing(rounds: int) -> list[tuple[str, float, float, float, float]]:
    """By graph: seconds with the native back-end and without it, and the median of the ratios.

    The last number is the ratio of the least times, which a busy machine moves less.
    """
    import pytensor

    import measure
    import native_models
    import pytensor_fuse

    graphs = {
        "100 factors, solutions and products of complex matrices": native_models.only_matrices(100),
    }
    found = []
    for name, (inputs, outputs) in graphs.items():
        say(f"nothing native: {name}")

        def compile_it(native: bool, io: Any = (inputs, outputs)) -> float:
            with (
                pytensor_fuse.enabled() if native else without_native(),
                pytensor_fuse.enabled(False, "cache"),
            ):
                return measure.seconds(pytensor.function, *io, clock=time.process_time)

        times: dict[bool, list[float]] = {True: [], False: []}
        with measure.frozen_heap():
            for number in range(-2, rounds):
                for native in (True, False) if number % 2 == 0 else (False, True):
                    elapsed = compile_it(native)
                    if number >= 0:
                        times[native].append(elapsed)
        ratio = median(a / b for a, b in zip(times[True], times[False], strict=True))
        least = min(times[True]) / min(times[False])
        found.append((name, median(times[True]), median(times[False]), ratio, least))
    return found


def main() -> None:
    parser = arguments(__doc__, rounds=3)
    parser.add_argument("--most", type=int, default=LOOPS[-1], help="loops")
    options = parser.parse_args()
    parts = options.only or PARTS
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise SystemExit(f"no part is called {unknown[0]!r}; there are {', '.join(PARTS)}")
    sides = sides_of(options.sides)
    figures: list[Figure] = []
    lines: list[str] = []
    if "loops" in parts:
        figures, exponents = loops(sides, options.rounds, options.most)
        lines += ["", "| exponent of growth | side | figure | asked | met |", "| --- " * 5 + "|"]
        for what, side, figure in exponents:
            asked = f"<= {EXPONENT}" if side == "ours" else ""
            met = ("yes" if figure <= EXPONENT else "NO") if asked else ""
            lines.append(f"| {what} | {side} | {figure:.3f} | {asked} | {met} |")
    if "memory" in parts:
        for name in MEMORY:
            for what in ("imported", "new"):
                figures += memory(sides, options.rounds, name, what)
    if "nothing" in parts and not has_native():
        say("the package has no feature 'native' yet: what it costs for nothing is left out")
    elif "nothing" in parts:
        lines += [
            "",
            "| nothing native | on | off | on / off | of the least | asked | met |",
            "| --- " * 7 + "|",
        ]
        # A percent takes more rounds than the rest.
        for name, on, off, ratio, least in nothing(max(41, 7 * options.rounds)):
            met = "yes" if ratio <= NOTHING else "NO"
            times = (f"{on:.3f} s", f"{off:.3f} s", f"{ratio:.4f}", f"{least:.4f}")
            cells = (name, *times, f"<= {NOTHING}", met)
            lines.append(f"| {' | '.join(cells)} |")
    report(figures, options, lines=lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
