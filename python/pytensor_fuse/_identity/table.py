"""The hash-cons table of this process, and the lock of the Python data that accompany it."""

from __future__ import annotations

import threading

from pytensor_fuse import _core
from pytensor_fuse._forks import hold_in_forks

table = _core.HashConsTable()

lock = threading.RLock()
hold_in_forks(lock, before=table.before_fork, after=table.after_fork)
