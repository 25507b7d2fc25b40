"""Pages that people look at: one HTML file each, which asks nothing of a network."""

from __future__ import annotations

import html
import json
import os
import stat
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
        f"<style>{asset(__package__, 'page.css')}{style}</style>\n"
        f"</head>\n<body>\n{body}\n{scripts}</body>\n</html>\n"
    )


def escape(text: object) -> str:
    """Return a text, or what an object prints, as HTML that shows it."""
    return html.escape(str(text))


def asset(package: str, name: str) -> str:
    """Return the text of a style sheet or script among the assets of a subpackage."""
    return files(package).joinpath("assets", name).read_text(encoding="utf-8")


def write(path: str | os.PathLike[str], text: str) -> None:
    """Write a file, wholly or not at all.

    A link stays, and what it leads to is written; what is no file, such as a pipe or a terminal, is
    written to as it stands.

    Raises
    ------
    OSError
        If the file cannot be written; a file that was there is then as it was.
    """
    if not os.fspath(path):
        raise FileNotFoundError("the path is empty; name a file")
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path!s} is a directory; name a file in it")
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "w", encoding="utf-8", newline="\n") as device:
            device.write(text)
        return
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"{target.parent} is no directory, so {target.name} cannot be there"
        )
    handle, temporary = _new_file(target)
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode) & 0o777)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _new_file(target: Path) -> tuple[int, Path]:
    """Open a new file beside another, for those whom the umask lets: `tempfile` asks for less."""
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    while True:
        path = target.parent / f".{os.urandom(6).hex()}.tmp"
        try:
            return os.open(path, flags, 0o666), path
        except FileExistsError:
            continue
        except OSError as error:
            error.filename = str(target)
            raise


def _literal(data: Any) -> str:
    """Return a JavaScript literal that does not end the script it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
