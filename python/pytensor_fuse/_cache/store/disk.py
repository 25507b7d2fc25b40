"""Entries on disk, beside PyTensor's compiled modules: one SQLite file for all processes of a user.

SQLite keeps the file consistent under many writers and when one is killed. Each entry has a
checksum as well, and an unreadable entry counts as missing. No failure here stops a compilation.

Entries are pickles. Only files that nobody but the user can write to are opened; an attacker with
access to them could also write to the directory of compiled modules. SQLite is imported on first
use, to keep the import of the package fast.
"""

from __future__ import annotations

import errno
import os
import pickle
import time
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytensor.configdefaults import config

from pytensor_fuse._cache.store.connection import connections
from pytensor_fuse._cache.store.counts import counts

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

FOLDER: Final = "pytensor_fuse"
# The name contains the version of the format.
FILE: Final = "rewritten-1.sqlite"

# The total size of all entries; the least recently used are evicted first.
MOST_BYTES: Final = 256 << 20

# Seconds to wait for another process that writes.
_PATIENCE: Final = 0.5

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS entries (
    key BLOB PRIMARY KEY, used INTEGER NOT NULL, size INTEGER NOT NULL,
    checksum BLOB NOT NULL, value BLOB NOT NULL
) WITHOUT ROWID
"""


class NotStoredError(Exception):
    """An entry cannot be stored on disk; the message gives the reason."""


class Disk:
    """Entries by the digests of their requests, in a file.

    Parameters
    ----------
    folder
        The folder of the file.
    most_bytes
        The maximum total size of all entries.

    Attributes
    ----------
    path
        The file.
    """

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder
        self.path: Final = folder / FILE
        self._most_bytes = most_bytes

    def get(self, key: bytes) -> Any:
        """Return the value under a key; None if there is none.

        Raises
        ------
        Exception
            If the file cannot be read, or the entry is damaged.
        """
        import sqlite3

        if not self._is_ours():
            return None
        with self._connected() as connection:
            row = connection.execute(
                "SELECT checksum, value FROM entries WHERE key = ?", (key,)
            ).fetchone()
            if row is None:
                return None
            checksum, value = row
            if _checksum(key, value) != checksum:
                with connection:
                    connection.execute("DELETE FROM entries WHERE key = ?", (key,))
                raise NotStoredError("an entry on disk was damaged")
            # The entry is valid even if its file is read-only, or locked until the time-out.
            with suppress(sqlite3.OperationalError), connection:
                connection.execute(
                    "UPDATE entries SET used = ? WHERE key = ?", (time.time_ns(), key)
                )
        return pickle.loads(value)

    def put(self, key: bytes, value: object, *others: bytes) -> None:
        """Store a value under one or more keys, and replace earlier values.

        Raises
        ------
        Exception
            If the value cannot be pickled, or the file cannot be written.
        """
        import sqlite3

        data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        if len(data) > self._most_bytes // 4:
            raise NotStoredError(f"an entry of {len(data)} bytes is too large")
        if _stat(self.folder) is None:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder, file = _stat(self.folder), _stat(self.path)
        for path, found in ((self.folder, folder), (self.path, file)):
            if found is not None and not _is_of_user_alone(found):
                raise NotStoredError(f"others may write to {path}")
        if file is not None and os.name == "posix" and file.st_mode & 0o077:
            self.path.chmod(0o600)
        n_bytes = len(data) * (1 + len(others)) + (0 if file is None else file.st_size)
        is_full = n_bytes > self._most_bytes
        try:
            self._write((key, *others), data, is_full=is_full)
        except sqlite3.DatabaseError as error:
            if isinstance(error, (sqlite3.OperationalError, sqlite3.ProgrammingError)):
                # Locked, full or read-only, or closed by a fork meanwhile: the file is intact.
                raise
            with suppress(OSError):
                self.path.unlink()
            self._write((key, *others), data, is_full=False)

    def clear(self) -> None:
        """Remove all entries.

        Raises
        ------
        OSError
            If the file cannot be removed.
        """
        if self._is_ours():
            connections.close()
            self.path.unlink(missing_ok=True)
        elif self.path.exists():
            raise PermissionError(errno.EPERM, "others may write to it, so it is not read either")

    def size(self) -> tuple[int, int]:
        """Return the number of entries, and their bytes; zeros if they cannot be read."""
        import sqlite3

        with suppress(sqlite3.Error, OSError):
            if self._is_ours():
                with self._connected() as connection:
                    row = connection.execute("SELECT COUNT(*), TOTAL(size) FROM entries").fetchone()
                return int(row[0]), int(row[1])
        return 0, 0

    def _write(self, keys: Sequence[bytes], data: bytes, *, is_full: bool) -> None:
        with self._connected() as connection, connection:
            connection.execute(_SCHEMA)
            # The time of use instead of a counter, for which each use would have to read all
            # entries.
            used = time.time_ns()
            connection.executemany(
                "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)",
                [(key, used, len(data), _checksum(key, data), data) for key in keys],
            )
            # The pages in use are a cheap upper bound; the exact sum reads all entries, too.
            if is_full and _bytes_of_pages(connection) > self._most_bytes:
                (total,) = connection.execute("SELECT TOTAL(size) FROM entries").fetchone()
                if total > self._most_bytes * 7 // 8:
                    self._make_room(connection, int(total))

    def _make_room(self, connection: sqlite3.Connection, total: int) -> None:
        rows = connection.execute("SELECT key, size FROM entries ORDER BY used, key").fetchall()
        for key, size in rows:
            # More than necessary, because each deletion writes to the file.
            if total <= self._most_bytes * 3 // 4:
                break
            connection.execute("DELETE FROM entries WHERE key = ?", (key,))
            total -= size

    def _connected(self) -> AbstractContextManager[sqlite3.Connection]:
        return connections.to(self.path, _PATIENCE)

    def _is_ours(self) -> bool:
        """Whether the file exists, and only the user may have written to it."""
        both = (_stat(self.path), _stat(self.folder))
        return all(found is not None and _is_of_user_alone(found) for found in both)


def _stat(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _is_of_user_alone(found: os.stat_result) -> bool:
    if not hasattr(os, "getuid"):
        return True
    return found.st_uid == os.getuid() and not found.st_mode & 0o022


def _bytes_of_pages(connection: sqlite3.Connection) -> int:
    """Return the bytes of the file's pages that are in use; O(1)."""
    names = ("page_count", "freelist_count", "page_size")
    pages, free, size = [connection.execute(f"PRAGMA {one}").fetchone()[0] for one in names]
    return int((pages - free) * size)


def _checksum(key: bytes, value: bytes) -> bytes:
    return blake2b(key + value, digest_size=16).digest()


def default_disk() -> Disk:
    """Return the entries in PyTensor's current compile directory.

    Raises
    ------
    OSError
        If PyTensor cannot make its directory.
    """
    try:
        folder = str(config.compiledir)
    except ValueError as error:
        raise OSError(errno.EACCES, str(error)) from error
    return _disk_in(folder)


@cache
def _disk_in(folder: str) -> Disk:
    return Disk(Path(folder) / FOLDER)


def tried(what: str, action: Callable[[], Any]) -> Any:
    """Return the result of an action on the disk; None if it fails, which is counted."""
    try:
        return action()
    except Exception as error:  # A compilation continues after any failure of a disk or a pickle.
        counts.count(counts.failures, f"{what}: {type(error).__name__}: {error}")
        return None
