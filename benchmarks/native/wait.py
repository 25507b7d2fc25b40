"""What a person waits for: the first value of a graph, each call, and the same graph once more.

Each side has processes of its own with empty compile directories, in turns: PyTensor without the
package; with it; and PyTensor's JAX mode where JAX is installed. Times are the processor's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import geometric_mean

from benchmarks.measuring.processes import AS_USERS, Results, run_in_turns, samples
from benchmarks.measuring.results import ROUNDING_OF_JAX, largest_difference
from benchmarks.measuring.turns import format_seconds
from benchmarks.native.figures import SIDES, Figure

# What is waited for, by the name of the child's figure.
KINDS = {"first": "first value", "call": "call", "again": "once more"}


@dataclass(frozen=True)
class Waits:
    """What was waited for on one graph, and by how much results of stock and ours differ."""

    graph: str
    figures: dict[str, Figure]
    difference: float

    def cells(self, sides: Sequence[str]) -> list[str]:
        """The times of each kind by side, with stock's divided by ours after them."""
        cells = []
        for figure in self.figures.values():
            times = [figure.typical(side) for side in sides]
            cells += ["-" if time is None else format_seconds(time) for time in times]
            cells.append(_times(figure.over_ours("stock")))
        return [self.graph, *cells, f"{self.difference:.1e}"]


def columns(sides: Sequence[str]) -> dict[str, list[str]]:
    """What the cells between the first and the last are, by kind."""
    return {kind: [*sides, "ratio"] for kind in KINDS.values()}


def sides_here() -> list[str]:
    """The sides that can be measured here."""
    return [side for side in SIDES if side != "jax" or find_spec("jax")]


def waits(name: str, size: int, mode: str | None, rounds: int, say: Callable[[str], None]) -> Waits:
    """Measure a named graph, with arrays of that size where they are its inputs."""

    def run(*sides: str) -> Results:
        say(f"{name}: first values in new processes, {' and '.join(sides)}")
        given = ("benchmarks.native.child:wait", name, str(size), mode or "")
        return run_in_turns(*given, sides=sides, rounds=rounds, variables=AS_USERS)

    def off_by(found: Results) -> float:
        every = (result["results"] for of_side in found.values() for result in of_side)
        return max(largest_difference(one, expected) for one in every)

    results = run("stock", "ours")
    expected = results["stock"][0]["results"]
    difference = off_by(results)
    if "jax" in sides_here():
        try:
            of_jax = run("jax")
        except RuntimeError as error:
            say(f"{name}: JAX is left out: {str(error).strip().splitlines()[-1]}")
        else:
            if (off := off_by(of_jax)) <= ROUNDING_OF_JAX:
                results |= of_jax
            else:
                say(f"{name}: JAX is left out: its results differ by {off:.1e}")
    figures = {key: Figure(kind, name, "s", samples(results, key)) for key, kind in KINDS.items()}
    return Waits(name, figures, difference)


def gained(measured: Sequence[Waits]) -> str:
    """Say in one line what the package gained."""

    def mean(kind: str, side: str) -> float | None:
        ratios = [waits.figures[kind].over_ours(side) for waits in measured]
        known = [ratio for ratio in ratios if ratio is not None]
        return geometric_mean(known) if known else None

    first, call, again = (_times(mean(kind, "stock")) for kind in KINDS)
    line = f"Gained: a first value {first} as soon, once more {again}; calls {call} as fast"
    if mean("first", "jax") is not None:
        first, call, again = (_times(mean(kind, "jax")) for kind in KINDS)
        line += f"; against JAX's mode {first}, {again} and {call}"
    return f"{line} (mean of {len(measured)})." if len(measured) > 1 else f"{line}."


def _times(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return f"{ratio:.0f}x" if ratio >= 10 else f"{ratio:.1f}x"
