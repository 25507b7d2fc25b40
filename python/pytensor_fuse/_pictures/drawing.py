"""Geometry of a picture: sizes, and positions from the core's layered layout.

Lengths are in CSS pixels at natural size; y grows downwards.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pytensor_fuse import _core
from pytensor_fuse._pictures.picture import Box, Node, Picture, Role

if TYPE_CHECKING:
    from collections.abc import Sequence


_T = TypeVar("_T")

# The margin around the nodes of an expanded kernel, and the height of its label above them.
PADDING = 10.0
HEADER = 22.0

# The width of the button that expands and collapses a kernel.
TOGGLE = 16.0

# Edges of an input with more readers than this are drawn only when they are chosen, since they
# would hide the rest.
_INPUT_HUB = 16

# In pictures of more boxes than the first number, the same holds for the edges of all boxes with
# more inputs or readers than the second. In kernels of that many nodes, such edges do not affect
# the layout of the nodes.
_LARGE = 200
_HUB = 20

# Gaps between columns, between the boxes of a column, and between rows.
GAPS = (44.0, 14.0, 40.0)
_INNER_GAPS = (28.0, 8.0, 16.0)

# A label is set in 12 px, a caption in 11 px. Most characters of common sans serif fonts are
# narrower than these; capitals and a few others are wider.
_LABEL_CHARACTER = 6.9
_CAPTION_CHARACTER = 6.1
_WIDE = frozenset("mwMWNOQGDHU@%=_\u00d7\u2026+<>~")
_WIDE_BY = 3.0
_LINE = 15.0


@dataclass(frozen=True)
class Places:
    """Positions of the boxes.

    Attributes
    ----------
    x, y
        Centers of the boxes, then of the bends of edges.
    widths, heights
        Sizes of the boxes.
    pieces, columns
        The connected piece of the graph of each box and bend, and the column within the piece.
        Pieces are laid out one after the other in rows.
    bends
        The index of the first bend of each edge between boxes, and one past its last.
    row_width
        The width at which a row of pieces is broken.
    """

    x: list[float]
    y: list[float]
    widths: list[float]
    heights: list[float]
    pieces: list[int]
    columns: list[int]
    bends: list[tuple[int, int]]
    row_width: float


@dataclass(frozen=True)
class Drawing:
    """A picture with positions.

    Attributes
    ----------
    picture
        The content of the drawing.
    inner
        The left, top, width and height of each node within its expanded box.
    edges
        The pairs of boxes between which an edge is drawn.
    hidden
        The pairs whose edge is drawn whole only when it is chosen, because of boxes with very many.
    collapsed, expanded
        Positions of the boxes if all kernels are collapsed, and if all are expanded.
    """

    picture: Picture
    inner: list[tuple[float, float, float, float]]
    edges: list[tuple[int, int]]
    hidden: list[tuple[int, int]]
    collapsed: Places
    expanded: Places


def draw(picture: Picture) -> Drawing:
    """Lay out a picture; near-linear, about 0.2 s for 10,000 nodes of a model."""
    pairs = list(picture.box_edges())
    n_readers = Counter(source for source, _ in pairs)
    edges = [
        (source, target)
        for source, target in pairs
        if n_readers[source] <= _INPUT_HUB
        or picture.nodes[picture.boxes[source].nodes[0]].role is not Role.INPUT
    ]
    if len(picture.boxes) > _LARGE:
        edges = _without_hubs(edges)
    drawn = set(edges)
    hidden = [pair for pair in pairs if pair not in drawn]

    inner: list[tuple[float, float, float, float]] = [(0.0, 0.0, 0.0, 0.0)] * len(picture.nodes)
    inside: dict[int, list[tuple[int, int]]] = {}
    for edge in picture.edges:
        home = picture.nodes[edge.source].box
        if home == picture.nodes[edge.target].box:
            inside.setdefault(home, []).append((edge.source, edge.target))
    collapsed: list[tuple[float, float]] = []
    expanded: list[tuple[float, float]] = []
    for i, box in enumerate(picture.boxes):
        if len(box.nodes) == 1:
            size = _text_size(box)
            inner[box.nodes[0]] = (0.0, 0.0, *size)
            collapsed.append(size)
            expanded.append(size)
        else:
            width, height = _text_size(box)
            collapsed.append((width + TOGGLE, height))
            expanded.append(_lay_out_inside(picture, box, inside.get(i, []), inner))
    return Drawing(
        picture, inner, edges, hidden, _places(collapsed, edges), _places(expanded, edges)
    )


def _lay_out_inside(
    picture: Picture,
    box: Box,
    edges: list[tuple[int, int]],
    inner: list[tuple[float, float, float, float]],
) -> tuple[float, float]:
    """Place the nodes of a kernel; return the size of the kernel."""
    if len(box.nodes) > _LARGE:
        edges = _without_hubs(edges)
    position = {node: i for i, node in enumerate(box.nodes)}
    sizes = [_text_size(picture.nodes[node]) for node in box.nodes]
    pairs = [(position[a], position[b]) for a, b in edges]
    x, y, *_ = _core.layered_layout(*_unzip(sizes), *_unzip(pairs), _INNER_GAPS)
    right = bottom = 0.0
    for node, size, center_x, center_y in zip(
        box.nodes, sizes, x.tolist(), y.tolist(), strict=False
    ):
        left, top = PADDING + center_x - size[0] / 2, HEADER + center_y - size[1] / 2
        inner[node] = (left, top, *size)
        right, bottom = max(right, left + size[0]), max(bottom, top + size[1])
    return max(right + PADDING, _text_size(box)[0] + TOGGLE), bottom + PADDING


def _without_hubs(edges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Remove the edges of boxes, or nodes, with very many."""
    n_readers = Counter(source for source, _ in edges)
    n_read = Counter(target for _, target in edges)
    return [(a, b) for a, b in edges if max(n_readers[a], n_read[b]) <= _HUB]


def _places(sizes: list[tuple[float, float]], edges: list[tuple[int, int]]) -> Places:
    widths, heights = _unzip(sizes)
    x, y, pieces, columns, bends, row_width = _core.layered_layout(
        widths, heights, *_unzip(edges), GAPS
    )
    starts = bends.tolist()
    return Places(
        x.tolist(),
        y.tolist(),
        widths,
        heights,
        pieces.tolist(),
        columns.tolist(),
        list(itertools.pairwise(starts)),
        row_width,
    )


def _text_size(item: Box | Node) -> tuple[float, float]:
    """Return the width and height of a label with an optional caption."""
    width = max(
        len(text) * character + sum(each in _WIDE for each in text) * _WIDE_BY
        for text, character in ((item.label, _LABEL_CHARACTER), (item.caption, _CAPTION_CHARACTER))
    )
    return float(round(max(width, 26.0) + 18)), _LINE * (2 if item.caption else 1) + 9


def _unzip(pairs: Sequence[tuple[_T, _T]]) -> tuple[list[_T], list[_T]]:
    return [a for a, _ in pairs], [b for _, b in pairs]
