"""Findings about work on matrices as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._audit.sections.matrices.record import number
from pytensor_fuse._audit.sections.matrices.text import ALL_WORK, findings, summary
from pytensor_fuse._reports.tables import paragraphs, table

if TYPE_CHECKING:
    from pytensor_fuse._audit.sections.matrices.record import MatricesRecord


def html(found: MatricesRecord) -> str:
    """Return the body of the section."""
    parts = [paragraphs([summary(found)])]
    for title, those in findings(found):
        if those:
            parts += [f"<h3>{title.capitalize()}</h3>", paragraphs([str(one) for one in those])]
    if found.work:
        rows = [(one.place, one.size, number(one.batch), number(one.runs)) for one in found.work]
        parts.append(f"<h3>{ALL_WORK.capitalize()}</h3>")
        parts.append(table(("node", "size", "batch", "runs"), rows, numbers=(1, 2, 3)))
    return "".join(parts)
