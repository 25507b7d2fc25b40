"""The connection of a process to the file of entries, which stays open as long as it is used.

Connecting takes longer than writing an entry: SQLite opens the file and reads its schema. All
threads share one connection, one after the other. It is closed before a fork, since SQLite forbids
its use in a child; each process connects again. The file may be removed or replaced at any time, so
it is checked before each use.
"""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from pytensor_fuse._forks import hold_in_forks

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

# On other systems, a file cannot be removed while a process has it open.
_STAYS: Final = os.name == "posix"


class _Open(NamedTuple):
    """A connection, the process that made it, and the identity of the file."""

    connection: sqlite3.Connection
    process: int
    path: Path
    file: tuple[int, int]


class Connections:
    """The connection of this process, to the file that was used last."""

    def __init__(self) -> None:
        self._open: _Open | None = None
        self._of_others: list[_Open] = []
        # A signal handler may fork while this thread holds the lock.
        self._lock = threading.RLock()
        hold_in_forks(self._lock, before=self.close)
        atexit.register(self.close)

    @contextmanager
    def to(self, path: Path, patience: float) -> Iterator[sqlite3.Connection]:
        """Connect to a file for a block, exclusively among threads; after an error, reconnect.

        Parameters
        ----------
        path
            The file, which is created if it does not exist.
        patience
            Seconds to wait for another process that is writing.

        Raises
        ------
        OSError, sqlite3.Error
            If the connection fails.
        """
        with self._lock:
            try:
                yield self._connected(path, patience)
            except BaseException:
                self.close()
                raise
            if not _STAYS:
                self.close()

    def close(self) -> None:
        """Close the connection, if there is one."""
        with self._lock:
            known, self._open = self._open, None
            if known is None:
                return
            if known.process == os.getpid():
                known.connection.close()
            else:
                # The parent's connection: it forked without Python's hooks, and even closing the
                # connection is unsafe.
                self._of_others.append(known)

    def _connected(self, path: Path, patience: float) -> sqlite3.Connection:
        known = self._open
        if (
            known is not None
            and known.process == os.getpid()
            and known.path == path
            and known.file == _file(path)
        ):
            return known.connection
        self.close()
        return self._connect(path, patience)

    def _connect(self, path: Path, patience: float) -> sqlite3.Connection:
        import sqlite3

        # SQLite would create the file readable by others. An existing file is not opened here:
        # closing it again would release the locks of all connections in this process.
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        file = _file(path)
        connection = sqlite3.connect(path, timeout=patience, check_same_thread=False)
        try:
            # Checksums detect the damage of a crash of the machine; waiting for the disk at each
            # entry takes longer than compiling a small model.
            connection.execute("PRAGMA synchronous = OFF")
            # If the file has been replaced meanwhile, it is unknown which one is open.
            if file is not None and file == _file(path):
                self._open = _Open(connection, os.getpid(), path, file)
                return connection
        except BaseException:
            connection.close()
            raise
        connection.close()
        raise sqlite3.OperationalError(f"{path} was replaced while it was opened")


def _file(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


connections: Final = Connections()
