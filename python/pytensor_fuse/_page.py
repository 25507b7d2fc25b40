"""Pages that people look at: one HTML file each, which asks nothing of a network."""

from __future__ import annotations

import html
import json
import os
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any


def page(title: str, body: str, *, style: str = "", script: str = "", data: Any = None) -> str:
    """Return a whole page.

    Parameters
    ----------
    title
        Plain text.
    body
        HTML, its texts escaped already.
    style, script
        CSS and JavaScript beside what all pages have.
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
        f"<style>{asset('page.css')}{style}</style>\n"
        f"</head>\n<body>\n{body}\n{scripts}</body>\n</html>\n"
    )


def escape(text: object) -> str:
    """Return a text, or what an object prints, as HTML that shows it."""
    return html.escape(str(text))


def asset(name: str) -> str:
    """Return the text of a style sheet or script of the package."""
    return files("pytensor_fuse").joinpath("assets", name).read_text(encoding="utf-8")


def write(path: str | os.PathLike[str], text: str) -> None:
    """Write a file, wholly or not at all.

    Raises
    ------
    OSError
        If the file cannot be written; a file that was there is then as it was.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a directory; name a file in it")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"{target.parent} is no directory, so {target.name} cannot be there"
        )
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        # A temporary file is for its owner alone.
        os.chmod(temporary, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _literal(data: Any) -> str:
    """Return a JavaScript literal that does not end the script it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
