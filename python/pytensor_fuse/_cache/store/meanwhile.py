"""Writing to disk while LLVM compiles.

LLVM takes longer than pickling, digesting and writing a rewritten graph, and releases the lock of
Python's interpreter. A graph that is about to be linked is therefore written meanwhile by another
thread, which ends before LLVM's result is used: when a caller has the function, its graph is on
disk. A graph that is linked in another way is written before linking.
"""

from __future__ import annotations

import atexit
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class _PutOff(threading.local):
    """The deferred actions of a thread."""

    def __init__(self) -> None:
        self.actions: list[Callable[[], object]] = []


_put_off: Final = _PutOff()


def put_off(action: Callable[[], object]) -> None:
    """Defer an action until this thread waits for LLVM, or until `catch_up`.

    Parameters
    ----------
    action
        The action, which must not raise an exception, and may run in another thread.
    """
    _put_off.actions.append(action)


def catch_up() -> None:
    """Run the deferred actions of this thread."""
    for action in _taken():
        action()


@contextmanager
def catching_up() -> Iterator[None]:
    """Run the deferred actions in another thread during the block, and wait for it at the end."""
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
    except RuntimeError:  # No thread can be started while the process exits.
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


# For a graph that was rewritten, but not linked.
atexit.register(catch_up)
