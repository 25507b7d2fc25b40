"""The way of a compilation through the cache, in the place of `FunctionMaker.prepare_fgraph`."""

from __future__ import annotations

import pickle
import time
from contextlib import nullcontext
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytensor.compile.maker import FunctionMaker

from pytensor_fuse._cache import disk
from pytensor_fuse._cache.counts import counts
from pytensor_fuse._cache.entry import Entry, weight
from pytensor_fuse._cache.linked import expect_linking
from pytensor_fuse._cache.linked_only import expect_code_of
from pytensor_fuse._cache.loaded import expect_code
from pytensor_fuse._cache.memory import Memory
from pytensor_fuse._cache.notes import Notes
from pytensor_fuse._cache.origin import Origin, note_origin
from pytensor_fuse._cache.origins import Origins
from pytensor_fuse._cache.request import Request, request_for
from pytensor_fuse._cache.rewritten import Rewritten
from pytensor_fuse._cache.setting import Level, level
from pytensor_fuse._errors import CacheError
from pytensor_fuse._pytensor.constant_reads import read_all
from pytensor_fuse._pytensor.graph_contents import remove_foreign_features
from pytensor_fuse._pytensor.patches import ReplacedAttributes
from pytensor_fuse._pytensor.rewriting_failures import noted_failures
from pytensor_fuse._pytensor.surroundings import NotToldError, rewrites_nothing
from pytensor_fuse._startup.features import on_now

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytensor.compile.io import SymbolicInput, SymbolicOutput
    from pytensor.compile.mode import Mode
    from pytensor.graph.basic import Variable
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._cache.variants import Variants

memory: Final = Memory()

_stock_prepare: Final = FunctionMaker.prepare_fgraph


class _Task(NamedTuple):
    """A graph to be rewritten, and how PyTensor would do it."""

    inputs: Sequence[SymbolicInput]
    outputs: Sequence[SymbolicOutput]
    fgraph: FunctionGraph
    mode: Mode
    profile: object
    rewrite: Callable[[], None]

    def request(self, origins: Origins) -> Request:
        return request_for(self.inputs, self.outputs, self.fgraph, origins, self.mode, self.profile)


@wraps(_stock_prepare)
def _prepare_fgraph(
    inputs: Any, outputs: Any, additional_outputs: Any, fgraph: Any, mode: Any, profile: Any
) -> None:
    def rewrite() -> None:
        _stock_prepare(inputs, outputs, additional_outputs, fgraph, mode, profile)

    chosen = level()
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
    origins = Origins(fgraph)
    try:
        request = task.request(origins)
    except NotToldError as error:
        _not_kept(fgraph, str(error))
        rewrite()
        return
    except Exception as error:  # What an op of somebody's says of itself may fail in any way.
        _not_kept(fgraph, f"the graph cannot be told: {type(error).__name__}: {error}")
        rewrite()
        return
    # Whoever compiles while he rewrites may decide by what comes of it.
    read_all(origins.constants)
    entry, is_from_disk = _find(request, on_disk=on_disk)
    variants = None if entry else _variants(request, origins)
    other_data = False
    if variants is not None:
        entry, is_from_disk = variants.find(memory, _read_from if on_disk else None)
        other_data = entry is not None
        if entry is not None:
            memory.put(request, entry, variants.outline)
    made = None
    if entry is not None and chosen is not Level.VERIFY:
        made = disk.tried("using", partial(entry.rewritten.made_for, fgraph.inputs, origins))
    if entry is not None and chosen is Level.VERIFY:
        _verify(task, request, entry, origins, other_data=other_data)
    elif entry is None or made is None:
        _rewrite_and_keep(task, request, variants, origins, on_disk=on_disk)
    else:
        entry.rewritten.exchange(fgraph, made)
        entry.notes.put_into(fgraph, made.variables)
        note_origin(fgraph, Origin(request, "", entry.made))
        expect_linking(fgraph, entry)
        expect_code(made.variables, entry, mode.linker)
        # On a busy machine, a small graph may take longer to find than to rewrite.
        saved = max(0.0, entry.seconds - (time.perf_counter() - start))
        counts.hit(on_disk=is_from_disk, other_data=other_data, saved=saved)


def _variants(request: Request, origins: Origins) -> Variants | None:
    """Return what there is of a graph with other data; None if nobody is to look."""
    if "other_data" not in on_now():
        return None
    # Has its own ground in PyTensor.
    from pytensor_fuse._cache.variants import Variants

    found: Variants | None = disk.tried(
        "looking for other data", lambda: Variants(request, origins)
    )
    return found


def _not_kept(fgraph: FunctionGraph, reason: str) -> None:
    counts.count(counts.not_kept, reason)
    note_origin(fgraph, Origin(None, reason))


def _find(request: Request, *, on_disk: bool) -> tuple[Entry | None, bool]:
    """Return the entry of a request, and whether it came from disk."""
    entry = memory.get(request)
    if entry is not None and not entry.is_as_it_was():
        entry = None
    if entry is not None or not on_disk:
        return entry, False
    kept = disk.tried("reading", lambda: _read(request))
    if kept is None:
        return None, False
    memory.put(request, kept)
    return kept, True


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
    task: _Task,
    request: Request,
    variants: Variants | None,
    origins: Origins,
    *,
    on_disk: bool,
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
        if variants is not None:
            variants.note_in(entry, numbers)
        outline = variants.outline if variants and entry.other_data else None
        kept = {request: outline}
        kept.setdefault(request.once_found_out(), outline and outline.once_found_out())
    except Exception as error:  # The graph has been rewritten: that it is not kept is no failure.
        _not_kept(task.fgraph, f"what came of it cannot be kept: {type(error).__name__}: {error}")
        return
    note_origin(task.fgraph, Origin(request))
    counts.missed()
    for each, shared in kept.items():
        memory.put(each, entry, shared)
    if on_disk:
        disk.tried("writing", partial(_store, kept, entry))
    expect_linking(task.fgraph, entry)
    expect_code(numbers, entry, task.mode.linker)


def _taken(
    fgraph: FunctionGraph, request: Request, origins: Origins, seconds: float
) -> tuple[Entry, dict[Variable[Any, Any], int]]:
    """Return an entry of what is in a graph, and the numbers of its variables there."""
    rewritten, numbers = Rewritten.of(fgraph, origins)
    constants = (*rewritten.constants, *request.graph.constants)
    ops = (*rewritten.ops, *request.graph.ops)
    heavy = weight(rewritten.n_nodes + len(request.graph.rows), constants, ops)
    return Entry(rewritten, Notes.of(fgraph, numbers), time.time(), seconds, heavy), numbers


def _store(requests: Mapping[Request, Request | None], entry: Entry) -> None:
    try:
        key, *others = [request.digest() for request in requests]
        digest = entry.rewritten.digest()
        if digest is None:
            raise NotToldError("part of the rewritten graph is known to this process alone")
    except NotToldError as error:
        counts.count(counts.not_stored, str(error))
        return
    other_data = entry.other_data
    told = None if other_data is None else other_data.digest()
    if told is None:
        other_data = None
    # What tells the graph from others comes with it: a pickle may make another op.
    graph = (entry.rewritten, digest, other_data, told)
    kept = (*graph, entry.notes, entry.made, entry.seconds, entry.weight)
    disk.default_disk().put(key, kept, *others)
    entry.kept_as = digest
    if other_data is not None:
        from pytensor_fuse._cache.variants import store_variant

        for own, outline in zip((key, *others), requests.values(), strict=True):
            if outline is not None:
                store_variant(outline, own)


def _verify(
    task: _Task, request: Request, entry: Entry, origins: Origins, *, other_data: bool
) -> None:
    """Rewrite, compare, and go on with the graph that a hit makes of what is there now.

    Raises
    ------
    CacheError
        If the graph that was kept is another one.
    """
    origins.keep()
    start = time.perf_counter()
    task.rewrite()
    fresh, _ = _taken(task.fgraph, request, origins, time.perf_counter() - start)
    _expect_same(fresh.rewritten, entry.rewritten, "the graph that was kept")
    read = _as_if_read(fresh)
    remove_foreign_features(task.fgraph)
    variables = read.rewritten.put_into(task.fgraph, origins)
    read.notes.put_into(task.fgraph, variables)
    put, _ = Rewritten.of(task.fgraph, origins)
    _expect_same(fresh.rewritten, put, "the graph that a function gets")
    note_origin(task.fgraph, Origin(request))
    counts.hit(on_disk=False, other_data=other_data, saved=0.0)


def _expect_same(fresh: Rewritten, kept: Rewritten, what: str) -> None:
    difference = fresh.difference(kept)
    if difference is not None:
        raise CacheError(
            f"{what} is not what rewriting makes of it now: {difference}; please report it, and "
            "set PYTENSOR_FUSE_CACHE=off until it is mended"
        )


def _as_if_read(entry: Entry) -> Entry:
    """Return what another process would read of an entry, if it could be kept on disk."""
    digest = entry.rewritten.digest()
    if digest is None:
        return entry
    try:
        data = pickle.dumps((entry.rewritten, entry.notes))
    except Exception:  # What has no pickle is not kept on disk.
        return entry
    rewritten, notes = pickle.loads(data)
    if rewritten.digest() != digest:
        raise CacheError("a rewritten graph is another one after it was pickled")
    return Entry(rewritten, notes, entry.made, entry.seconds, entry.weight)


def cached_rewriting() -> ReplacedAttributes:
    """Return the patch that looks graphs up before they are rewritten."""
    return ReplacedAttributes([FunctionMaker], "prepare_fgraph", staticmethod(_prepare_fgraph))
