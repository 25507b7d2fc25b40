"""Formatting of reports: numbers, sizes, positions of nodes, and lists of bounded length."""

from __future__ import annotations

import re
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    T = TypeVar("T")

# Items that a text shows of a list; the rest is counted.
SHOWN_LINES = 8

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

# The separator between the names of nodes, each in an inner graph of the previous one.
_INSIDE = " > "


def size(n: int | None) -> str:
    """Format a number of bytes."""
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
    """Return the path of a node: the names of the enclosing nodes, and its own."""
    return _INSIDE.join((*path, name))


def bounded(
    items: Sequence[T], line: Callable[[T], str], what: str, shown: int = SHOWN_LINES
) -> list[str]:
    """Return a line for each of the first items, and one that counts the rest."""
    lines = [line(item) for item in islice(items, shown)]
    if len(items) > shown:
        lines.append(f"... and {len(items) - shown:,} more {what}")
    return lines


def some(names: Sequence[str], shown: int) -> str:
    """Return the first of some names in a row, and the number of the others."""
    more = f", ... and {len(names) - shown:,} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def short(value: object, limit: int = 60) -> str:
    """Return the text of ``value`` on one line, cut to ``limit`` characters."""
    text = " ".join(str(value).split())
    return text if len(text) <= limit else f"{text[: limit - 4]} ..."


def without_address(text: str) -> str:
    """Return a text without addresses of objects, which differ between processes."""
    return _ADDRESS.sub("", text)


def cached_text(made: float) -> str:
    """Return the note that a graph came from the cache, with its time in the local zone."""
    when = datetime.fromtimestamp(made).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    return f"taken from the cache, rewritten at {when}"
