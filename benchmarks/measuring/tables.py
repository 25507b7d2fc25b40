"""Tables of figures, as Markdown and as aligned text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def aligned(
    headings: Sequence[Sequence[str]],
    rows: Sequence[Sequence[str]],
    *,
    left: int | None = None,
    rule: bool = False,
) -> str:
    """Align columns, the first ``left`` of them (else all) to the left, the others to the right.

    ``headings`` are lines of cells; a rule separates them from the rows if wanted.
    """
    cells = [*headings, *rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    n_left = len(widths) if left is None else left

    def line(row: Sequence[str]) -> str:
        columns = enumerate(zip(row, widths, strict=True))
        return "  ".join(
            cell.ljust(width) if column < n_left else cell.rjust(width)
            for column, (cell, width) in columns
        ).rstrip()

    lines = list(map(line, cells))
    if rule:
        lines.insert(len(headings), "-" * (sum(widths) + 2 * (len(widths) - 1)))
    return "\n".join(lines) + "\n"


def grouped(
    first: Sequence[str], groups: Mapping[str, Sequence[str]], last: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Two lines of headings: that of each group stands above its first column."""
    above = [cell for name, (_, *rest) in groups.items() for cell in (name, *[""] * len(rest))]
    below = [cell for columns in groups.values() for cell in columns]
    return [*first, *above, *last], [*[""] * len(first), *below, *[""] * len(last)]
