"""Plans in Graphviz's DOT language: kernels are clusters."""

from __future__ import annotations

import re

from pytensor_fuse._pictures.colors import role_colors
from pytensor_fuse._pictures.picture import Node, Picture, Role
from pytensor_fuse._pictures.texts import cut
from pytensor_fuse._reports.palette import COLORS, kernel_colors

_UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f\ud800-\udfff]")


def dot(picture: Picture) -> str:
    """Return the picture as a digraph, from left to right, all kernels open."""
    lines = [
        "digraph plan {",
        '  graph [rankdir="LR", fontname="sans-serif"];',
        '  node [shape="box", fontname="sans-serif", fontsize="11"];',
        f'  edge [color="{COLORS["edge"].light}", arrowsize="0.6"];',
    ]
    for box in picture.boxes:
        members = [_node(node, picture.nodes[node]) for node in box.nodes]
        if box.kernel is None:
            lines += [f"  {member}" for member in members]
            continue
        colors = kernel_colors(box.kernel)
        lines += [
            f'  subgraph "cluster_{box.kernel}" {{',
            f"    label={_quoted(box.label)};",
            '    style="filled,rounded";',
            f'    color="{colors.border}"; fillcolor="{colors.ground}";',
            *(f"    {member}" for member in members),
            "  }",
        ]
    for edge in picture.edges:
        why = ""
        if edge.why is not None:
            why = f" [edgetooltip={_quoted(cut(f'not fused: {edge.why}'))}]"
        lines.append(f"  n{edge.source} -> n{edge.target}{why};")
    return "\n".join([*lines, "}", ""])


def _node(position: int, node: Node) -> str:
    label = f"{node.label}\n{node.caption}" if node.caption else node.label
    result = ', peripheries="2"' if node.results else ""
    return (
        f"n{position} [label={_quoted(label)}, tooltip={_quoted(node.tip)}, {_style(node.role)}"
        f"{result}];"
    )


def _style(role: Role) -> str:
    if role is Role.FUSED:
        return f'style="filled,rounded", fillcolor="{COLORS["ground"].light}"'
    fill, border = role_colors(role)
    return f'style="filled,rounded", fillcolor="{fill}", color="{border}"'


def _quoted(text: str) -> str:
    """Return a quoted string that shows ``text``: backslashes and ``&`` would begin escapes."""
    shown = _UNSEEN.sub("\ufffd", text).replace("\\", "\\\\").replace("&", "&amp;")
    return '"' + shown.replace('"', '\\"').replace("\n", "\\n") + '"'
