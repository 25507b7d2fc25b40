"""Static pictures of plans: self-contained SVG whose colors do not depend on the background."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from pytensor_fuse._pictures.colors import role_colors
from pytensor_fuse._pictures.drawing import Drawing, Places
from pytensor_fuse._pictures.picture import Box, Node, Role
from pytensor_fuse._reports.page import escape
from pytensor_fuse._reports.palette import COLORS, kernel_colors

if TYPE_CHECKING:
    from collections.abc import Iterator

# Kernels are drawn open in pictures of at most this many nodes.
_OPEN = 250

_MARGIN = 16.0
_BACKGROUND, _TEXT, _FAINT, _EDGE = (
    COLORS[name].light for name in ("ground", "text", "faint", "edge")
)

# The length of the two ends that are drawn of an edge that would hide the rest.
_STUB = 12.0

# Characters that XML cannot represent, not even escaped.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_Rectangle = tuple[float, float, float, float]
_Point = tuple[float, float]


def svg(drawing: Drawing) -> str:
    """Return the picture; kernels are open in small graphs, else closed."""
    picture = drawing.picture
    is_open = len(picture.nodes) <= _OPEN
    places = drawing.expanded if is_open else drawing.collapsed
    boxes = [_box_rectangle(places, i) for i in range(len(picture.boxes))]
    nodes = [_node_rectangle(drawing, boxes, i, is_open) for i in range(len(picture.nodes))]
    width = 2 * _MARGIN + max((x + w for x, _, w, _ in boxes), default=0.0)
    bottoms = [y + h for _, y, _, h in boxes] + places.y[len(boxes) :]
    height = 2 * _MARGIN + max(bottoms, default=0.0)
    grounds, kernels = [], []
    for box, rectangle in zip(picture.boxes, boxes, strict=True):
        if len(box.nodes) > 1 and is_open:
            pale, _, line = _box_colors(drawing, box)
            grounds.append(_frame(rectangle, pale, line, 8.0))
            grounds.append(_text(rectangle, (10.0, 15.0), box.label, line, 11.5, bold=True))
        elif len(box.nodes) > 1:
            _, fill, line = _box_colors(drawing, box)
            shapes = (
                _frame(rectangle, fill, line, 7.0)
                + _text(rectangle, (9.0, 16.0), box.label, _TEXT, 12.0, bold=True)
                + _text(rectangle, (9.0, 31.0), box.caption, _FAINT, 11.0)
            )
            kernels.append(_titled(shapes, f"{box.label}\n{box.caption}"))
    shown = [
        _node(node, rectangle, picture.boxes[node.box].kernel)
        for node, rectangle in zip(picture.nodes, nodes, strict=True)
        if is_open or len(picture.boxes[node.box].nodes) == 1
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="system-ui, sans-serif" role="img">\n'
        f'<rect width="100%" height="100%" fill="{_BACKGROUND}"/>\n'
        + "".join(f"{part}\n" for part in (*grounds, *_lines(drawing, places, nodes), *kernels))
        + "".join(f"{part}\n" for part in shown)
        + "</svg>\n"
    )


def _box_rectangle(places: Places, box: int) -> _Rectangle:
    w, h = places.widths[box], places.heights[box]
    return _MARGIN + places.x[box] - w / 2, _MARGIN + places.y[box] - h / 2, w, h


def _node_rectangle(
    drawing: Drawing, boxes: list[_Rectangle], node: int, is_open: bool
) -> _Rectangle:
    box = drawing.picture.nodes[node].box
    if not is_open or len(drawing.picture.boxes[box].nodes) == 1:
        return boxes[box]
    x, y, w, h = drawing.inner[node]
    return boxes[box][0] + x, boxes[box][1] + y, w, h


def _lines(drawing: Drawing, places: Places, nodes: list[_Rectangle]) -> Iterator[str]:
    """Draw the edges, one line between each pair of rectangles."""
    picture = drawing.picture
    bends = dict(zip(drawing.edges, places.bends, strict=True))
    ends = _column_ends(places)
    drawn: set[tuple[_Rectangle, _Rectangle]] = set()
    for edge in picture.edges:
        source, target = nodes[edge.source], nodes[edge.target]
        if source == target or (source, target) in drawn:
            continue
        drawn.add((source, target))
        start = (source[0] + source[2], source[1] + source[3] / 2)
        end = (target[0], target[1] + target[3] / 2)
        pair = (picture.nodes[edge.source].box, picture.nodes[edge.target].box)
        if pair[0] == pair[1]:
            yield _line([start, end])
        elif pair in bends:
            points = [start, (ends[pair[0]][1], start[1])]
            for bend in range(*bends[pair]):
                y = _MARGIN + places.y[bend]
                points += [(ends[bend][0], y), (ends[bend][1], y)]
            yield _line([*points, (ends[pair[1]][0], end[1]), end])
        else:
            yield _line([start, (start[0] + _STUB, start[1])])
            yield _line([(end[0] - _STUB, end[1]), end])


def _column_ends(places: Places) -> list[tuple[float, float]]:
    """Return the left and right end of the column of each box and bend."""
    widest: dict[tuple[int, int], float] = {}
    columns = list(zip(places.pieces, places.columns, strict=True))
    for column, width in zip(columns, places.widths, strict=False):
        widest[column] = max(widest.get(column, 0.0), width)
    return [
        (_MARGIN + x - widest.get(column, 0.0) / 2, _MARGIN + x + widest.get(column, 0.0) / 2)
        for column, x in zip(columns, places.x, strict=True)
    ]


def _line(points: list[_Point]) -> str:
    parts = ["M{:.1f} {:.1f}".format(*points[0])]
    for (px, py), (x, y) in itertools.pairwise(points):
        if py == y:
            parts.append(f"H{x:.1f}")
        else:
            reach = max((x - px) / 2, 20.0)
            parts.append(f"C{px + reach:.1f} {py:.1f} {x - reach:.1f} {y:.1f} {x:.1f} {y:.1f}")
    return f'<path d="{"".join(parts)}" fill="none" stroke="{_EDGE}" stroke-opacity="0.75"/>'


def _node(node: Node, rectangle: _Rectangle, kernel: int | None) -> str:
    fill, line = role_colors(node.role) if kernel is None else kernel_colors(kernel)[1:]
    radius = rectangle[3] / 2 if node.role is Role.INPUT else 5.0
    shapes = _frame(rectangle, fill, line, radius) + _text(
        rectangle, (9.0, 16.0), node.label, _TEXT, 12.0
    )
    if node.caption:
        shapes += _text(rectangle, (9.0, 31.0), node.caption, _FAINT, 11.0)
    if node.results:
        x, y, w, h = rectangle
        shapes += f'<rect x="{x + w - 3:.1f}" y="{y + 3:.1f}" width="4" height="{h - 6:.1f}"/>'
    return _titled(shapes, node.tip)


def _titled(shapes: str, title: str) -> str:
    """Return shapes with a tooltip."""
    return f"<g><title>{_escape(title)}</title>{shapes}</g>"


def _frame(rectangle: _Rectangle, fill: str, line: str, radius: float) -> str:
    x, y, w, h = rectangle
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{radius:.1f}" '
        f'fill="{fill}" stroke="{line}" stroke-width="1.2"/>'
    )


def _text(
    rectangle: _Rectangle, offset: _Point, text: str, color: str, size: float, bold: bool = False
) -> str:
    weight = ' font-weight="600"' if bold else ""
    x, y = rectangle[0] + offset[0], rectangle[1] + offset[1]
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{color}"{weight}>'
        f"{_escape(text)}</text>"
    )


def _box_colors(drawing: Drawing, box: Box) -> tuple[str, str, str]:
    """Return the ground, fill and border of a box of several nodes."""
    if box.kernel is not None:
        return kernel_colors(box.kernel)
    return _BACKGROUND, *role_colors(drawing.picture.nodes[box.nodes[0]].role)


def _escape(text: str) -> str:
    return escape(_NO_XML.sub("\ufffd", text))
