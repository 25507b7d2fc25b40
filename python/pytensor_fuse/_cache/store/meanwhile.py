"""Writing to disk while LLVM compiles.

LLVM works for longer than it takes to pickle, digest and write a rewritten graph, and without the
lock of Python's interpreter. So a graph that is about to be linked is written then, by another
thread, which ends before LLVM's result is used: whoever has a function knows that what was kept of
it is on disk. A graph that is linked in another way is written before that begins.
"""

from __future__ import annotations

import atexit
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class _PutOff(threading.local):
    """What this thread has put off."""

    def __init__(self) -> None:
        self.actions: list[Callable[[], object]] = []


_put_off: Final = _PutOff()


def put_off(action: Callable[[], object]) -> None:
    """Let an action wait until this thread waits for LLVM, or until `catch_up`.

    Parameters
    ----------
    action
        What may run in another thread, and raises nothing.
    """
    _put_off.actions.append(action)


def catch_up() -> None:
    """Do what this thread has put off."""
    for action in _taken():
        action()


@contextmanager
def catching_up() -> Iterator[None]:
    """Do in another thread what this one has put off, while the block runs; it ends after that."""
    actions = _taken()
    if not actions:
        yield
        return

    def run() -> None:
        for action in actions:
            action()

    worker = threading.Thread(target=run, name="pytensor_fuse cache")
    try:
        worker.start()
    except RuntimeError:  # There are no new threads at the end of the process.
        run()
        yield
        return
    try:
        yield
    finally:
        worker.join()


def _taken() -> list[Callable[[], object]]:
    actions, _put_off.actions = _put_off.actions, []
    return actions


# A graph that was rewritten and not linked.
atexit.register(catch_up)
