"""Pages: single HTML files that load nothing from a network."""

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
        HTML, with its texts escaped.
    style, script
        Additional CSS, and JavaScript: see `pytensor_fuse._reports.scripts`.
    data
        The script's ``DATA``: any value that JSON can represent.

    Notes
    -----
    The page's security policy forbids all requests, so that a mistake cannot cause one.
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
    """Return a text, or the text of an object, escaped for HTML."""
    return html.escape(str(text))


def frame(title: str, page: str) -> str:
    """Return a page for a notebook, in a frame.

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
    """Return a JavaScript literal that cannot end the surrounding script element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
