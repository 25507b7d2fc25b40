"""The section about memory: its findings, as text and as HTML."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytensor_fuse._audit.sections.memory.record import Copy, Missed, NotInPlace, Peak, Result, Use
from pytensor_fuse._reports.entries import plain_fields
from pytensor_fuse._reports.page import escape
from pytensor_fuse._reports.tables import paragraphs, table
from pytensor_fuse._reports.text import bounded, count, place, size, some

if TYPE_CHECKING:
    from collections.abc import Sequence


# The maximum number of points of the curve of live memory.
_POINTS = 400


@dataclass(frozen=True)
class MemorySection:
    """The findings about memory.

    Attributes
    ----------
    results
        The tensors that nodes compute, in the order of the run, then those of inner graphs.
        Missed opportunities to work in place are only searched in the outermost graph.
    copies
        The nodes whose purpose is to copy, the largest first.
    joins_eliminated
        The number of joins that `join_buffer_elimination` let kernels write into.
    peak
        The peak of live memory.
    """

    results: tuple[Result, ...]
    copies: tuple[Copy, ...]
    joins_eliminated: int
    peak: Peak

    @property
    def missed(self) -> tuple[tuple[Result, Missed], ...]:
        """Results that fit an input which nothing reads later, the largest first."""
        pairs = [(r, m) for r in self.results for m in r.missed if m.dies]
        return tuple(sorted(pairs, key=lambda pair: -(pair[0].nbytes or 0)))

    def to_dict(self) -> dict[str, Any]:
        """Return the findings in plain types, as in JSON."""
        results = [
            plain_fields(r)
            | {
                "use": r.use.value,
                "missed": [plain_fields(m) | {"reason": m.reason.name} for m in r.missed],
            }
            for r in self.results
        ]
        return {
            "results": results,
            "copies": [plain_fields(c) | {"kind": c.kind.name} for c in self.copies],
            "joins_eliminated": self.joins_eliminated,
            "peak": plain_fields(self.peak) | {"is_exact": self.peak.is_exact},
        }

    def lines(self) -> list[str]:
        """Return the lines of the text; their number is bounded."""
        holders = self.peak.holders
        text = [
            str(self.peak),
            *bounded(holders, lambda held: f"  {size(held[1])} of {held[0]}", "results", 4),
            *bounded(self.copies, str, "copies"),
        ]
        if self.joins_eliminated:
            text.append(f"{count(self.joins_eliminated, 'join')} eliminated: kernels write into it")
        for reason, pairs in self._missed_by_reason():
            known = [r.nbytes for r, _ in pairs if r.nbytes is not None]
            total = f" of {size(sum(known))}" if known else ""
            named = some([f"{r} over {m.variable}" for r, m in pairs], 2)
            missed = f"{count(len(pairs), 'result')}{total}: {reason.value} ({named})"
            text.append(f"not in place, {missed}")
        return [*text, self._summary()]

    def html(self) -> str:
        """Return the body of the section."""
        return "".join(
            [
                paragraphs([str(self.peak), self._summary()]),
                _curve(self.peak),
                _table_of_sizes(
                    "Live at the peak",
                    ("result of", "size"),
                    [(name, size(n)) for name, n in self.peak.holders],
                    [n for _, n in self.peak.holders],
                ),
                _table_of_sizes(
                    "Copies",
                    ("node", "what", "size", "why"),
                    [
                        (place(c.path, c.node), c.kind.value, size(c.nbytes), c.why)
                        for c in self.copies
                    ],
                    [c.nbytes for c in self.copies],
                ),
                _table_of_sizes(
                    "Not in place, although nothing reads the input later",
                    ("result", "size", "input", "why not"),
                    [(r, size(r.nbytes), m.variable, m.reason.value) for r, m in self.missed],
                    [r.nbytes for r, _ in self.missed],
                ),
            ]
        )

    def _summary(self) -> str:
        """Return the counts of results by the source of their memory."""
        uses = Counter(result.use for result in self.results)
        allocated = [r.nbytes for r in self.results if r.use is Use.ALLOCATED and not r.path]
        known = sum(n or 0 for n in allocated)
        return (
            f"{count(len(self.results), 'result')}: {uses[Use.IN_PLACE]:,} in place, "
            f"{uses[Use.VIEW]:,} views, {uses[Use.ALLOCATED]:,} allocated"
            + (f", {size(known)} in a call" if known else "")
        )

    def _missed_by_reason(self) -> list[tuple[NotInPlace, list[tuple[Result, Missed]]]]:
        """Group the missed results by their reasons, the largest groups first."""
        groups: defaultdict[NotInPlace, list[tuple[Result, Missed]]] = defaultdict(list)
        for result, missed in self.missed:
            groups[missed.reason].append((result, missed))
        return sorted(groups.items(), key=lambda group: -sum(r.nbytes or 0 for r, _ in group[1]))


def _table_of_sizes(
    title: str, head: Sequence[str], rows: Sequence[Sequence[object]], sizes: Sequence[int | None]
) -> str:
    """Return a table with its title, and a bar for the size of each row; empty without rows."""
    if not rows:
        return ""
    known = [n or 0 for n in sizes]
    most = max(known) or 1
    bars = [n / most for n in known]
    return f"<h3>{title}</h3>" + table(head, rows, numbers=(head.index("size"),), bars=bars)


def _curve(peak: Peak) -> str:
    """Draw the live memory over the run."""
    live = peak.live
    if not peak.nbytes or len(live) < 2:
        return ""
    step = max(1, math.ceil(len(live) / _POINTS))
    tops = [max(live[i : i + step]) for i in range(0, len(live), step)]
    width, height = 800, 120
    across = width / len(tops)
    corners = [f"0,{height}"]
    for i, top in enumerate(tops):
        y = height - height * top / peak.nbytes
        corners += [f"{i * across:.1f},{y:.1f}", f"{(i + 1) * across:.1f},{y:.1f}"]
    corners.append(f"{width},{height}")
    label = f"live memory over the run, up to {size(peak.nbytes)}"
    return (
        f'<svg class="curve" viewBox="0 0 {width} {height}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}"><polygon points="{" ".join(corners)}"/></svg>'
        f'<p class="faint">{escape(label)}: {count(len(live), "node")} from left to right</p>'
    )
