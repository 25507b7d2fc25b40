"""Information about the cache: statistics, and explanations of misses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytensor.compile.executor import Function

from pytensor_fuse._cache.key.differences import differences
from pytensor_fuse._cache.link.linked_only import forget_code
from pytensor_fuse._cache.lookup import forget
from pytensor_fuse._cache.store import disk
from pytensor_fuse._cache.store.counts import counts
from pytensor_fuse._cache.store.forgetting import forget_others
from pytensor_fuse._cache.store.memory import memory
from pytensor_fuse._cache.store.origin import origin_of
from pytensor_fuse._cache.store.setting import level
from pytensor_fuse._pytensor.linking.makers import is_copy
from pytensor_fuse._reports.asked import function_or_graph, graph_of
from pytensor_fuse._reports.entries import Entries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytensor_fuse._cache.key.cache_key import Request
    from pytensor_fuse._reports.asked import GraphLike

_WITHOUT = "it was compiled without the cache"
_UNKNOWN = "where its graph came from is not known: it is a copy, or was not compiled here"


@dataclass(frozen=True)
class CacheInfo:
    """Statistics of the cache in this process, and its contents.

    Attributes
    ----------
    level
        ``"off"``, ``"memory"``, ``"disk"`` or ``"verify"``: the current level.
    hits_in_memory, hits_on_disk
        The number of graphs that were not rewritten.
    hits_with_other_data
        The number of these that had been rewritten with other data.
    misses
        The number of graphs that were rewritten, and cached.
    not_kept
        Reasons for rewriting graphs without the cache, with their numbers.
    not_stored
        Reasons why graphs in memory were not stored on disk, with their numbers.
    not_alike
        Reasons for rewriting graphs that were cached with other data, with their numbers.
    failures
        Failures after which the graph was rewritten, with their numbers.
    entries, nodes
        The number of rewritten graphs in memory, and of the nodes that they keep alive, where a
        kilobyte of constants counts as a node.
    entries_on_disk, bytes_on_disk
        The number and size of the entries on disk, of all processes.
    path
        The file on disk; None if PyTensor cannot make its directory.
    seconds_saved
        The rewriting time of the graphs that have been reused, less the time of using them.
    """

    level: str
    hits_in_memory: int
    hits_on_disk: int
    hits_with_other_data: int
    misses: int
    not_kept: Mapping[str, int]
    not_stored: Mapping[str, int]
    not_alike: Mapping[str, int]
    failures: Mapping[str, int]
    entries: int
    nodes: int
    entries_on_disk: int
    bytes_on_disk: int
    path: Path | None
    seconds_saved: float

    @property
    def hits(self) -> int:
        """The number of graphs that were not rewritten."""
        return self.hits_in_memory + self.hits_on_disk

    def __str__(self) -> str:
        lines = [
            f"rewrite cache: {self.level}",
            f"  hits     {self.hits}, of which {self.hits_on_disk} from disk and "
            f"{self.hits_with_other_data} with other data; {self.seconds_saved:.1f} s saved",
            f"  misses   {self.misses}",
            f"  memory   {self.entries} graphs, {self.nodes} nodes",
            f"  disk     {self.entries_on_disk} graphs, {self.bytes_on_disk / 1e6:.1f} MB, "
            f"{self.path or 'nowhere'}",
        ]
        for title, reasons in (
            ("rewritten without the cache", self.not_kept),
            ("kept in memory only", self.not_stored),
            ("rewritten for other data", self.not_alike),
            ("failed, and made good", self.failures),
        ):
            lines += [f"  {title}: {reason} ({n})" for reason, n in reasons.items()]
        return "\n".join(lines)


class CacheReport(Entries[str]):
    """Why the graph of a function was rewritten: a tuple of texts, empty for a cached graph."""

    _if_empty = "the rewritten graph was taken from the cache"


def cache_info() -> CacheInfo:
    """Return statistics of the cache in this process, and its contents.

    Returns
    -------
    CacheInfo
        Counts, sizes in bytes and seconds; prints as a table.

    Examples
    --------
    >>> from pytensor_fuse import cache
    >>> print(cache.info())  # doctest: +ELLIPSIS
    rewrite cache: ...
    """
    stored = _disk()
    entries_on_disk, n_bytes = (0, 0) if stored is None else stored.size()
    return CacheInfo(
        level().value,
        counts.hits_in_memory,
        counts.hits_on_disk,
        counts.hits_with_other_data,
        counts.misses,
        dict(counts.not_kept),
        dict(counts.not_stored),
        dict(counts.not_alike),
        dict(counts.failures),
        len(memory),
        memory.weight,
        entries_on_disk,
        n_bytes,
        None if stored is None else stored.path,
        counts.seconds_saved,
    )


def clear_cache(*, disk: bool = True) -> None:
    """Discard all rewritten graphs, and reset the statistics.

    Existing functions are not affected.

    Parameters
    ----------
    disk : bool, optional
        Whether to remove the file on disk, which all processes share, as well.

    Raises
    ------
    OSError
        If the file cannot be removed.
    """
    forget()
    forget_code()
    forget_others()
    counts.reset()
    if disk:
        _clear_disk()


def _clear_disk() -> None:
    stored = _disk()
    if stored is not None:
        stored.clear()


def _disk() -> disk.Disk | None:
    """Return the entries on disk; None if PyTensor has no compile directory."""
    try:
        return disk.default_disk()
    except OSError:
        return None


def explain_cache(graph: GraphLike) -> CacheReport:
    """Return why the graph of a function was rewritten instead of taken from the cache.

    It is compared with the nearest graph in memory: the one with the fewest
    differences, and the latest of these.

    Parameters
    ----------
    graph : Function or FunctionGraph
        A compiled function, or its graph.

    Returns
    -------
    CacheReport
        A tuple of the differences, such as ``"config.floatX: 'float32' was 'float64'"``. Empty for
        a function that was taken from the cache. Unknown for a copy of a function.

    Raises
    ------
    TypeError
        If it is neither a function nor a graph.
    """
    compiled = function_or_graph("explain", graph)
    origin = origin_of(graph_of(compiled))
    if origin is None:
        is_compiled_here = isinstance(compiled, Function) and not is_copy(compiled)
        return CacheReport([_WITHOUT if is_compiled_here else _UNKNOWN])
    if origin.request is None:
        return CacheReport([origin.reason])
    if origin.made is not None:
        return CacheReport()
    return CacheReport(_nearest(origin.request))


def _nearest(request: Request) -> tuple[str, ...]:
    best: tuple[str, ...] | None = None
    own = memory.get(request)
    for other, entry in memory.kept():
        # Its own entry is for the same graph.
        if entry is own:
            continue
        found = tuple(differences(request, other))
        if found and (best is None or len(found) <= len(best)):
            best = found
    return ("the graph was rewritten: no similar graph is in the cache",) if best is None else best
