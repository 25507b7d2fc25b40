"""Locks and forks: a child must not inherit a lock from a thread that it does not have."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Lock(Protocol):
    """What `threading.Lock` and `threading.RLock` make."""

    def acquire(self) -> bool: ...
    def release(self) -> None: ...


def hold_in_forks(
    lock: Lock,
    *,
    before: Callable[[], object] | None = None,
    after: Callable[[], object] | None = None,
) -> None:
    """Hold ``lock`` while the process forks, so that what it guards is whole in both processes.

    Parameters
    ----------
    lock
        Held for good, as all that is registered for forks is.
    before, after
        What to do besides while the lock is held, in the process that forks before it does, and
        in both afterwards.
    """
    if not hasattr(os, "register_at_fork"):
        return

    def acquire() -> None:
        lock.acquire()
        if before is not None:
            before()

    def release() -> None:
        try:
            if after is not None:
                after()
        finally:
            lock.release()

    os.register_at_fork(before=acquire, after_in_parent=release, after_in_child=release)
