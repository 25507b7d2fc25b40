"""Writing files: wholly, or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Final

# A name in a graph may hold what no encoding has: half of a surrogate pair.
_TEXT: Final[Any] = {"encoding": "utf-8", "errors": "backslashreplace", "newline": "\n"}


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
    """Return a text if there is no path, else write it there, as `write` does."""
    if path is None:
        return text
    write(path, text)
    return None


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
