"""The page that shows a plan: the picture as data for assets/plan, and what stands round it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor_fuse._pictures.drawing import GAPS, Drawing, Places
from pytensor_fuse._pictures.picture import Role
from pytensor_fuse._pictures.texts import cut
from pytensor_fuse._reports import page
from pytensor_fuse._reports.scripts import script

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytensor_fuse._pictures.picture import Picture

# The order in which graph.js numbers them.
_ROLES = (Role.FUSED, Role.ALONE, Role.UNFUSABLE, Role.INPUT, Role.CONSTANT)

# Up to this many nodes kernels are open at first.
_STARTS_OPEN = 60

_LEGEND = (
    (
        "hsl(var(--kernel-hue) var(--kernel-fill))",
        "hsl(var(--kernel-hue) var(--kernel-border))",
        "kernel",
    ),
    ("var(--unfusable)", "var(--unfusable-border)", "cannot be fused"),
    ("var(--alone)", "var(--alone-border)", "may be fused, stays alone"),
    ("var(--input)", "var(--input-border)", "input or constant"),
)

_HELP = """
<h2>Fusion plan</h2>
<p>Coloured boxes are kernels: nodes that become one. Hover for what a node is and where it was
made; click a node, a kernel or an edge.</p>
<p>An edge says why its two ends do not share a kernel.</p>
<h3>Mouse</h3>
<p>Drag to move, turn the wheel to zoom, double-click a kernel to open or close it.</p>
<h3>Keys</h3>
<p><kbd>/</kbd> search, <kbd>Enter</kbd> next<br>
<kbd>e</kbd> expand all, <kbd>c</kbd> collapse all, <kbd>f</kbd> fit<br>
<kbd>+</kbd> <kbd>-</kbd> zoom, arrows move<br>
<kbd>[</kbd> <kbd>]</kbd> to what a node reads, to what reads it<br>
<kbd>Enter</kbd> open or close the chosen kernel</p>
"""

_STUBS = """
<h3>Short ends</h3>
<p>Edges of boxes that have very many are drawn at their ends only. Click an end, or the box, to see
them whole.</p>
"""


def plan_page(drawing: Drawing, title: str) -> str:
    """Return the page; ``title`` is plain text."""
    body = (
        f"<header><h1>{page.escape(title)}</h1>{_figures(drawing.picture)}"
        '<div class="tools" role="toolbar" aria-label="Picture">'
        '<input id="search" type="search" placeholder="op, name or dtype" '
        'aria-label="Search nodes by op, name or dtype">'
        '<span id="found" role="status"></span>'
        '<button id="expand">Expand all</button><button id="collapse">Collapse all</button>'
        '<button id="fit">Fit</button>'
        '<button id="in" aria-label="Zoom in">+</button>'
        '<button id="out" aria-label="Zoom out">\u2212</button></div></header>'
        '<main id="stage"><canvas id="picture" tabindex="0" role="img" aria-label="Graph of the '
        'plan; the panel describes what is chosen"></canvas>'
        f'<div id="legend">{_legend()}</div><div id="tip" hidden></div></main>'
        f'<aside id="panel" aria-live="polite">{_HELP}{_STUBS if drawing.hidden else ""}</aside>'
    )
    return page.page(
        title,
        body,
        style=page.asset(__package__, "plan.css"),
        script=script(__package__, "plan/main.js"),
        data=_data(drawing),
    )


def figures_table(picture: Picture) -> str:
    """Return the figures before and after as a plain HTML table."""
    rows = "".join(
        f"<tr><td>{page.escape(name)}</td><td>{before:,}</td><td>{after:,}</td></tr>"
        for name, before, after in picture.figures
    )
    return f"<table><thead><tr><th></th><th>before</th><th>after</th></tr></thead>{rows}</table>"


def _figures(picture: Picture) -> str:
    return (
        '<dl class="figures">'
        + "".join(
            f'<div><dt>{page.escape(name)}</dt><dd><span class="before">{before:,} \u2192</span> '
            f"{after:,}</dd></div>"
            for name, before, after in picture.figures
        )
        + "</dl>"
    )


def _legend() -> str:
    return "".join(
        f'<span><i style="background:{fill};border-color:{stroke}"></i>{text}</span>'
        for fill, stroke, text in _LEGEND
    )


class _Strings:
    """Texts by position, each once."""

    def __init__(self) -> None:
        self._positions: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self._positions.setdefault(cut(text), len(self._positions))

    def all(self, texts: Iterable[str]) -> list[int]:
        return [self(text) for text in texts]

    def list(self) -> list[str]:
        return list(self._positions)


def _data(drawing: Drawing) -> dict[str, Any]:
    picture = drawing.picture
    strings = _Strings()
    nodes = picture.nodes
    source_lines = [node.source_line for node in nodes]
    why = [
        -1
        if edge.why is None
        # The path of a cycle is given as nodes.
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
    """Round to halves: centres of boxes of odd sizes."""
    return [int(n) if (n := round(2 * length) / 2).is_integer() else n for length in lengths]
