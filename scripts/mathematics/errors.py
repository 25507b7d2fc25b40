"""Measure the largest error of each function, and print the table of docs/vector_mathematics.md.

python scripts/mathematics/errors.py [--count 4000] [--write] [NAME ...]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from _native.mathematics import oracle, samples  # noqa: E402
from _native.mathematics.machine import compiled  # noqa: E402
from pytensor_fuse._native.mathematics import FUNCTIONS  # noqa: E402

PAGE = ROOT / "docs" / "vector_mathematics.md"
BEGIN, END = "<!-- errors: begin -->", "<!-- errors: end -->"


def largest(name: str, count: int, fma: bool) -> tuple[float, tuple[float, ...]]:
    """Return the largest error in units of the last place, and the arguments that have it."""
    if FUNCTIONS[name].arguments == 2:
        rows = samples.power_arguments(count, seed=1)
    else:
        rows = (samples.arguments(name, count, seed=1),)
    results = compiled(name, fma=fma)(*rows)
    worst: tuple[float, tuple[float, ...]] = (0.0, ())
    for result, *row in zip(results, *rows, strict=True):
        value = oracle.exact(name, *row)
        error = oracle.error(float(result), value)
        if error > worst[0]:
            worst = error, tuple(float(x) for x in row)
    return worst


def table(names: list[str], count: int) -> list[str]:
    lines = [
        "| Function | Domain | Method | Source | Bound, ulp | Seen with FMA | Seen without | at |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in names:
        function = FUNCTIONS[name]
        (fused, at), (plain, _) = (largest(name, count, fma) for fma in (True, False))
        where = ", ".join(f"`{x.hex()}`" for x in at)
        lines.append(
            f"| `{name}` | {function.domain} | {function.method} | {function.source} "
            f"| {function.ulp:g} | {fused:.3f} | {plain:.3f} | {where} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    given = parser.parse_args()
    np.seterr(all="ignore")
    lines = table(given.names or list(FUNCTIONS), given.count)
    if not given.write:
        print(*lines, sep="\n")
        return
    text = PAGE.read_text()
    before, after = text[: text.index(BEGIN)], text[text.index(END) :]
    PAGE.write_text("\n".join([before + BEGIN, *lines, after]))


if __name__ == "__main__":
    main()
