"""Pages as files, for a browser to open."""

from __future__ import annotations

from pathlib import Path

from pytensor_fuse._reports import files, page


def write_page(directory: Path, body: str, **parts: object) -> Path:
    """Write a page with these parts; return its path."""
    path = directory / "page.html"
    files.write(path, page.page("test", body, **parts))
    return path
