"""The page of a plan: everything around the picture, which the page's script draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._pictures.script_data import script_data
from pytensor_fuse._reports import page
from pytensor_fuse._reports.scripts import script

if TYPE_CHECKING:
    from pytensor_fuse._pictures.drawing import Drawing
    from pytensor_fuse._pictures.picture import Picture

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
<p>Colored boxes are kernels: nodes that are fused into one. Hover over a node to see its op and the
code that made it; click a node, a kernel or an edge for details.</p>
<p>In large plans, a chain of nodes that cannot be fused is one box.</p>
<p>A chosen edge shows why its two ends do not share a kernel.</p>
<h3>Mouse</h3>
<p>Drag to move, or drag in the overview to move far; turn the wheel to zoom; double-click a kernel
to open or close it.</p>
<h3>Keys</h3>
<p><kbd>/</kbd> search, <kbd>Enter</kbd> next<br>
<kbd>e</kbd> expand all, <kbd>c</kbd> collapse all, <kbd>f</kbd> fit<br>
<kbd>+</kbd> <kbd>-</kbd> zoom, arrows move<br>
<kbd>[</kbd> <kbd>]</kbd> go to the first input, or reader, of a node<br>
<kbd>Enter</kbd> open or close the chosen kernel</p>
"""

_STUBS = """
<h3>Short ends</h3>
<p>Edges of boxes with very many edges are drawn at their ends only. Click an end, or the box, to
see them whole.</p>
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
        '<div id="corner"><canvas id="overview" hidden role="img" '
        'aria-label="Overview of the plan: drag to move"></canvas>'
        f'<div id="legend">{_legend()}</div></div><div id="tip" hidden></div></main>'
        f'<aside id="panel" aria-live="polite">{_HELP}{_STUBS if drawing.hidden else ""}</aside>'
    )
    return page.page(
        title,
        body,
        style=page.asset(__package__, "plan.css"),
        script=script(__package__, "plan/main.js"),
        data=script_data(drawing),
    )


def figures_table(picture: Picture) -> str:
    """Return the figures before and after fusion as a plain HTML table."""
    rows = "".join(
        f"<tr><td>{page.escape(name)}</td><td>{before:,}</td><td>{after:,}</td></tr>"
        for name, before, after in picture.figures
    )
    return (
        f"<table><thead><tr><th></th><th>before</th><th>after</th></tr></thead>{rows}"
        f'<tr><td>bound</td><td colspan="2">{page.escape(picture.bound[1])}</td></tr></table>'
    )


def _figures(picture: Picture) -> str:
    return (
        '<dl class="figures">'
        + "".join(
            f'<div><dt>{page.escape(name)}</dt><dd><span class="before">{before:,} \u2192</span> '
            f"{after:,}</dd></div>"
            for name, before, after in picture.figures
        )
        + '<div title="{}"><dt>best plan</dt><dd>{}</dd></div></dl>'.format(
            *(page.escape(text) for text in reversed(picture.bound))
        )
    )


def _legend() -> str:
    return "".join(
        f'<span><i style="background:{fill};border-color:{stroke}"></i>{text}</span>'
        for fill, stroke, text in _LEGEND
    )
