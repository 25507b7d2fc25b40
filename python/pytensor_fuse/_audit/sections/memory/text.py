"""Findings about memory in prose."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from pytensor_fuse._audit.sections.memory.record import Use
from pytensor_fuse._reports.text import bounded, count, size, some

if TYPE_CHECKING:
    from pytensor_fuse._audit.sections.memory.record import (
        MemoryRecord,
        Missed,
        NotInPlace,
        Result,
    )


def lines(found: MemoryRecord) -> list[str]:
    """Return the lines of the text."""
    text = [str(found.peak)]
    text += bounded(
        found.peak.holders, lambda held: f"  {size(held[1])} of {held[0]}", "results", 4
    )
    text += bounded(found.copies, str, "copies")
    if found.joins_eliminated:
        text.append(f"{count(found.joins_eliminated, 'join')} eliminated: kernels write into it")
    for reason, pairs in _by_reason(found):
        known = [r.nbytes for r, _ in pairs if r.nbytes is not None]
        total = f" of {size(sum(known))}" if known else ""
        named = some([f"{r} over {m.variable}" for r, m in pairs], 2)
        text.append(f"not in place, {count(len(pairs), 'result')}{total}: {reason.value} ({named})")
    text.append(summary(found))
    return text


def summary(found: MemoryRecord) -> str:
    """Return the counts of results by the source of their memory."""
    uses = Counter(result.use for result in found.results)
    allocated = [r.nbytes for r in found.results if r.use is Use.ALLOCATED and not r.path]
    known = sum(n or 0 for n in allocated)
    return (
        f"{count(len(found.results), 'result')}: {uses[Use.IN_PLACE]:,} in place, "
        f"{uses[Use.VIEW]:,} views, {uses[Use.ALLOCATED]:,} allocated"
        + (f", {size(known)} in a call" if known else "")
    )


def _by_reason(found: MemoryRecord) -> list[tuple[NotInPlace, list[tuple[Result, Missed]]]]:
    """Group the missed results by their reasons, the largest groups first."""
    groups: defaultdict[NotInPlace, list[tuple[Result, Missed]]] = defaultdict(list)
    for result, missed in found.missed:
        groups[missed.reason].append((result, missed))
    return sorted(groups.items(), key=lambda group: -sum(r.nbytes or 0 for r, _ in group[1]))
