"""Measure the largest error of each function, and print its row of the page on vector mathematics.

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

PAGE = ROOT / "docs" / "reference" / "vector_mathematics.md"


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


def measured(row: str, count: int) -> str:
    """Return a row of the page's table with its bound and new errors; all else is kept."""
    name, domain, method, source, *_ = [cell.strip() for cell in row.strip("|").split(" | ")]
    (fused, at), (plain, _) = (largest(name.strip("`"), count, fma) for fma in (True, False))
    where = ", ".join(f"`{x.hex()}`" for x in at)
    cells = (f"{FUNCTIONS[name.strip('`')].ulp:g}", f"{fused:.3f}", f"{plain:.3f}", where)
    return f"| {' | '.join([name, domain, method, source, *cells])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--write", action="store_true", help="put the rows into the page")
    given = parser.parse_args()
    np.seterr(all="ignore")
    text = PAGE.read_text()
    rows = {row[3 : row.index("`", 3)]: row for row in text.splitlines() if row.startswith("| `")}
    for name in given.names or FUNCTIONS:
        row = measured(rows[name], given.count)
        print(row)
        text = text.replace(rows[name], row)
    if given.write:
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
