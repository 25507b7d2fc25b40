"""Graphs on disk: other processes find them; what is damaged or not ours is not there."""

from __future__ import annotations

import itertools
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytensor.tensor as pt
import pytest

from _cache.test_twins import registered
from pytensor_fuse import enabled
from pytensor_fuse._cache.data.rewritten import Rewritten
from pytensor_fuse._cache.store import disk as disk_module
from pytensor_fuse._cache.store.disk import Disk, NotStoredError
from pytensor_fuse._cache.store.memory import memory
from pytensor_fuse._errors import FreezeError
from pytensor_fuse.cache import clear as clear_cache
from pytensor_fuse.cache import info as cache_info
from support.cached import assert_same_graphs, assert_same_results, compiled
from support.programs.processes import run_python, with_disk_cache

VALUES = [np.array([0.1, 0.2, 0.3])]


def make():
    x = pt.vector("x")
    return compiled([x], [pt.log(1 + pt.exp(x)), pt.cumsum(x)])


def test_another_process_finds_it(on_disk):
    make()
    memory.clear()
    read = make()
    info = cache_info()
    assert (info.misses, info.hits_on_disk, info.hits_in_memory) == (1, 1, 0)
    assert info.entries_on_disk >= 1
    assert info.path == on_disk.path
    with enabled(False, "cache"):
        fresh = make()
    assert_same_graphs(read, fresh)
    assert_same_results(read, fresh, VALUES)
    make()
    assert cache_info().hits_in_memory == 1


PROGRAM = """
    import numpy as np, pytensor, pytensor.tensor as pt
    import pytensor_fuse
    {definition}
    x = pt.vector("x")
    f = pytensor.function([x], {output}, mode=pytensor.compile.mode.Mode("{linker}", "fast_run"))
    print(*f(np.array([1.0, 2.0])))
    info = pytensor_fuse.cache.info()
    print(info.hits_on_disk, info.misses)
    assert not info.failures, info
"""


def run(tmp_path, output="pt.cumsum(pt.exp(x) * 2)", definition="", linker="py", **options):
    done = run_python(
        PROGRAM.format(output=output, definition=definition, linker=linker),
        env=with_disk_cache(
            tmp_path,
            PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
        ),
        **options,
    )
    numbers, counts = done.stdout.splitlines()
    return numbers, tuple(map(int, counts.split()))


@pytest.mark.parametrize("linker", ["py", "numba"])
def test_processes(tmp_path, linker):
    first, counts = run(tmp_path, linker=linker)
    assert counts == (0, 1)
    second, counts = run(tmp_path, linker=linker)
    assert counts == (1, 0)
    assert first == second


def test_ops_of_others_are_not_kept(tmp_path):
    (tmp_path / "my_ops.py").write_text(
        """
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

class Added(Op):
    __props__ = ()
    def make_node(self, x):
        return Apply(self, [x], [x.type()])
    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] + 1
"""
    )
    for _ in range(2):
        printed = run(tmp_path, "Added()(x)", "from my_ops import Added")
        assert printed == ("2.0 3.0", (0, 0))


def test_rewriters_of_others_keep_graphs_in_memory(on_disk):
    def nothing(fgraph, node):
        return None

    with registered("a_rewriter_of_a_test", nothing):
        for _ in range(2):
            make()
    assert (cache_info().misses, cache_info().hits_in_memory) == (1, 1)
    [reason] = cache_info().not_stored
    assert "others registered what no version tells: nothing" in reason
    assert not on_disk.path.exists()


def test_a_damaged_entry_is_replaced(on_disk):
    make()
    with sqlite3.connect(on_disk.path) as connection:
        connection.execute("UPDATE entries SET value = zeroblob(100)")
    connection.close()
    memory.clear()
    fresh = make()
    info = cache_info()
    assert info.misses == 2
    assert list(info.failures) == ["reading: NotStoredError: an entry on disk was damaged"]
    memory.clear()
    read = make()
    assert cache_info().hits_on_disk == 1
    assert_same_graphs(read, fresh)


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(4096)])
def test_a_file_that_is_no_database(on_disk, content):
    on_disk.folder.mkdir(parents=True)
    on_disk.path.write_bytes(content)
    make()
    assert cache_info().misses == 1
    memory.clear()
    make()
    assert cache_info().hits_on_disk == 1


@pytest.mark.parametrize("length", [10, 4096, 5000])
def test_a_file_that_was_cut(on_disk, length):
    for n in range(8):
        x = pt.vector("x")
        compiled([x], [pt.cumsum(x) + np.arange(200.0) + n])
    data = on_disk.path.read_bytes()
    assert len(data) > 5000
    on_disk.path.write_bytes(data[:length])
    memory.clear()
    make()
    f = make()
    np.testing.assert_allclose(f(*VALUES)[1], np.cumsum(VALUES[0]))


def test_a_folder_in_the_place_of_the_file(on_disk):
    on_disk.path.mkdir(parents=True)
    make()
    memory.clear()
    make()
    assert cache_info().misses == 2
    assert cache_info().failures


def test_a_folder_that_cannot_be_made(monkeypatch, tmp_path, on_disk):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(disk_module, "default_disk", lambda: Disk(tmp_path / "file" / "kept"))
    make()
    make()
    assert (cache_info().misses, cache_info().hits) == (1, 1)
    assert cache_info().failures


def test_a_disk_that_is_full(monkeypatch, on_disk):
    def fail(*_, **__):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(Disk, "_write", fail)
    make()
    make()
    assert cache_info().hits == 1
    assert any("disk is full" in reason for reason in cache_info().failures)


def test_a_locked_file_is_waited_for_and_left(monkeypatch, on_disk):
    make()
    monkeypatch.setattr(disk_module, "_PATIENCE", 0.1)
    holder = sqlite3.connect(on_disk.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    memory.clear()
    start = time.perf_counter()
    make()
    assert time.perf_counter() - start < 30
    holder.close()
    assert cache_info().misses == 2
    assert any("locked" in reason for reason in cache_info().failures)


def test_an_entry_is_read_while_others_read(monkeypatch, on_disk):
    on_disk.put(b"key", "value")
    on_disk.put(b"other", "value")
    monkeypatch.setattr(disk_module, "_PATIENCE", 0.1)
    reader = sqlite3.connect(on_disk.path)
    with closing(reader):
        rows = reader.execute("SELECT key FROM entries")
        assert next(rows)
        # When it was used cannot be noted before the reader has ended.
        assert on_disk.get(b"key") == "value"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="users have no numbers here")
def test_what_another_user_wrote_is_not_read(monkeypatch, on_disk):
    make()
    memory.clear()
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    make()
    assert cache_info().hits_on_disk == 0
    assert cache_info().misses == 2


@pytest.mark.skipif(os.name != "posix", reason="permissions are others here")
@pytest.mark.parametrize("which", ["file", "folder"])
def test_what_others_may_write_is_not_read(on_disk, which):
    make()
    place = on_disk.path if which == "file" else on_disk.folder
    place.chmod(0o777)
    memory.clear()
    make()
    assert (cache_info().misses, cache_info().hits_on_disk) == (2, 0)
    assert any("others may write to" in reason for reason in cache_info().failures)


@pytest.mark.skipif(os.name != "posix", reason="permissions are others elsewhere")
def test_nothing_is_written_where_others_may(on_disk):
    on_disk.folder.mkdir()
    on_disk.folder.chmod(0o777)
    make()
    assert not on_disk.path.exists()
    assert any("others may write to" in reason for reason in cache_info().failures)
    on_disk.path.touch()
    with pytest.raises(PermissionError, match="others may write to it"):
        clear_cache()
    on_disk.folder.chmod(0o700)
    clear_cache()
    assert not on_disk.path.exists()


def test_a_file_that_cannot_be_written_is_read(monkeypatch, on_disk):
    make()
    memory.clear()
    connected = Disk._connected

    @contextmanager
    def read_only(self):
        with connected(self) as connection:
            connection.execute("PRAGMA query_only = ON")
            yield connection
            connection.execute("PRAGMA query_only = OFF")

    monkeypatch.setattr(Disk, "_connected", read_only)
    make()
    assert cache_info().hits_on_disk == 1


@pytest.mark.skipif(os.name != "posix", reason="permissions are others here")
def test_only_the_user_may_read_it(on_disk):
    make()
    assert on_disk.path.stat().st_mode & 0o777 == 0o600
    assert on_disk.folder.stat().st_mode & 0o077 == 0


def test_room_is_made_for_the_latest(tmp_path):
    kept = Disk(tmp_path, most_bytes=10_000)
    for n in range(20):
        kept.put(b"%d" % n, bytes(1000))
        # This one is used all the time.
        assert kept.get(b"0") == bytes(1000)
    n_entries, n_bytes = kept.size()
    assert 0 < n_bytes <= 10_000
    assert n_entries < 20
    assert kept.get(b"19") is not None
    assert kept.get(b"1") is None
    with pytest.raises(NotStoredError, match="too large"):
        kept.put(b"large", bytes(9_000))


@pytest.mark.parametrize("action", ["put", "replace", "hit", "miss"])
def test_no_action_looks_at_all_entries(action, monkeypatch, tmp_path):
    """By the instructions that SQLite runs: among 2,000 entries about as many as among 20."""
    connected = Disk._connected
    n_steps = 0

    def step():
        nonlocal n_steps
        n_steps += 1

    @contextmanager
    def counting(self):
        with connected(self) as connection:
            connection.set_progress_handler(step, 1)
            yield connection
            connection.set_progress_handler(None, 0)

    def steps_among(n_entries):
        nonlocal n_steps
        kept = Disk(tmp_path / str(n_entries))
        keys = [b"key %d" % n for n in range(n_entries)]
        kept.put(keys[0], "same for all", *keys[1:])
        with monkeypatch.context() as patch:
            patch.setattr(Disk, "_connected", counting)
            n_steps = 0
            if action in ("put", "replace"):
                kept.put(b"new" if action == "put" else keys[0], "another")
            else:
                assert (kept.get(keys[0] if action == "hit" else b"new") is None) == (
                    action == "miss"
                )
        return n_steps

    few = steps_among(20)
    assert 0 < steps_among(2_000) < 2 * few


def test_the_latest_stay_whose_use_was_counted_before(tmp_path):
    """Earlier versions numbered the uses: these come before all that the clock says."""
    kept = Disk(tmp_path, most_bytes=10_000)
    for n in range(6):
        kept.put(b"old %d" % n, bytes(1000))
    with closing(sqlite3.connect(kept.path)) as connection, connection:
        connection.executemany(
            "UPDATE entries SET used = ? WHERE key = ?", [(n, b"old %d" % n) for n in range(6)]
        )
    for n in range(6):
        kept.put(b"new %d" % n, bytes(1000))
    assert all(kept.get(b"new %d" % n) is not None for n in range(6))
    assert kept.get(b"old 0") is None


def test_other_versions_are_other_keys(monkeypatch, on_disk):
    make()
    memory.clear()
    monkeypatch.setattr("pytensor_fuse._cache.key.cache_key.versions", lambda: (("pytensor", "9"),))
    make()
    assert (cache_info().misses, cache_info().hits_on_disk) == (2, 0)


def test_a_pickle_that_makes_something_else(monkeypatch, on_disk):
    make()
    memory.clear()
    stock = pickle.loads

    def other(data):
        rewritten, *rest = stock(data)
        return (rewritten._replace(outputs=rewritten.outputs[::-1]), *rest)

    monkeypatch.setattr(pickle, "loads", other)
    make()
    assert cache_info().misses == 2
    assert any("another graph than what was kept" in one for one in cache_info().failures)


def test_clearing_removes_the_file(on_disk):
    make()
    clear_cache(disk=False)
    assert on_disk.path.exists()
    clear_cache()
    assert not on_disk.path.exists()
    clear_cache()


WRITER = """
    import sys, pytensor.tensor as pt, pytensor
    import pytensor_fuse
    from pytensor.compile.mode import Mode
    mode = Mode("py", "fast_run")
    for n in range(int(sys.argv[1])):
        x = pt.vector("x")
        pytensor.function([x], pt.cumsum(x + n) * 2, mode=mode)
        print(n, flush=True)
    print(pytensor_fuse.cache.info())
"""


def start_writer(tmp_path, n):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), str(n)],
        env=with_disk_cache(tmp_path, PYTENSOR_FUSE=""),
        stdout=subprocess.PIPE,
        text=True,
    )


def test_many_writers_at_once(tmp_path):
    writers = [start_writer(tmp_path, 6) for _ in range(3)]
    printed = [writer.communicate(timeout=300)[0] for writer in writers]
    assert all(writer.returncode == 0 for writer in writers)
    assert all("failed, and made good" not in text for text in printed), printed
    last = start_writer(tmp_path, 6)
    text = last.communicate(timeout=300)[0]
    assert "hits     6, of which 6 from disk" in text


def test_a_writer_that_is_killed(tmp_path):
    writer = start_writer(tmp_path, 10_000)
    for _ in range(5):
        writer.stdout.readline()
    writer.send_signal(signal.SIGTERM if os.name != "posix" else signal.SIGKILL)
    writer.communicate(timeout=60)
    [file] = Path(tmp_path).rglob(disk_module.FILE)
    assert file.stat().st_size
    after = start_writer(tmp_path, 5)
    text = after.communicate(timeout=300)[0]
    assert after.returncode == 0
    assert "failed, and made good" not in text
    assert "from disk" in text


@pytest.mark.parametrize("broken", ["versions", "_text"])
def test_what_cannot_be_told_on_disk_is_compiled_all_the_same(monkeypatch, on_disk, broken):
    def fail(*_):
        raise OSError("of a test")

    monkeypatch.setattr(f"pytensor_fuse._cache.key.cache_key.{broken}", fail)
    function = make()
    memory.clear()
    with enabled(False, "cache"):
        assert_same_results(function, make(), VALUES)
    assert set(cache_info().failures) == {
        "reading: OSError: of a test",
        "writing: OSError: of a test",
    }


def test_a_graph_without_a_digest_is_compiled_all_the_same(monkeypatch, on_disk):
    def fail(*_):
        raise FreezeError("of a test")

    monkeypatch.setattr(Rewritten, "digest", fail)
    make()
    assert set(cache_info().failures) == {"writing: FreezeError: of a test"}
    make()
    assert cache_info().hits_in_memory == 1


def test_an_entry_is_pickled_once(on_disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that is found out while a graph is rewritten gives it a second key."""
    pickled = []
    stock = pickle.dumps

    def dumps(value, **how):
        pickled.append(value)
        return stock(value, **how)

    monkeypatch.setattr(disk_module.pickle, "dumps", dumps)
    on_disk.put(b"one", [1, 2], b"two", b"three")
    assert pickled == [[1, 2]]
    assert [on_disk.get(key) for key in (b"one", b"two", b"three")] == [[1, 2]] * 3
    assert on_disk.size()[0] == 3


def test_a_clock_that_jumps(monkeypatch, on_disk):
    now = itertools.cycle([2e9, 1e9, -5.0, 0.0, 1.5e9])
    monkeypatch.setattr(time, "time", lambda: next(now))
    monkeypatch.setattr(time, "perf_counter", lambda: next(now))
    for _ in range(3):
        memory.clear()
        make()
    info = cache_info()
    assert (info.misses, info.hits_on_disk) == (1, 2)
    assert info.seconds_saved >= 0
    assert not info.failures
