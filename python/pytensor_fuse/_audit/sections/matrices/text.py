"""Findings about work on matrices in prose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._audit.sections.matrices.record import some_of
from pytensor_fuse._reports.text import bounded, count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._audit.sections.matrices.record import MatricesRecord

ALL_WORK = "all work on matrices"


def lines(found: MatricesRecord) -> list[str]:
    """Return the lines of the text, whose number is bounded for each kind."""
    text = [summary(found)]
    for title, those in (*findings(found), (ALL_WORK, found.work)):
        if those:
            text.append(f"{title}:")
            text += [f"  {line}" for line in bounded(those, str, "of these")]
    return text


def summary(found: MatricesRecord) -> str:
    """Count the work, by the op that does it."""
    counts = found.counts
    by_op = ", ".join(f"{n:,} {op}" for op, n in counts.items())
    text = count(sum(counts.values()), "cubic operation") + (f": {by_op}" if by_op else "")
    n_solves = sum(work.order < 3 for work in found.work)
    return f"{text}; {count(n_solves, 'solve')} of a single right-hand side" if n_solves else text


def findings(found: MatricesRecord) -> list[tuple[str, Sequence[object]]]:
    """Return the findings about the work, with a title for each kind; some may be empty."""
    return [
        ("could share", found.factorizations),
        ("computed more than once", [some_of(group) for group in found.repeated]),
        ("could be a solve", found.inverse_products),
        ("the same at each step of a loop", [work for work in found.work if work.invariant]),
        ("may be work on matrices or not", found.unknown),
        ("the same matrix", found.matrices),
    ]
