"""Findings about memory as HTML."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytensor_fuse._audit.sections.memory.text import summary
from pytensor_fuse._reports.page import escape
from pytensor_fuse._reports.tables import paragraphs, table
from pytensor_fuse._reports.text import count, place, size

if TYPE_CHECKING:
    from pytensor_fuse._audit.sections.memory.record import MemoryRecord, Peak

# The maximum number of points of the curve of live memory.
_POINTS = 400


def html(found: MemoryRecord) -> str:
    """Return the body of the section."""
    peak = found.peak
    parts = [paragraphs([str(peak), summary(found)]), _curve(peak)]
    if peak.holders:
        most = peak.holders[0][1] or 1
        parts.append("<h3>Live at the peak</h3>")
        parts.append(
            table(
                ("result of", "size"),
                [(name, size(n)) for name, n in peak.holders],
                numbers=(1,),
                bars=[n / most for _, n in peak.holders],
            )
        )
    if found.copies:
        most = max((c.nbytes or 0 for c in found.copies), default=0) or 1
        parts.append("<h3>Copies</h3>")
        parts.append(
            table(
                ("node", "what", "size", "why"),
                [
                    (place(c.path, c.node), c.kind.value, size(c.nbytes), c.why)
                    for c in found.copies
                ],
                numbers=(2,),
                bars=[(c.nbytes or 0) / most for c in found.copies],
            )
        )
    if found.missed:
        most = max((r.nbytes or 0 for r, _ in found.missed), default=0) or 1
        parts.append("<h3>Not in place, although nothing reads the input later</h3>")
        parts.append(
            table(
                ("result", "size", "input", "why not"),
                [(r, size(r.nbytes), m.variable, m.reason.value) for r, m in found.missed],
                numbers=(1,),
                bars=[(r.nbytes or 0) / most for r, _ in found.missed],
            )
        )
    return "".join(parts)


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
