"""What the cache has done in this process: counts, and reasons."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Final

from pytensor_fuse._forks import hold_in_forks


class Counts:
    """Compilations by what became of them.

    Attributes
    ----------
    hits_in_memory, hits_on_disk
        Graphs that were not rewritten.
    hits_with_other_data
        Of these, how many had been rewritten with other data.
    misses
        Graphs that were rewritten, and kept.
    not_kept, not_stored, not_alike, failures
        Why graphs were rewritten without the cache; why what was kept in memory was not kept on
        disk; why a graph that had been kept with other data was rewritten; what went wrong and was
        made good by rewriting. Each with how often.
    seconds_saved
        What rewriting took when the entries were made that have been used, less what using them
        took.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        hold_in_forks(self._lock)
        self.reset()

    def reset(self) -> None:
        """Start from nothing."""
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
        """Count a graph that was rewritten, and kept."""
        with self._lock:
            self.misses += 1

    def count(self, reasons: Counter[str], reason: str) -> None:
        """Count a reason."""
        with self._lock:
            reasons[reason] += 1


counts: Final = Counts()
