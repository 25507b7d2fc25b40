"""Full collections of garbage, which look at all objects there are, while functions are made.

A graph under way is many objects that stay: Python looks at all of them, again and again, and finds
next to nothing, since young collections have had what was thrown away. That takes more than a
quarter of the time of a large compile, and makes it grow faster than the graph.

The thresholds are those of the process: what is kept is how they were, until the last thread is
done. Somebody who sets others in the meantime keeps theirs.
"""

from __future__ import annotations

import gc
import os
import threading
from typing import TYPE_CHECKING, Any, Final

from pytensor_fuse._forks import hold_in_forks

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph

# How many times more young collections there are to a full one. What has become garbage since the
# last is some hundred megabytes at most.
TIMES: Final = 16

Thresholds = tuple[int, int, int]


class SparseCollections:
    """Full collections are rare while anybody wants them to be."""

    def __init__(self) -> None:
        # What a signal's handler compiles comes between.
        self._lock = threading.RLock()
        # Who wants it, with the thread.
        self._users: dict[object, int] = {}
        self._before: Thresholds | None = None
        self._set: Thresholds | None = None
        hold_in_forks(self._lock)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget_other_threads)

    def begin(self, user: object) -> None:
        """Let them be rare until the user says that it ends."""
        with self._lock:
            self._users[user] = threading.get_ident()
            if self._before is None:
                before = gc.get_threshold()
                if 0 < before[2] < 1 << 16 and before[0] > 0:
                    self._before = before
                    self._set = *before[:2], before[2] * TIMES
                    gc.set_threshold(*self._set)

    def end(self, user: object) -> None:
        """Let them be as they were, if that was the last user; one who never began is no user."""
        with self._lock:
            self._users.pop(user, None)
            self._restore_if_unused()

    def _restore_if_unused(self) -> None:
        before = self._before
        if not self._users and before is not None:
            self._before = None
            if gc.get_threshold() == self._set:
                gc.set_threshold(*before)

    def _forget_other_threads(self) -> None:
        here = threading.get_ident()
        self._users = {user: thread for user, thread in self._users.items() if thread == here}
        self._restore_if_unused()


_collections = SparseCollections()


def begin() -> object:
    """Let full collections be rare, until `end` is called with what this returns."""
    user = object()
    _collections.begin(user)
    return user


def end(user: object) -> None:
    """Let full collections be as they were, if that was the last who wanted them to be rare."""
    _collections.end(user)


def rewrite(self: Any, fgraph: FunctionGraph, *args: Any, **kwargs: Any) -> Any:
    """Do as `GraphRewriter.rewrite`."""
    user = object()
    try:
        _collections.begin(user)
        self.add_requirements(fgraph)
        return self.apply(fgraph, *args, **kwargs)
    finally:
        _collections.end(user)
