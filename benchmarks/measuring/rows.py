"""Rows of the table of figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from statistics import geometric_mean


@dataclass(frozen=True)
class Row:
    """A figure and what it is to reach: at least ``floor`` or at most ``ceiling``.

    Rows with ``mean_ceiling`` share a further row per ``what``: their geometric mean. Where a run
    finds out which graphs its rows are of, ``are_all`` says that a table has no others of ``what``.
    """

    what: str
    graph: str
    figure: float
    unit: str = "x"
    floor: float | None = None
    ceiling: float | None = None
    mean_ceiling: float | None = None
    are_all: bool = False

    @property
    def met(self) -> bool:
        if self.floor is not None and self.figure < self.floor:
            return False
        return self.ceiling is None or self.figure <= self.ceiling

    @property
    def limit(self) -> str:
        if self.floor is not None:
            return f">= {self.floor:g}{self.unit}"
        return "" if self.ceiling is None else f"<= {self.ceiling:g}{self.unit}"

    def cells(self) -> list[str]:
        verdict = "" if not self.limit else "yes" if self.met else "NO"
        return [self.what, self.graph, f"{self.figure:.3g}{self.unit}", self.limit, verdict]

    def mean(self, figures: Iterable[float]) -> Row:
        """The row of the geometric mean of these figures, of rows like this one."""
        mean = geometric_mean(figures)
        return replace(self, graph=MEAN, figure=mean, ceiling=self.mean_ceiling)


# The fixture that keeps rows for the table.
Report = Callable[..., None]

# In place of a graph.
MEAN = "geometric mean"

HEADINGS = ["what", "graph", "figure", "asked", "met"]


def with_means(rows: Iterable[Row]) -> list[Row]:
    """The rows by what they measure, each such group followed by its geometric mean if it has one.

    The order is that of the first row of each group.
    """
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.what, []).append(row)
    result = []
    for group in groups.values():
        result += group
        if group[0].mean_ceiling is not None:
            result.append(group[0].mean(row.figure for row in group))
    return result
