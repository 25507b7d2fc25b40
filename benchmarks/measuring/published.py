"""The table of figures in README, between its markers."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from benchmarks.measuring import tables
from benchmarks.measuring.rows import HEADINGS, MEAN, Row, with_means

BEGIN = "<!-- figures: written by make bench -->"
END = "<!-- end of figures -->"
# Between the machines of a table.
LATER = "; some rows later, "


def updated(page: str, rows: Sequence[Row], machine: str, *, is_whole: bool) -> str:
    """The page with these rows.

    The rows of all benchmarks, which is what ``is_whole`` says, are a new table. Those of some
    replace their own, new ones follow the last of their kind, and the other rows stay.
    """
    before, begin, rest = page.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"the page must contain {BEGIN!r} and, after it, {END!r}")
    where, _, table = old.strip().partition(":\n\n")
    machines = " ".join(where.split()).split(LATER)
    if is_whole:
        machines = [machine]
        cells = [row.cells() for row in with_means(rows)]
    else:
        if machine not in machines:
            machines.append(machine)
        cells = _merged(table, rows)
    above = textwrap.fill(f"{LATER.join(machines)}:", 120, break_on_hyphens=False)
    return f"{before}{BEGIN}\n{above}\n\n{tables.markdown(HEADINGS, cells)}{END}{after}"


def _merged(table: str, rows: Sequence[Row]) -> list[list[str]]:
    """The cells of a table with some rows in place of its own."""
    all_of = {row.what for row in rows if row.are_all}
    measured = {(row.what, row.graph) for row in rows}
    lines = ([cell.strip() for cell in line[1:-1].split("|")] for line in table.splitlines()[2:])
    cells = [of for of in lines if of[0] not in all_of or (of[0], of[1]) in measured]
    for row in rows:
        _put(cells, row)
    for row in {row.what: row for row in rows if row.mean_ceiling is not None}.values():
        figures = [of[2] for of in cells if of[0] == row.what and of[1] != MEAN]
        _put(cells, row.mean(map(_number, figures)))
    return cells


def _put(cells: list[list[str]], row: Row) -> None:
    """Put a row into the place of the earlier one, else behind the last of its kind."""
    at = len(cells)
    for number, (what, graph, *_) in enumerate(cells):
        if (what, graph) == (row.what, row.graph):
            cells[number] = row.cells()
            return
        if what == row.what and graph != MEAN:
            at = number + 1
    cells.insert(at, row.cells())


def _number(figure: str) -> float:
    """The number of a figure, without its unit."""
    number = re.match(r"[-+]?\d+(\.\d+)?(e[-+]\d+)?", figure)
    assert number is not None, figure
    return float(number[0])
