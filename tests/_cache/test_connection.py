"""The connection to the file of entries: used again, but never another file's or process's."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytensor_fuse._cache.store import disk
from pytensor_fuse._cache.store.connection import connections
from pytensor_fuse._cache.store.disk import Disk

POSIX = pytest.mark.skipif(os.name != "posix", reason="connections end with each use elsewhere")
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    connections.close()
    yield
    connections.close()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """Note which connections are made."""
    found: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def noting(*args, **kwargs):
        found.append(connect(*args, **kwargs))
        return found[-1]

    monkeypatch.setattr(sqlite3, "connect", noting)
    return found


@POSIX
def test_all_uses_share_one(tmp_path: Path, made: list[sqlite3.Connection]) -> None:
    for n in range(5):
        kept = Disk(tmp_path)
        kept.put(b"%d" % n, n)
        assert [kept.get(b"%d" % one) for one in range(n + 1)] == list(range(n + 1))
    assert kept.size()[0] == 5
    assert len(made) == 1


def test_threads_share_one(tmp_path: Path, made: list[sqlite3.Connection]) -> None:
    kept = Disk(tmp_path)

    def use(n: int) -> list[int]:
        for round_ in range(20):
            kept.put(b"%d %d" % (n, round_), n)
        return [kept.get(b"%d %d" % (n, round_)) for round_ in range(20)]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(use, range(4))) == [[n] * 20 for n in range(4)]
    assert len(made) == 1 or os.name != "posix"


def test_a_file_that_was_removed_is_made_again(tmp_path: Path) -> None:
    kept = Disk(tmp_path)
    kept.put(b"key", 1)
    kept.path.unlink()
    assert kept.get(b"key") is None
    kept.put(b"key", 2)
    assert Disk(tmp_path).get(b"key") == 2
    with sqlite3.connect(kept.path) as other:
        assert other.execute("SELECT COUNT(*) FROM entries").fetchone() == (1,)
    other.close()


def test_a_file_in_the_place_of_another(tmp_path: Path) -> None:
    kept, other = Disk(tmp_path / "one"), Disk(tmp_path / "two")
    kept.put(b"key", "old")
    other.put(b"key", "new")
    assert kept.get(b"key") == "old"
    connections.close()
    assert kept.get(b"key") == "old"
    os.replace(other.path, kept.path)
    assert kept.get(b"key") == "new"


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(4096)])
def test_a_file_that_somebody_writes_over_while_it_is_open(tmp_path: Path, content: bytes) -> None:
    kept = Disk(tmp_path)
    kept.put(b"key", "old")
    kept.path.write_bytes(content)
    with pytest.raises(sqlite3.DatabaseError):
        kept.get(b"key")
    kept.put(b"key", "new")
    assert kept.get(b"key") == "new"


def test_what_other_connections_write_and_remove_is_seen(tmp_path: Path) -> None:
    kept = Disk(tmp_path)
    kept.put(b"key", "value")
    assert kept.get(b"key") == "value"
    with sqlite3.connect(kept.path) as other:
        other.execute("DELETE FROM entries")
    assert kept.get(b"key") is None
    kept.put(b"key", "again")
    with other:
        assert other.execute("SELECT COUNT(*) FROM entries").fetchone() == (1,)
        other.execute("DROP TABLE entries")
    other.close()
    kept.put(b"key", "after")
    assert kept.get(b"key") == "after"


def test_no_lock_of_the_process_is_released(tmp_path: Path) -> None:
    """Closing any descriptor of a file releases all locks that a process has there."""
    kept = Disk(tmp_path)
    kept.put(b"key", "value")
    holder = sqlite3.connect(kept.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    connections.close()
    assert kept.get(b"key") == "value"
    program = (
        "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"
    )
    status = os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", program, str(kept.path)])
    holder.close()
    assert status == 1


def in_child(action) -> int:
    """Return the exit code of a forked process that runs something."""
    process = os.fork()
    if not process:
        code = 1
        try:
            code = 0 if action() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


@FORKS
def test_parent_and_child_connect_for_themselves(
    tmp_path: Path, made: list[sqlite3.Connection]
) -> None:
    kept = Disk(tmp_path)
    kept.put(b"key", 1)

    def child() -> bool:
        kept.put(b"child", 2)
        return len(made) == 2 and kept.get(b"key") == 1

    assert in_child(child) == 0
    assert kept.get(b"child") == 2
    assert len(made) == 2


@FORKS
def test_a_connection_of_a_process_that_forked_unnoticed_is_left_alone(
    tmp_path: Path, made: list[sqlite3.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Disk(tmp_path)
    kept.put(b"key", 1)
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    assert kept.get(b"key") == 1
    assert len(made) == 2
    # It was not closed either.
    assert made[0].execute("SELECT COUNT(*) FROM entries").fetchone() == (1,)
    monkeypatch.undo()
    made[0].close()


@FORKS
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_forks_while_other_threads_write(tmp_path: Path) -> None:
    kept = Disk(tmp_path)
    kept.put(b"key", 1)
    is_done = threading.Event()

    def write() -> int:
        n = 0
        while not is_done.wait(0.002):
            kept.put(b"of a thread", n)
            n += 1
        return n

    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(write) for _ in range(2)]
        try:
            codes = []
            for n in range(10):

                def child(n: int = n) -> bool:
                    kept.put(b"child %d" % n, n)
                    return kept.get(b"key") == 1

                codes.append(in_child(child))
        finally:
            is_done.set()
        assert all(writer.result() for writer in writers)
    assert codes == [0] * 10
    assert [kept.get(b"child %d" % n) for n in range(10)] == list(range(10))


def test_an_interrupted_write_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Disk(tmp_path)
    kept.put(b"key", 1)

    def interrupted(*_: object) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pytensor_fuse._cache.store.disk._checksum", interrupted)
        with pytest.raises(KeyboardInterrupt):
            kept.put(b"other", 2)
    other = sqlite3.connect(kept.path, timeout=0, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    other.close()
    assert kept.get(b"key") == 1
    assert kept.get(b"other") is None


@FORKS
def test_a_signal_handler_that_forks_costs_no_other_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Disk(tmp_path)
    kept.put(b"key", 1)
    checksum = disk._checksum

    def forking(key: bytes, value: bytes) -> bytes:
        assert in_child(lambda: True) == 0
        return checksum(key, value)

    with monkeypatch.context() as patched:
        # In the middle of writing, as a signal handler may be.
        patched.setattr(disk, "_checksum", forking)
        with pytest.raises(sqlite3.ProgrammingError):
            kept.put(b"other", 2)
    assert kept.get(b"key") == 1
    kept.put(b"other", 2)
    assert kept.get(b"other") == 2
