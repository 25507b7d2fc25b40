"""Figures of three sides, stock, ours and JAX: their table, and the options of the scripts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from statistics import median
from typing import Any

from benchmarks.measuring import tables
from benchmarks.measuring.machine import machine
from benchmarks.measuring.rows import Row
from benchmarks.measuring.turns import ratio_of

SIDES = ("stock", "ours", "jax")

_RATIOS = ("stock / ours", "asked", "JAX / ours", "asked")
HEADINGS = ("what", "model", "stock", "ours", "JAX", *_RATIOS, "met")

UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "MB": 1e-6}


@dataclass(frozen=True)
class Figure:
    """What each side took in each round, in seconds or bytes, and what is asked of the ratios.

    A ratio is the median of the rounds' ratios, so that a change of the machine's speed falls on
    both sides. A side that was not measured has no samples.
    """

    what: str
    model: str
    unit: str
    samples: dict[str, list[float]] = field(default_factory=dict)
    asked: float | None = None
    asked_of_jax: float | None = None

    def typical(self, side: str) -> float | None:
        """The median of a side's rounds, in the unit."""
        samples = self.samples.get(side)
        return median(samples) * UNITS[self.unit] if samples else None

    def over_ours(self, side: str) -> float | None:
        """How many times as much a side took as ours."""
        theirs, ours = self.samples.get(side), self.samples.get("ours")
        if not theirs or not ours:
            return None
        # Memory that a round did not add at all would divide by zero.
        return median(a / max(b, 1e-9) for a, b in zip(theirs, ours, strict=False))

    def rows(self) -> list[Row]:
        """The ratios as rows of the table of all benchmarks."""
        sides = [("stock / ours", "stock", self.asked), ("JAX / ours", "jax", self.asked_of_jax)]
        return [
            Row(f"native: {self.what}, {name}", self.model, ratio, floor=asked)
            for name, side, asked in sides
            if (ratio := self.over_ours(side)) is not None
        ]

    def cells(self) -> list[str]:
        asked = [row for row in self.rows() if row.limit]
        met = ("yes" if all(row.met for row in asked) else "NO") if asked else ""
        times = [_number(self.typical(side), f" {self.unit}") for side in SIDES]
        ratios = [(self.over_ours("stock"), self.asked), (self.over_ours("jax"), self.asked_of_jax)]
        numbers = [
            cell for ratio, floor in ratios for cell in (_number(ratio, "x"), _number(floor, ""))
        ]
        return [self.what, self.model, *times, *numbers, met]


COMPARED = ["what", "", "", "", "ratio", "asked", "met"]


def arguments(description: str | None, *, rounds: int) -> Any:
    """A parser of the options that all scripts have; each may add to it."""
    parser = argparse.ArgumentParser(
        description=(description or "").splitlines()[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--only", action="append", metavar="MODEL", help="may be given again")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--sides", default=",".join(SIDES), help="comma-separated")
    return parser


def sides_of(given: str) -> list[str]:
    """The sides that are wanted and can be measured here.

    Raises
    ------
    SystemExit
        If there is no such side.
    """
    wanted = [side.strip() for side in given.split(",") if side.strip()]
    unknown = [side for side in wanted if side not in SIDES]
    if unknown:
        raise SystemExit(f"no side is called {unknown[0]!r}; there are {', '.join(SIDES)}")
    if "jax" in wanted and not find_spec("jax"):
        say("JAX is not installed: its columns stay empty (pip install jax)")
        wanted.remove("jax")
    return wanted


def compared(
    what: str, name: str, times: dict[str, list[float]], unit: str, most: float
) -> list[str]:
    """Cells: the medians of two sides, the median of their ratios, and whether that is small."""
    first, second = times.values()
    ratio = ratio_of(first, second)
    both = [f"{median(of) * UNITS[unit]:.3g} {unit} {side}" for side, of in times.items()]
    return [what, name, *both, f"{ratio:.3g}", f"<= {most:g}", "yes" if ratio <= most else "NO"]


def report(figures: Sequence[Figure], rows: Sequence[Sequence[str]] = ()) -> None:
    """Print the table, and that of the rows of ``compared``."""
    print(f"{machine()}:\n")
    print(tables.markdown(HEADINGS, [figure.cells() for figure in figures]), end="")
    if rows:
        print(f"\n{tables.markdown(COMPARED, rows)}", end="")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _number(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:.3g}{unit}"
