"""What the scripts of issue 28 share: figures, their table, and taking turns."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from rows import Row

SIDES = ("stock", "ours", "jax")

HEADINGS = (
    "what",
    "model",
    "stock",
    "ours",
    "JAX",
    "stock / ours",
    "asked",
    "JAX / ours",
    "asked",
    "met",
)

_UNITS = {"s": (1.0, "s"), "ms": (1e3, "ms"), "us": (1e6, "us"), "MB": (1e-6, "MB")}

# One thread each: of BLAS, of XLA's kernels and of its compiler.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NPROC": "1",
    "XLA_FLAGS": (
        "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        " --xla_cpu_parallel_codegen_split_count=1"
    ),
    # Small results are computed where they are asked for; the others, see native_calls.
    "JAX_CPU_ENABLE_ASYNC_DISPATCH": "0",
}


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
        return median(samples) * _UNITS[self.unit][0] if samples else None

    def over_ours(self, side: str) -> float | None:
        """How many times as much a side took as ours."""
        theirs, ours = self.samples.get(side), self.samples.get("ours")
        if not theirs or not ours:
            return None
        # Memory that a round did not add at all would divide by zero.
        return median(a / max(b, 1e-9) for a, b in zip(theirs, ours, strict=False))

    @property
    def met(self) -> bool | None:
        """Whether both ratios are as asked; None if nothing is asked, or nothing measured."""
        pairs = [
            (self.over_ours("stock"), self.asked),
            (self.over_ours("jax"), self.asked_of_jax),
        ]
        known = [(ratio, asked) for ratio, asked in pairs if ratio is not None and asked]
        return all(ratio >= asked for ratio, asked in known) if known else None

    def rows(self) -> list[Row]:
        """The ratios as rows of the table of all benchmarks."""
        sides = [("stock / ours", "stock", self.asked), ("JAX / ours", "jax", self.asked_of_jax)]
        return [
            Row(f"native: {self.what}, {name}", self.model, ratio, "x", floor=asked)
            for name, side, asked in sides
            if (ratio := self.over_ours(side)) is not None
        ]

    def cells(self) -> list[str]:
        met = {None: "", True: "yes", False: "NO"}[self.met]
        unit = _UNITS[self.unit][1]
        times = [_number(self.typical(side), f" {unit}") for side in SIDES]
        return [
            self.what,
            self.model,
            *times,
            _number(self.over_ours("stock"), "x"),
            _number(self.asked, ""),
            _number(self.over_ours("jax"), "x"),
            _number(self.asked_of_jax, ""),
            met,
        ]

    def as_dict(self) -> dict[str, Any]:
        ratios = {f"{side}_over_ours": self.over_ours(side) for side in ("stock", "jax")}
        return {**asdict(self), **ratios, "met": self.met}


def in_turns(
    sides: Sequence[str], run: Callable[[str], dict[str, Any]], rounds: int
) -> dict[str, list[dict[str, Any]]]:
    """What ``run(side)`` returns in each round; the sides change places from round to round."""
    results: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    for number in range(rounds):
        for side in sides if number % 2 == 0 else reversed(sides):
            results[side].append(run(side))
    return results


def samples(results: dict[str, list[dict[str, Any]]], *keys: str) -> dict[str, list[float]]:
    """The sum of these entries of each result, by side."""
    return {
        side: [sum(result[key] for key in keys) for result in of_side]
        for side, of_side in results.items()
    }


def table(figures: Iterable[Figure]) -> str:
    """The figures as a Markdown table."""
    lines = [HEADINGS, ["---"] * len(HEADINGS), *(figure.cells() for figure in figures)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def arguments(description: str | None, *, rounds: int, sides: bool = True) -> Any:
    """A parser of the options that all scripts have; each may add to it."""
    parser = argparse.ArgumentParser(
        description=(description or "").splitlines()[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--only", action="append", metavar="MODEL", help="may be given again")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there, too")
    if sides:
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


def report(figures: Sequence[Figure], options: Any, **more: Any) -> None:
    """Print the table, and write the file that ``--json`` asks for."""
    print(f"{machine()}:\n")
    print(table(figures), end="")
    if options.json:
        content = {"machine": machine(), "figures": [f.as_dict() for f in figures], **more}
        options.json.write_text(json.dumps(content, indent=1))


def machine() -> str:
    names = ("pytensor", "pymc", "numba", "llvmlite", "numpy", "jax", "nutpie")
    versions = ", ".join(f"{name} {found}" for name in names if (found := _version(name)))
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return (
        f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores{load}, "
        f"Python {platform.python_version()}, {versions}"
    )


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _number(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:.3g}{unit}"
