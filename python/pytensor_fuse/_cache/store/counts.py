"""Statistics of the cache in this process: counts and reasons."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Final

from pytensor_fuse._forks import hold_in_forks


class Counts:
    """Counts of compilations by result.

    Attributes
    ----------
    hits_in_memory, hits_on_disk
        Graphs that were not rewritten.
    hits_with_other_data
        The hits among these that had been rewritten with other data.
    misses
        Graphs that were rewritten, and cached.
    not_kept, not_stored, not_alike, failures
        Reasons with their numbers: why graphs were rewritten without the cache; why graphs
        in memory were not stored on disk; why a graph that was cached with other data was
        rewritten; failures after which the graph was rewritten.
    seconds_saved
        The rewriting time of the entries that have been used, less the time of using them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        hold_in_forks(self._lock)
        self.reset()

    def reset(self) -> None:
        """Reset all counts."""
        self.hits_in_memory = self.hits_on_disk = self.misses = 0
        self.hits_with_other_data = 0
        self.not_kept: Counter[str] = Counter()
        self.not_stored: Counter[str] = Counter()
        self.not_alike: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.seconds_saved = 0.0

    def hit(self, *, on_disk: bool, other_data: bool, saved: float) -> None:
        """Count a graph that was not rewritten."""
        with self._lock:
            if on_disk:
                self.hits_on_disk += 1
            else:
                self.hits_in_memory += 1
            self.hits_with_other_data += other_data
            self.seconds_saved += saved

    def missed(self) -> None:
        """Count a graph that was rewritten, and cached."""
        with self._lock:
            self.misses += 1

    def count(self, reasons: Counter[str], reason: str) -> None:
        """Count a reason."""
        with self._lock:
            reasons[reason] += 1


counts: Final = Counts()
