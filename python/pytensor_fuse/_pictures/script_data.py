"""Data for the script of a picture's page, in assets/plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor_fuse._pictures.drawing import GAPS, Drawing, Places
from pytensor_fuse._pictures.picture import Role
from pytensor_fuse._pictures.texts import cut

if TYPE_CHECKING:
    from collections.abc import Iterable

# The order of the numbers in graph.js.
_ROLES = (Role.FUSED, Role.ALONE, Role.UNFUSABLE, Role.INPUT, Role.CONSTANT)

# Kernels are initially open in pictures of at most this many nodes.
_STARTS_OPEN = 60


class _Strings:
    """Interned texts, identified by their positions."""

    def __init__(self) -> None:
        self._positions: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self._positions.setdefault(cut(text), len(self._positions))

    def all(self, texts: Iterable[str]) -> list[int]:
        return [self(text) for text in texts]

    def list(self) -> list[str]:
        return list(self._positions)


def script_data(drawing: Drawing) -> dict[str, Any]:
    """Return the data that the script reads as ``DATA``."""
    picture = drawing.picture
    strings = _Strings()
    nodes = picture.nodes
    source_lines = [node.source_line for node in nodes]
    why = [
        -1
        if edge.why is None
        # Paths of cycles are passed as nodes.
        else strings(edge.why.reason.value if edge.why.path else str(edge.why))
        for edge in picture.edges
    ]
    return {
        "nodes": {
            "role": [_ROLES.index(node.role) for node in nodes],
            "op": strings.all(node.op for node in nodes),
            "label": strings.all(node.label for node in nodes),
            "caption": strings.all(node.caption for node in nodes),
            "names": [strings.all(node.names) for node in nodes],
            "types": [strings.all(node.types) for node in nodes],
            "constants": [strings.all(node.constants) for node in nodes],
            "results": [node.results for node in nodes],
            "file": [-1 if line is None else strings(line.file) for line in source_lines],
            "line": [0 if line is None else line.line for line in source_lines],
            "code": [strings("" if line is None else line.code) for line in source_lines],
            "box": [node.box for node in nodes],
            "inner": [round(length) for rectangle in drawing.inner for length in rectangle],
        },
        "boxes": {
            "kernel": [-1 if box.kernel is None else box.kernel for box in picture.boxes],
            "label": strings.all(box.label for box in picture.boxes),
            "caption": strings.all(box.caption for box in picture.boxes),
            "results": [
                int(any(nodes[node].results for node in box.nodes)) for box in picture.boxes
            ],
        },
        "edges": {
            "source": [edge.source for edge in picture.edges],
            "target": [edge.target for edge in picture.edges],
            "why": why,
            "path": {edge: path for edge, (path, _) in picture.paths.items()},
            "leftOut": {edge: n for edge, (_, n) in picture.paths.items() if n},
        },
        "lines": drawing.edges,
        "hidden": drawing.hidden,
        "collapsed": _places(drawing.collapsed),
        "expanded": _places(drawing.expanded),
        "gaps": GAPS,
        "roles": [role.value for role in _ROLES],
        "startsOpen": len(nodes) <= _STARTS_OPEN,
        "strings": strings.list(),
    }


def _places(places: Places) -> dict[str, Any]:
    return {
        "x": _rounded(places.x),
        "y": _rounded(places.y),
        "w": _rounded(places.widths),
        "h": _rounded(places.heights),
        "piece": places.pieces,
        "column": places.columns,
        "bends": places.bends,
        "rowWidth": places.row_width,
    }


def _rounded(lengths: list[float]) -> list[float]:
    """Round to halves, which are the centers of boxes of odd sizes."""
    return [int(n) if (n := round(2 * length) / 2).is_integer() else n for length in lengths]
