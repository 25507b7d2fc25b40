"""Figures in README and on the site are those of the table that the benchmarks write."""

import re

import pytest

from support.web.pages import ROOT, text_of


def table_rows(text):
    """The cells of each row of each table, without code marks."""
    for line in text.splitlines():
        if line.startswith("|"):
            yield [cell.strip().strip("`") for cell in line.strip("|").split("|")]


MEASURED = {
    (what, graph): figure
    for what, graph, figure, *_ in (
        row for row in table_rows(text_of(ROOT / "benchmarks" / "README.md")) if len(row) == 5
    )
}

README_GRAPHS = {
    "hierarchical regression": "radon",
    "Student t regression": "student-t(40)",
    "100 log-densities": "large(100)",
}
README_ROWS = {
    "whole compile, Python linker": "whole compile, Python linker",
    "compiled again, Python linker": "compiled again (python)",
    "compiled again, C": "compiled again (cvm)",
    "compiled again, Numba": "compiled again (numba)",
    "with other data, Python linker": "refit with other data (python)",
    "first compile of a process, from a warm cache on disk, C": "compiled in a new process (cvm)",
    "the same, Numba": "compiled in a new process (numba)",
}
SITE_ROWS = {
    "planning, from the FunctionGraph": "planning, warm",
    "planning, first call of a process": "planning, first of a process",
    "whole pass": "whole pass, warm",
    "whole pass, a graph not seen before": "whole pass, first sight of the graph",
    "whole pass, first call of a process": "whole pass, first of a process",
}


def shown(page, rows, graphs):
    """Each figure that a page shows, with what it is of."""
    names = None
    for first, *cells in table_rows(text_of(ROOT / page)):
        if first == "" and set(cells) & {*graphs, "deep(20)"}:
            names = [graphs.get(cell, cell) for cell in cells]
        elif first in rows and names is not None:
            for graph, cell in zip(names, cells, strict=True):
                if cell:
                    yield rows[first], graph, cell


SHOWN = [
    *shown("README.md", README_ROWS, README_GRAPHS),
    *shown("docs/reference/figures.md", SITE_ROWS, {}),
]


def test_all_rows_are_compared():
    assert {what for what, _, _ in SHOWN} == {*README_ROWS.values(), *SITE_ROWS.values()}
    assert len(SHOWN) > 30


@pytest.mark.parametrize(("what", "graph", "figure"), SHOWN)
def test_a_figure_is_the_measured_one_rounded(what, graph, figure):
    measured = float(MEASURED[what, graph].rstrip("x"))
    digits = re.fullmatch(r"\d+(?:\.(\d+))?x", figure)
    half = 0.5 * 10 ** -len(digits[1] or "")
    assert abs(float(figure[:-1]) - measured) <= half * 1.0001
