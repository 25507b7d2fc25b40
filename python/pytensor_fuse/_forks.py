"""Locks across forks: a child must not inherit a lock that another thread of its parent holds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Lock(Protocol):
    """The interface of the locks that `threading.Lock` and `threading.RLock` make."""

    def acquire(self) -> bool: ...
    def release(self) -> None: ...


def hold_in_forks(
    lock: Lock,
    *,
    before: Callable[[], object] | None = None,
    after: Callable[[], object] | None = None,
) -> None:
    """Hold ``lock`` while the process forks, so that its data are consistent in both processes.

    Parameters
    ----------
    lock
        The lock. It stays alive as long as the process, since fork hooks cannot be unregistered.
    before, after
        Callbacks that run while the lock is held: ``before`` in the forking process before the
        fork, ``after`` in both processes after it.
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
