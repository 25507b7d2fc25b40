"""The look-up of a graph in the cache, a replacement of `FunctionMaker.prepare_fgraph`."""

from __future__ import annotations

import pickle
import time
from contextlib import nullcontext
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytensor.compile.maker import FunctionMaker
from pytensor.link.numba.linker import NumbaLinker

from pytensor_fuse._cache.asked import take_asked
from pytensor_fuse._cache.data.rewritten import Rewritten
from pytensor_fuse._cache.key.cache_key import Request, request_for, runs_inner_graphs
from pytensor_fuse._cache.key.cacheability import expect_nothing_shared
from pytensor_fuse._cache.key.places import Origins
from pytensor_fuse._cache.link.linked import expect_linking
from pytensor_fuse._cache.link.linked_only import expect_code_of
from pytensor_fuse._cache.link.loaded import expect_code
from pytensor_fuse._cache.store import disk
from pytensor_fuse._cache.store.counts import counts
from pytensor_fuse._cache.store.entry import Entry, weight
from pytensor_fuse._cache.store.meanwhile import catch_up, put_off
from pytensor_fuse._cache.store.memory import memory
from pytensor_fuse._cache.store.notes import Notes
from pytensor_fuse._cache.store.origin import Origin, note_origin
from pytensor_fuse._cache.store.setting import Level, level
from pytensor_fuse._errors import CacheError, FreezeError
from pytensor_fuse._pytensor.graphs.contents import remove_foreign_features
from pytensor_fuse._pytensor.patching.patches import ReplacedAttributes
from pytensor_fuse._pytensor.rewriting.constant_reads import read_all
from pytensor_fuse._pytensor.rewriting.environment import NotToldError, rewrites_nothing
from pytensor_fuse._pytensor.rewriting.failures import noted_failures
from pytensor_fuse._startup.features import on_now

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytensor.compile.io import SymbolicInput, SymbolicOutput
    from pytensor.compile.mode import Mode
    from pytensor.graph.basic import Variable
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._cache.asked import Asked
    from pytensor_fuse._cache.variants import Variants
    from pytensor_fuse._identity.interning import InternedGraph

# Requests with settings that PyTensor has not determined although the graph has been rewritten.
_waiting_to_be_found_out: Final[dict[Request, Entry]] = {}
_MOST_WAITING: Final = 32

_stock_prepare: Final = FunctionMaker.prepare_fgraph


class _Task(NamedTuple):
    """A graph to be rewritten, with the arguments and the call of PyTensor's rewriting."""

    inputs: Sequence[SymbolicInput]
    outputs: Sequence[SymbolicOutput]
    fgraph: FunctionGraph
    mode: Mode
    profile: object
    rewrite: Callable[[], None]

    def request(self, origins: Origins, graph: InternedGraph | None = None) -> Request:
        inputs, outputs, fgraph, mode, profile, _ = self
        return request_for(inputs, outputs, fgraph, origins, mode, profile, graph)


class _Found(NamedTuple):
    """An entry, whether it came from disk, and whether it was made for other data."""

    entry: Entry
    on_disk: bool
    other_data: bool


@wraps(_stock_prepare)
def prepare_fgraph(
    inputs: Any, outputs: Any, additional_outputs: Any, fgraph: Any, mode: Any, profile: Any
) -> None:
    def rewrite() -> None:
        _stock_prepare(inputs, outputs, additional_outputs, fgraph, mode, profile)

    # For a graph that was rewritten last, but not linked.
    catch_up()
    chosen = level()
    asked = take_asked(fgraph)
    if asked is not None:
        task = _Task(inputs, outputs, fgraph, mode, profile, rewrite)
        if chosen in (Level.MEMORY, Level.DISK) and _put_uncopied(task, asked):
            return
        asked.fill(fgraph)
    if chosen is Level.OFF:
        rewrite()
        return
    on_disk = chosen is Level.DISK
    if rewrites_nothing(mode):
        rewrite()
        note_origin(fgraph, Origin(None, "the mode rewrites nothing"))
        disk.tried("linking", lambda: expect_code_of(fgraph, mode, on_disk=on_disk))
        return
    task = _Task(inputs, [*outputs, *additional_outputs], fgraph, mode, profile, rewrite)
    start = time.perf_counter()
    told = _told(task)
    if told is None:
        rewrite()
        return
    request, origins = told
    # A compilation during rewriting may make decisions that depend on its result.
    read_all(origins.constants)
    found = _find(request, on_disk=on_disk)
    variants = None if found else _variants(request, origins)
    if variants is not None:
        found = _find_other_data(request, variants, on_disk=on_disk)
    if found is not None and chosen is Level.VERIFY:
        _verify(task, request, found, origins)
    elif found is None or not _used(task, request, found, origins, start):
        _rewrite_and_keep(task, request, variants, origins, on_disk=on_disk)


def _put_uncopied(task: _Task, asked: Asked) -> bool:
    """Fill an empty graph from memory, and return whether there was an entry."""
    start = time.perf_counter()
    try:
        origins = asked.origins()
        request = task.request(origins, asked.graph)
    except Exception:  # The failure recurs, and is reported, when the graph is filled.
        return False
    entry = _in_memory(request)
    if entry is None:
        return False
    read_all(origins.constants)
    return _used(task, request, _Found(entry, on_disk=False, other_data=False), origins, start)


def _told(task: _Task) -> tuple[Request, Origins] | None:
    """Return a graph's request and parts; None, with a recorded reason, if it is not cacheable."""
    try:
        origins = Origins(task.fgraph.inputs, task.fgraph.outputs)
        return task.request(origins), origins
    except (NotToldError, FreezeError) as error:
        _not_kept(task.fgraph, str(error))
    except Exception as error:  # Methods of third-party ops may fail in any way.
        _not_kept(task.fgraph, f"the graph has no key: {type(error).__name__}: {error}")
    return None


def _used(task: _Task, request: Request, found: _Found, origins: Origins, start: float) -> bool:
    """Fill the graph from an entry, and return whether that worked; if not, it is unchanged."""
    fgraph, entry = task.fgraph, found.entry
    made = disk.tried("using", partial(entry.rewritten.made_for, fgraph.inputs, origins))
    if made is None:
        return False
    entry.rewritten.exchange(fgraph, made)
    entry.notes.put_into(fgraph, made.variables)
    note_origin(fgraph, Origin(request, "", entry.made))
    expect_linking(fgraph, entry, made.variables)
    expect_code(made.variables, entry, task.mode.linker)
    # On a busy machine, a small graph may take longer to find than to rewrite.
    saved = max(0.0, entry.seconds - (time.perf_counter() - start))
    counts.hit(on_disk=found.on_disk, other_data=found.other_data, saved=saved)
    return True


def _variants(request: Request, origins: Origins) -> Variants | None:
    """Return the look-up of a graph with other data; None if the feature is off."""
    if "other_data" not in on_now():
        return None
    # The feature requires other facts about PyTensor.
    from pytensor_fuse._cache.variants import Variants

    found: Variants | None = disk.tried(
        "looking for other data", lambda: Variants(request, origins)
    )
    return found


def _not_kept(fgraph: FunctionGraph, reason: str) -> None:
    counts.count(counts.not_kept, reason)
    note_origin(fgraph, Origin(None, reason))


def _find(request: Request, *, on_disk: bool) -> _Found | None:
    """Return the entry of a request, from memory or disk."""
    entry = _in_memory(request)
    if entry is not None:
        return _Found(entry, on_disk=False, other_data=False)
    kept = disk.tried("reading", lambda: _read(request)) if on_disk else None
    if kept is None:
        return None
    memory.put(request, kept)
    return _Found(kept, on_disk=True, other_data=False)


def _in_memory(request: Request) -> Entry | None:
    """Return the entry in memory of a request; None also if its constants have been changed."""
    entry = memory.get(request)
    if entry is None and _waiting_to_be_found_out:
        _found_out()
        entry = memory.get(request)
    return entry if entry is not None and entry.is_as_it_was() else None


def _found_out() -> None:
    """Store entries under the settings that PyTensor has determined since, for example in linking.

    Rewriting used none of these settings, so the entries are valid whatever their values are.
    """
    for request, entry in list(_waiting_to_be_found_out.items()):
        now = request.once_found_out()
        if now != request:
            memory.put(now, entry)
        if now.is_found_out:
            _waiting_to_be_found_out.pop(request, None)


def _find_other_data(request: Request, variants: Variants, *, on_disk: bool) -> _Found | None:
    """Return an entry that was made for other data, with the data of this graph."""
    entry, is_from_disk = variants.find(memory, _read_from if on_disk else None)
    if entry is None:
        return None
    memory.put(request, entry, variants.outline)
    return _Found(entry, on_disk=is_from_disk, other_data=True)


def _read(request: Request) -> Entry | None:
    try:
        key = request.digest()
    except NotToldError:
        return None
    return _read_from(key)


def _read_from(key: bytes) -> Entry | None:
    kept = disk.default_disk().get(key)
    if kept is None:
        return None
    rewritten, digest, other_data, told, *rest = kept
    if rewritten.digest() != digest or (other_data and other_data.digest() != told):
        raise disk.NotStoredError("what was read is another graph than what was kept")
    notes, made, seconds, heavy = rest
    return Entry(rewritten, notes, made, seconds, heavy, other_data, kept_as=digest)


def _rewrite_and_keep(
    task: _Task, request: Request, variants: Variants | None, origins: Origins, *, on_disk: bool
) -> None:
    origins.keep()
    start = time.perf_counter()
    with noted_failures() as failures, variants.watching() if variants else nullcontext():
        task.rewrite()
    if failures:
        _not_kept(task.fgraph, f"a rewriter failed: {failures[0]}")
        return
    seconds = time.perf_counter() - start
    try:
        entry, numbers = _taken(task.fgraph, request, origins, seconds)
        if runs_inner_graphs(task.mode):
            expect_nothing_shared(entry.rewritten.ops)
        if variants is not None:
            variants.note_in(entry, numbers)
        outline = variants.outline if variants and entry.other_data else None
        kept = {request: outline}
        last = request.once_found_out()
        kept.setdefault(last, outline and outline.once_found_out())
    except Exception as error:  # The graph has been rewritten, so the compilation goes on.
        _not_kept(task.fgraph, f"what came of it cannot be kept: {type(error).__name__}: {error}")
        return
    note_origin(task.fgraph, Origin(request))
    counts.missed()
    for each, shared in kept.items():
        memory.put(each, entry, shared)
    if not last.is_found_out:
        _waiting_to_be_found_out[last] = entry
        for oldest in list(_waiting_to_be_found_out)[:-_MOST_WAITING]:
            _waiting_to_be_found_out.pop(oldest, None)
    if on_disk and type(task.mode.linker) is NumbaLinker:
        # Linking changes the graph, but not the data extracted from it.
        put_off(lambda: disk.tried("writing", partial(_store, kept, entry, None)))
    elif on_disk:
        disk.tried("writing", partial(_store, kept, entry, task.fgraph))
    expect_linking(task.fgraph, entry, numbers)
    expect_code(numbers, entry, task.mode.linker)


def _taken(
    fgraph: FunctionGraph, request: Request, origins: Origins, seconds: float
) -> tuple[Entry, dict[Variable[Any, Any], int]]:
    """Return an entry for a graph, and the numbers of its variables there."""
    rewritten, numbers = Rewritten.of(fgraph, origins)
    constants = (*rewritten.constants, *request.graph.constants)
    ops = (*rewritten.ops, *request.graph.ops)
    heavy = weight(rewritten.n_nodes + len(request.graph.rows), constants, ops)
    return Entry(rewritten, Notes.of(fgraph, numbers), time.time(), seconds, heavy), numbers


def _store(
    requests: Mapping[Request, Request | None], entry: Entry, fgraph: FunctionGraph | None
) -> None:
    try:
        key, *others = [request.digest() for request in requests]
        digest = entry.rewritten.digest(fgraph)
        if digest is None:
            raise NotToldError("part of the rewritten graph is known to this process alone")
        if not entry.is_as_it_was():
            # It may have waited for a long time, and its key describes the data at the time of
            # rewriting.
            raise NotToldError("the data of its inner graphs were written to meanwhile")
    except NotToldError as error:
        counts.count(counts.not_stored, str(error))
        return
    other_data = entry.other_data
    told = None if other_data is None else other_data.digest()
    if told is None:
        other_data = None
    # The digest is stored with the graph, because unpickling may make another op.
    graph = (entry.rewritten, digest, other_data, told)
    kept = (*graph, entry.notes, entry.made, entry.seconds, entry.weight)
    disk.default_disk().put(key, kept, *others)
    entry.kept_as = digest
    if other_data is not None:
        from pytensor_fuse._cache.variants import store_variant

        for own, outline in zip((key, *others), requests.values(), strict=True):
            if outline is not None:
                store_variant(outline, own)


def _verify(task: _Task, request: Request, found: _Found, origins: Origins) -> None:
    """Rewrite, compare, and continue with the graph that a hit on the fresh entry makes.

    Raises
    ------
    CacheError
        If the cached graph differs.
    """
    origins.keep()
    start = time.perf_counter()
    task.rewrite()
    fresh, _ = _taken(task.fgraph, request, origins, time.perf_counter() - start)
    _expect_same(fresh.rewritten, found.entry.rewritten, "the cached graph")
    read = _as_if_read(fresh)
    remove_foreign_features(task.fgraph)
    variables = read.rewritten.put_into(task.fgraph, origins)
    read.notes.put_into(task.fgraph, variables)
    put, _ = Rewritten.of(task.fgraph, origins)
    _expect_same(fresh.rewritten, put, "the graph that a function gets")
    note_origin(task.fgraph, Origin(request))
    counts.hit(on_disk=False, other_data=found.other_data, saved=0.0)


def _expect_same(fresh: Rewritten, kept: Rewritten, what: str) -> None:
    difference = fresh.difference(kept)
    if difference is not None:
        raise CacheError(
            f"{what} is not what rewriting makes of it now: {difference}; please report it, and "
            "set PYTENSOR_FUSE_CACHE=off until it is fixed"
        )


def _as_if_read(entry: Entry) -> Entry:
    """Return an entry as another process would read it, if it can be stored on disk."""
    digest = entry.rewritten.digest()
    if digest is None:
        return entry
    try:
        data = pickle.dumps((entry.rewritten, entry.notes))
    except Exception:  # An entry that cannot be pickled is not stored on disk.
        return entry
    rewritten, notes = pickle.loads(data)
    if rewritten.digest() != digest:
        raise CacheError("pickling changes a rewritten graph")
    return Entry(rewritten, notes, entry.made, entry.seconds, entry.weight)


def cached_rewriting() -> ReplacedAttributes:
    """Return the patch that looks graphs up before they are rewritten."""
    return ReplacedAttributes([FunctionMaker], "prepare_fgraph", staticmethod(prepare_fgraph))


def forget() -> None:
    """Forget all entries in memory."""
    memory.clear()
    _waiting_to_be_found_out.clear()
