"""Entries in memory; the least recently used are evicted first."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final

from pytensor_fuse._forks import hold_in_forks

if TYPE_CHECKING:
    from typing import Any

    from pytensor_fuse._cache.key.cache_key import Request
    from pytensor_fuse._cache.store.entry import Entry
    from pytensor_fuse._core import Term

# The maximum number of nodes of all rewritten graphs and their original graphs: about 200 MB.
HEAVIEST: Final = 200_000


class Memory:
    """Entries by their requests, with a bound on the total weight.

    Parameters
    ----------
    heaviest
        The bound. A heavier entry is not stored at all.
    """

    def __init__(self, heaviest: int = HEAVIEST) -> None:
        self._heaviest = heaviest
        self._entries: OrderedDict[Request, Entry] = OrderedDict()
        # Requests that differ only in their data, by their outline; the latest one last.
        self._alike: dict[Request, dict[Request, None]] = {}
        self._outlines: dict[Request, Request] = {}
        # The number of requests of each entry.
        self._times: Counter[Entry] = Counter()
        # The number of entries of each graph.
        self._graphs: Counter[Term] = Counter()
        self._weight = 0
        self._lock = threading.Lock()
        hold_in_forks(self._lock)

    def get(self, request: Request) -> Entry | None:
        """Return the entry of a request, if there is one, and mark it as the last used."""
        with self._lock:
            entry = self._entries.get(request)
            if entry is not None:
                self._entries.move_to_end(request)
            return entry

    def has_graph(self, root: Term) -> bool:
        """Whether there is an entry of a graph with this term, in any mode."""
        return root in self._graphs

    def alike(self, outline: Request) -> list[Entry]:
        """Return the entries with this outline, the latest first, and mark them as used."""
        with self._lock:
            requests = list(self._alike.get(outline, ()))[::-1]
            for request in requests:
                self._entries.move_to_end(request)
            return [self._entries[request] for request in requests]

    def put(self, request: Request, entry: Entry, outline: Request | None = None) -> None:
        """Store an entry, and replace an earlier one.

        Parameters
        ----------
        request, entry
            The request and its entry.
        outline
            The part of the request that is shared with other data for which the entry may be valid.
        """
        with self._lock:
            self._drop(request)
            if entry.weight + entry.code_weight > self._heaviest:
                return
            self._entries[request] = entry
            self._times[entry] += 1
            self._graphs[request.graph.root] += 1
            if outline is not None:
                self._outlines[request] = outline
                self._alike.setdefault(outline, {})[request] = None
            self._weight += entry.weight + entry.code_weight
            self._lighten()

    def has_room(self, entry: Entry, code_weight: int) -> bool:
        """Whether an entry fits with machine code of this weight."""
        times = max(1, self._times.get(entry, 0))
        return (entry.weight + code_weight) * times <= self._heaviest

    def put_code(self, entry: Entry, code: Any, code_weight: int) -> None:
        """Replace the machine code of an entry, which is evicted with the entry.

        Parameters
        ----------
        entry
            The entry, which may have been evicted.
        code
            The machine code.
        code_weight
            Its weight, in nodes.
        """
        with self._lock:
            if not self.has_room(entry, code_weight):
                # Otherwise, other entries would be evicted first, although none is as heavy.
                for request in [one for one, kept in self._entries.items() if kept is entry]:
                    self._drop(request)
            self._weight += (code_weight - entry.code_weight) * self._times.get(entry, 0)
            entry.native, entry.code_weight = code, code_weight
            self._lighten()

    def clear(self) -> None:
        """Forget all entries."""
        with self._lock:
            self._entries.clear()
            self._times.clear()
            self._graphs.clear()
            self._alike.clear()
            self._outlines.clear()
            self._weight = 0

    def kept(self) -> list[tuple[Request, Entry]]:
        """Return all entries, in the order of eviction."""
        with self._lock:
            return list(self._entries.items())

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def weight(self) -> int:
        """The total weight of the entries, in nodes."""
        return self._weight

    def _lighten(self) -> None:
        while self._weight > self._heaviest:
            self._drop(next(iter(self._entries)))

    def _drop(self, request: Request) -> None:
        entry = self._entries.pop(request, None)
        if entry is not None:
            self._weight -= entry.weight + entry.code_weight
            self._times[entry] -= 1
            if not self._times[entry]:
                del self._times[entry]
            root = request.graph.root
            self._graphs[root] -= 1
            if not self._graphs[root]:
                del self._graphs[root]
        outline = self._outlines.pop(request, None)
        if outline is not None:
            alike = self._alike[outline]
            del alike[request]
            if not alike:
                del self._alike[outline]


memory: Final = Memory()
