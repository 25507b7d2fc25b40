"""What is put off runs in another thread while a block runs, or at the latest when it is due."""

from __future__ import annotations

import threading

import pytest

from pytensor_fuse._cache.store.meanwhile import catch_up, catching_up, put_off


@pytest.fixture
def threads() -> list[str]:
    """The threads in which the actions of a test ran."""
    return []


@pytest.fixture
def note(threads: list[str]):
    return lambda: threads.append(threading.current_thread().name)


def test_it_runs_beside_the_block_and_ends_before_it(threads, note):
    may_end = threading.Event()
    put_off(note)
    put_off(lambda: may_end.wait(60))
    put_off(note)
    with catching_up():
        # Would wait in vain if it ran before the block.
        may_end.set()
    assert threads == ["pytensor_fuse cache"] * 2
    catch_up()
    assert len(threads) == 2


def test_it_ends_before_an_error_of_the_block_is_seen(threads, note):
    put_off(note)
    with pytest.raises(ZeroDivisionError), catching_up():
        _ = 1 / 0
    assert threads == ["pytensor_fuse cache"]


def test_it_runs_here_when_it_is_due(threads, note):
    put_off(note)
    catch_up()
    with catching_up():
        pass
    assert threads == [threading.current_thread().name]


def test_it_runs_here_where_there_are_no_threads(threads, note, monkeypatch):
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", fail)
    put_off(note)
    with catching_up():
        assert threads == [threading.current_thread().name]


def test_nothing_to_do_starts_no_thread(monkeypatch):
    monkeypatch.setattr(threading, "Thread", None)
    with catching_up():
        pass


def test_other_threads_have_what_they_put_off(threads, note):
    put_off(note)
    other = threading.Thread(target=catch_up)
    other.start()
    other.join()
    assert threads == []
    catch_up()
    assert len(threads) == 1
