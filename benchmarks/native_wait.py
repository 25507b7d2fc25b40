"""What a person waits for: the first value of a graph, each call, and the same graph once more.

Each side has processes of its own with empty compile directories, in turns: PyTensor without the
package; with it; and PyTensor's JAX mode where JAX is installed. Times are the processor's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import measure
import native_child
from native_figures import SIDES, Figure, in_turns, samples

# What is waited for, by the name of the child's figure.
KINDS = {"first": "first value", "call": "call", "again": "once more"}

# XLA's sums and functions are its own.
ROUNDING_OF_JAX = 1e-8


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
            cells += ["-" if time is None else measure.format_seconds(time) for time in times]
            cells.append(_times(figure.over_ours("stock")))
        return [self.graph, *cells, f"{self.difference:.1e}"]


def headings(sides: Sequence[str]) -> list[tuple[str, str]]:
    """Two lines for each of the cells."""
    columns = [("graph", "")]
    for kind in KINDS.values():
        names = [*sides, "ratio"]
        columns += [(kind if name == names[0] else "", name) for name in names]
    return [*columns, ("difference", "")]


def sides_here() -> list[str]:
    """The sides that can be measured here."""
    return [side for side in SIDES if side != "jax" or find_spec("jax")]


def waits(name: str, size: int, mode: str | None, rounds: int, say: Callable[[str], None]) -> Waits:
    """Measure a graph of ``graphs.py``, with arrays of that size where they are its inputs."""

    def run(side: str) -> dict[str, Any]:
        say(f"{name}: first value in a new process, {side}")
        with tempfile.TemporaryDirectory(prefix="native-wait-") as directory:
            arguments = (name, str(size), mode or "")
            return native_child.run("wait", *arguments, side=side, directory=Path(directory))

    results = in_turns(["stock", "ours"], run, rounds)
    expected = results["stock"][0]["results"]
    difference = max(
        _difference(result[key], expected)
        for of_side in results.values()
        for result in of_side
        for key in ("results", "results again")
    )
    if "jax" in sides_here():
        try:
            of_jax = in_turns(["jax"], run, rounds)
        except RuntimeError as error:
            say(f"{name}: JAX is left out: {str(error).strip().splitlines()[-1]}")
        else:
            off = max(_difference(result["results"], expected) for result in of_jax["jax"])
            if off <= ROUNDING_OF_JAX:
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
        return measure.geometric_mean(known) if known else None

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


def _difference(ours: Sequence[Any], stock: Sequence[Any]) -> float:
    both = ([np.asarray(one) for one in side] for side in (ours, stock))
    return measure.largest_difference(*both)
