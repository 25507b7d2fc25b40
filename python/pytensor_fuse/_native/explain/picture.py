"""Picture of the loops of machine code: a self-contained SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._reports.page import escape
from pytensor_fuse._reports.palette import COLORS
from pytensor_fuse._reports.text import short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.explain.records import NativeLoop, NativeRegion

_MARGIN, _WIDTH, _INDENT = 16, 760, 18
# The height of a loop's own text, and the gap between two boxes.
_HEAD, _GAP = 40, 8

_GROUND, _TEXT, _FAINT = (COLORS[name].light for name in ("ground", "text", "faint"))
# The colors of vector loops, scalar loops and loops around others.
_VECTOR, _SCALAR, _OUTER = (COLORS[name].light for name in ("input", "unfusable", "panel"))
_LINE = COLORS["line"].light


def picture(regions: Sequence[NativeRegion]) -> str:
    """Return the picture: each loop is a box inside the box of its outer loop.

    Parameters
    ----------
    regions
        The functions of machine code, drawn one under the other.
    """
    parts: list[str] = []
    y = _MARGIN
    for number, region in enumerate(regions):
        title = f"region {number}: {len(region.nodes)} nodes"
        parts.append(_label(_MARGIN, y + 14, title, _TEXT, bold=True))
        y += 26
        heights = _heights(region.loops)
        ends: list[int] = []
        for loop, height in zip(region.loops, heights, strict=True):
            while len(ends) > loop.depth:
                y = ends.pop() + _GAP
            parts.append(_box(loop, y, height))
            ends.append(y + height)
            y += _HEAD + _GAP
        while ends:
            y = ends.pop() + _GAP
        y += _GAP
    height = y + _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="system-ui, sans-serif" role="img">\n'
        f'<rect width="100%" height="100%" fill="{_GROUND}"/>\n'
        + "".join(f"{part}\n" for part in parts)
        + "</svg>\n"
    )


def _heights(loops: Sequence[NativeLoop]) -> list[int]:
    """Return the height of each loop's box, which includes its inner loops."""
    heights = [_HEAD] * len(loops)
    for at in range(len(loops) - 1, -1, -1):
        inner = at + 1
        while inner < len(loops) and loops[inner].depth > loops[at].depth:
            if loops[inner].depth == loops[at].depth + 1:
                heights[at] += heights[inner] + _GAP
            inner += 1
    return heights


def _box(loop: NativeLoop, y: int, height: int) -> str:
    x = _MARGIN + _INDENT * loop.depth
    width = _WIDTH - 2 * x
    is_outer = height > _HEAD
    fill = _OUTER if is_outer else _VECTOR if loop.lanes > 1 else _SCALAR
    extent = "?" if loop.extent is None else f"{loop.extent:,}"
    how = f"vectors of {loop.lanes}" if loop.lanes > 1 else loop.why_scalar or "element by element"
    reads, writes = ", ".join(loop.reads) or "nothing", ", ".join(loop.writes) or "nothing"
    caption = f"{loop.n_operations} operations; reads {reads}; writes {writes}"
    return (
        f"<g><title>{escape(caption)}</title>"
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" '
        f'stroke="{_LINE}"/>'
        + _label(x + 10, y + 16, f"for {extent}: {how}", _TEXT, bold=True)
        + _label(x + 10, y + 32, short(caption, 108 - 5 * loop.depth), _FAINT)
        + "</g>"
    )


def _label(x: int, y: int, text: str, color: str, *, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x}" y="{y}" font-size="12"{weight} fill="{color}">{escape(text)}</text>'
