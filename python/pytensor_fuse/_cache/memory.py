"""Entries in memory: the least recently used go first."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final

from pytensor_fuse._forks import hold_in_forks

if TYPE_CHECKING:
    from typing import Any

    from pytensor_fuse._cache.entry import Entry
    from pytensor_fuse._cache.request import Request
    from pytensor_fuse._core import Term

# Nodes of all rewritten graphs, and of the graphs that they were: some 200 MB.
HEAVIEST: Final = 200_000


class Memory:
    """Entries by their requests, which together weigh no more than a bound.

    Parameters
    ----------
    heaviest
        The bound. A larger entry is not kept at all.
    """

    def __init__(self, heaviest: int = HEAVIEST) -> None:
        self._heaviest = heaviest
        self._entries: OrderedDict[Request, Entry] = OrderedDict()
        # Requests that differ in their data alone, by what they share; the latest one last.
        self._alike: dict[Request, dict[Request, None]] = {}
        self._outlines: dict[Request, Request] = {}
        # Under how many requests there is an entry.
        self._times: Counter[Entry] = Counter()
        # How many entries there are of a graph.
        self._graphs: Counter[Term] = Counter()
        self._weight = 0
        self._lock = threading.Lock()
        hold_in_forks(self._lock)

    def get(self, request: Request) -> Entry | None:
        """Return the entry of a request, if there is one, which is then the last to go."""
        with self._lock:
            entry = self._entries.get(request)
            if entry is not None:
                self._entries.move_to_end(request)
            return entry

    def has_graph(self, root: Term) -> bool:
        """Whether there is an entry of a graph with this term, for whatever mode."""
        return root in self._graphs

    def alike(self, outline: Request) -> list[Entry]:
        """Return the entries of requests with this outline, the latest first, which stay longer."""
        with self._lock:
            requests = list(self._alike.get(outline, ()))[::-1]
            for request in requests:
                self._entries.move_to_end(request)
            return [self._entries[request] for request in requests]

    def put(self, request: Request, entry: Entry, outline: Request | None = None) -> None:
        """Keep an entry, in the place of what there was.

        Parameters
        ----------
        request, entry
            The entry, and what it is of.
        outline
            What the request shares with those of other data that the entry may be good for.
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
        """Whether an entry can be kept with machine code that weighs so much."""
        times = max(1, self._times.get(entry, 0))
        return (entry.weight + code_weight) * times <= self._heaviest

    def put_code(self, entry: Entry, code: Any, code_weight: int) -> None:
        """Replace the machine code of an entry, which leaves memory with the entry.

        Parameters
        ----------
        entry
            The entry, which need not be in memory any more.
        code
            The machine code.
        code_weight
            What it weighs, in nodes.
        """
        with self._lock:
            if not self.has_room(entry, code_weight):
                # Others would go before it, and none of them is as heavy.
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
        """Return all entries, those that go first before the others."""
        with self._lock:
            return list(self._entries.items())

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def weight(self) -> int:
        """What the entries weigh together, in nodes."""
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
