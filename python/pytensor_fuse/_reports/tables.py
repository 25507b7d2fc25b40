"""Tables and paragraphs of pages, from plain texts."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from pytensor_fuse._reports.page import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

# Rows that a page shows of a table; the rest is counted.
SHOWN_ROWS = 200


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    numbers: Sequence[int] = (),
    bars: Sequence[float] | None = None,
    shown: int = SHOWN_ROWS,
) -> str:
    """Return the first rows of a table as HTML, and a count of the rest.

    Parameters
    ----------
    head, rows
        Plain texts and numbers.
    numbers
        The right-aligned columns.
    bars
        The length of the bar beside each row, between 0 and 1.
    """

    def cells(tag: str, row: Sequence[object]) -> str:
        right = f'<{tag} class="number">'
        return "".join(
            f"{right if i in numbers else f'<{tag}>'}{escape(cell)}</{tag}>"
            for i, cell in enumerate(row)
        )

    lines = [f"<tr>{cells('th', head)}{'<th></th>' if bars is not None else ''}</tr>"]
    for i, row in enumerate(islice(rows, shown)):
        drawn = ""
        if bars is not None:
            drawn = f'<td class="bar"><i style="width:{100 * bars[i]:.1f}%"></i></td>'
        lines.append(f"<tr>{cells('td', row)}{drawn}</tr>")
    text = f'<div class="scroll"><table>{"".join(lines)}</table></div>'
    if len(rows) > shown:
        text += f'<p class="faint">... and {len(rows) - shown:,} more</p>'
    return text


def paragraphs(lines: Sequence[str]) -> str:
    """Return lines as HTML paragraphs."""
    return "".join(f"<p>{escape(line)}</p>" for line in lines)
