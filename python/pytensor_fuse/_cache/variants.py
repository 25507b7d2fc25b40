"""Variants: graphs that differ only in their data, and share entries."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pytensor_fuse._cache.data.readings import Readings, large_constants
from pytensor_fuse._cache.data.substitution import OtherDataError
from pytensor_fuse._cache.store import disk
from pytensor_fuse._cache.store.counts import counts
from pytensor_fuse._forks import hold_in_forks
from pytensor_fuse._pytensor.rewriting.constant_reads import watching
from pytensor_fuse._pytensor.rewriting.environment import NotToldError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pytensor.graph.basic import Variable

    from pytensor_fuse._cache.data.substitution import OtherData
    from pytensor_fuse._cache.key.cache_key import Request
    from pytensor_fuse._cache.key.places import Origins
    from pytensor_fuse._cache.store.entry import Entry
    from pytensor_fuse._cache.store.memory import Memory

# The maximum number of entries for other data that are tried, the latest first, and stored on disk.
_MOST: Final = 4

# The watchers that are active, in all threads.
_all_readings: Final[list[Readings]] = []
_lock: Final = threading.Lock()
hold_in_forks(_lock)


class Variants:
    """The look-up of a graph with other data, and the conditions on other data for its own entry.

    Parameters
    ----------
    request, origins
        The graph.
    """

    def __init__(self, request: Request, origins: Origins) -> None:
        self._origins = origins
        # Third-party rewriters may have constants of their own, which are not those of the graph.
        is_known = request.registrations.digest is not None
        self._places = large_constants(origins) if is_known else []
        self.outline = request.outline(origins, self._places) if self._places else None
        self._readings: Readings | None = None

    def find(
        self, memory: Memory, read: Callable[[bytes], Entry | None] | None
    ) -> tuple[Entry | None, bool]:
        """Return an entry with the data of this graph, and whether it came from disk.

        Parameters
        ----------
        memory
            Entries in memory.
        read
            Returns the entry on disk of a request's digest; None if there is nothing on disk.
        """
        if self.outline is None:
            return None, False
        alike = memory.alike(self.outline)
        found = self._first(alike[:_MOST])
        if found is not None or read is None:
            return found, False
        keys = _keys_on_disk(self.outline)
        return self._first(entry for key in keys if (entry := _tried(read, key))), True

    def _first(self, entries: Iterable[Entry]) -> Entry | None:
        tried: list[OtherData] = []
        for entry in entries:
            data = entry.other_data
            if data is None or any(data is one for one in tried) or not entry.is_as_it_was():
                continue
            tried.append(data)
            try:
                constants = data.constants_for(self._origins)
            except OtherDataError as error:
                counts.count(counts.not_alike, str(error))
                continue
            except Exception as error:  # Computing with other data may fail in any way.
                counts.count(counts.not_alike, f"{type(error).__name__}: {error}")
                continue
            own = list(entry.rewritten.constants)
            for place, constant in constants.items():
                own[place] = constant
            rewritten = entry.rewritten._replace(constants=tuple(own))
            # The conditions do not depend on the data themselves.
            return replace(entry, rewritten=rewritten, linked=None, native=None)
        return None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record the reads of data in a block that rewrites the graph."""
        if self.outline is None:
            yield
            return
        with _lock:
            readings = self._readings = Readings(self._origins, self._places)
            for other in _all_readings:
                other.expect_no_company(readings.watched)
                readings.expect_no_company(other.watched)
            _all_readings.append(readings)
        try:
            with watching(readings):
                yield
        finally:
            with _lock:
                _all_readings.remove(readings)

    def note_in(self, entry: Entry, numbers: Mapping[Variable[Any, Any], int]) -> None:
        """Store the conditions on other data in the entry of this graph."""
        if self._readings is not None:
            entry.other_data = self._readings.other_data(entry.rewritten, numbers)


def store_variant(outline: Request, key: bytes) -> None:
    """Index an entry on disk by its outline, so that other data find it in other processes."""
    keys = [key, *(one for one in _keys_on_disk(outline) if one != key)]
    disk.default_disk().put(outline.digest(), tuple(keys[:_MOST]))


def _keys_on_disk(outline: Request) -> tuple[bytes, ...]:
    try:
        digest = outline.digest()
    except NotToldError:
        return ()
    keys = disk.tried("reading", lambda: disk.default_disk().get(digest))
    return keys or ()


def _tried(read: Callable[[bytes], Entry | None], key: bytes) -> Entry | None:
    entry: Entry | None = disk.tried("reading", lambda: read(key))
    return entry
