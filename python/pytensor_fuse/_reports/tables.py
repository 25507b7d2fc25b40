"""How the sections of an audit put figures, lists and tables."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from pytensor_fuse._reports.page import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    T = TypeVar("T")

# What a text and a page show of a list; the rest is counted.
SHOWN_LINES = 8
SHOWN_ROWS = 200


def size(n: int | None) -> str:
    """Return a number of bytes in words."""
    if n is None:
        return "? bytes"
    if n < 1000:
        return f"{n} bytes"
    value = float(n)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1000
        if value < 999.5 or unit == "TB":
            return f"{value:.3g} {unit}"
    raise AssertionError


def count(n: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def place(path: Sequence[str], name: str) -> str:
    """Return where a node is: its name, after those of the nodes in whose inner graphs it is."""
    return " > ".join((*path, name))


def bounded(
    items: Sequence[T], line: Callable[[T], str], what: str, shown: int = SHOWN_LINES
) -> list[str]:
    """Return a line for each of the first items, and one that counts the rest."""
    lines = [line(item) for item in islice(items, shown)]
    if len(items) > shown:
        lines.append(f"... and {len(items) - shown:,} more {what}")
    return lines


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    numbers: Sequence[int] = (),
    bars: Sequence[float] | None = None,
    shown: int = SHOWN_ROWS,
) -> str:
    """Return a table as HTML, of as many rows as are shown, and a count of the rest.

    Parameters
    ----------
    head, rows
        Plain texts and numbers.
    numbers
        The columns that are set to the right.
    bars
        For each row a share between 0 and 1 of the row's width, drawn beside it.
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
    """Return lines as HTML."""
    return "".join(f"<p>{escape(line)}</p>" for line in lines)
