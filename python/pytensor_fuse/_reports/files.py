"""Atomic writing of files."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Final

# A name in a graph may contain a lone surrogate, which no encoding represents.
_TEXT: Final[Any] = {"encoding": "utf-8", "errors": "backslashreplace", "newline": "\n"}


def write(path: str | os.PathLike[str], text: str) -> None:
    """Write a file atomically.

    Symbolic links are followed. Other things than regular files, such as pipes and terminals, are
    written to directly.

    Raises
    ------
    OSError
        If the file cannot be written; an existing file is then unchanged.
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
        with open(path, "w", **_TEXT) as device:
            device.write(text)
        return
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"{target.parent} is no directory, so {target.name} cannot be there"
        )
    handle, temporary = _new_file(target)
    try:
        with open(handle, "w", **_TEXT) as file:
            file.write(text)
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode) & 0o777)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def written(text: str, path: str | os.PathLike[str] | None) -> str | None:
    """Write a text to a path as `write` does, or return it if the path is None."""
    if path is None:
        return text
    write(path, text)
    return None


def _new_file(target: Path) -> tuple[int, Path]:
    """Create a file beside another, with the umask's permissions: `tempfile`'s are stricter."""
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
