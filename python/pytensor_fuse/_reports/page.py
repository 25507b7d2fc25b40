"""Pages that people look at: one HTML file each, which asks nothing of a network."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from typing import Any

from pytensor_fuse._reports.palette import FRAME, custom_properties


def page(title: str, body: str, *, style: str = "", script: str = "", data: Any = None) -> str:
    """Return a whole page.

    Parameters
    ----------
    title
        Plain text.
    body
        HTML, its texts escaped already.
    style, script
        CSS beside what all pages have, and JavaScript: see `pytensor_fuse._reports.scripts`.
    data
        What the script finds as ``DATA``: anything that JSON can hold.

    Notes
    -----
    The page forbids itself every request, so that a mistake cannot make one.
    """
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
    )
    scripts = "" if data is None else f"<script>const DATA = {_literal(data)};</script>\n"
    if script:
        scripts += f"<script>{script}</script>\n"
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n"
        f"<style>{custom_properties()}{asset(__package__, 'page.css')}{style}</style>\n"
        f"</head>\n<body>\n{body}\n{scripts}</body>\n</html>\n"
    )


def escape(text: object) -> str:
    """Return a text, or what an object prints, as HTML that shows it."""
    return html.escape(str(text))


def frame(title: str, page: str) -> str:
    """Return a page as it stands in a notebook: in a frame.

    The frame has no origin: its script can reach neither the notebook nor a network.
    """
    return (
        f'<iframe title="{escape(title)}" sandbox="allow-scripts" '
        f'style="width:100%;height:560px;border:1px solid {FRAME};border-radius:6px" '
        f'srcdoc="{escape(page)}"></iframe>'
    )


def asset(package: str, name: str) -> str:
    """Return the text of a style sheet or script among the assets of a subpackage.

    ``name`` is a path with slashes.
    """
    return files(package).joinpath("assets", *name.split("/")).read_text(encoding="utf-8")


def _literal(data: Any) -> str:
    """Return a JavaScript literal that does not end the script it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
