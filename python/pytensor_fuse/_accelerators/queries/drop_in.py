"""Cached answers of rewrite databases to queries, valid while no rewriter is registered.

A mode asks `optdb` for its rewriters in each compile, and once more for each graph within an op.
The answer consists of some twenty new passes, one for each database in `optdb`. Their parts are
the registered rewriters, the same objects in all answers.

Each query gets copies of the passes of a cached answer, so that a change of one answer does not
affect the next. The copies share the tracker of the rewriters of ops (`OpToRewriterTracker`), and
its cache by op, until a rewriter is added to one of them.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final

from pytensor.compile.mode import optdb
from pytensor.configdefaults import config
from pytensor.graph.rewriting.basic import (
    EquilibriumGraphRewriter,
    FromFunctionNodeRewriter,
    GraphRewriter,
    NodeProcessingGraphRewriter,
    NodeRewriter,
    OpToRewriterTracker,
    SequentialGraphRewriter,
    SequentialNodeRewriter,
    WalkingGraphRewriter,
)
from pytensor.graph.rewriting.db import (
    EquilibriumDB,
    LocalGroupDB,
    ProxyDB,
    RewriteDatabase,
    RewriteDatabaseQuery,
    SequenceDB,
    TopoDB,
)
from pytensor.misc.ordered_set import OrderedSet
from pytensor.scan.rewriting.db import ScanEquilibriumGraphRewriter

from pytensor_fuse._accelerators.rewriter_loops.candidates import found_by
from pytensor_fuse._pytensor.patching.drop_ins import BoundDropIn
from pytensor_fuse._pytensor.rewriting.node_trackers import LOOKUP

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patching.patches import Patch

_MANY = 16
_MANY_OPS = 256

# Of passes that databases make: which lists in them hold passes.
_LISTS: Final[dict[type, tuple[str, ...]]] = {
    SequentialGraphRewriter: ("data",),
    EquilibriumGraphRewriter: ("global_rewriters", "final_rewriters", "cleanup_rewriters"),
    ScanEquilibriumGraphRewriter: ("global_rewriters", "final_rewriters", "cleanup_rewriters"),
    WalkingGraphRewriter: (),
}
_DATABASES: Final = (RewriteDatabase, SequenceDB, EquilibriumDB, LocalGroupDB, TopoDB, ProxyDB)
_TAGS: Final = "__db__"
_TRACKER: Final = "node_tracker"
_ADD: Final = "add_tracker"
# What a pass says of its last run.
_OF_RUNS: Final = "pre_profile"

_stock_query: Any = type(optdb).query
_new: Any = object.__new__


class _Contents:
    """All that `optdb` and the databases in it hold, by which they answer."""

    def __init__(self) -> None:
        self.databases: list[RewriteDatabase] = [optdb]
        known = {id(optdb)}
        for database in self.databases:
            inner = [value for value in vars(database).values() if _is_database(value)]
            for rewriters in list(_tagged(database).values()):
                inner += filter(_is_database, rewriters)
            for one in inner:
                if id(one) not in known:
                    known.add(id(one))
                    self.databases.append(one)
        self._now = self._all()
        # By identity, each once.
        known_rewriters = {id(one): one for one in self._now if isinstance(one, NodeRewriter)}
        self._rewriters: list[Any] = list(known_rewriters.values())
        self._tracked = self._all_tracked()
        self._methods = _methods()
        # Those that no query makes.
        self.registered = frozenset(id(one) for one in self._now if not isinstance(one, str))
        self.answers: dict[Any, GraphRewriter | None] = {}

    def are_these(self) -> bool:
        """Whether the databases hold this still; False where that cannot be told."""
        # Lists compare items by identity first; a rewriter is equal to none but itself.
        try:
            return (
                self._all() == self._now
                and self._all_tracked() == self._tracked
                and _methods() == self._methods
            )
        except Exception:
            # Another thread is registering, or what somebody's rewriter tracks fails.
            return False

    def _all_tracked(self) -> list[Any]:
        """Return what the rewriters track, which they are asked for in each query."""
        found: list[Any] = []
        for one in self._rewriters:
            is_plain = type(one) is FromFunctionNodeRewriter
            tracked = one._tracks if is_plain else one.tracks()
            found.append(tuple(tracked) if type(tracked) is list else tracked)
        return found

    def _all(self) -> list[Any]:
        found: list[Any] = []
        for database in self.databases:
            found.append(type(database))
            for name, value in vars(database).items():
                found.append(name)
                if name == _TAGS:
                    for tag, rewriters in value.items():
                        found.append(tag)
                        found += rewriters.values if type(rewriters) is OrderedSet else rewriters
                elif isinstance(value, dict):
                    found.append(value.copy())
                elif name != "_names":
                    found.append(value)
        return found


def _methods() -> list[Any]:
    """Return the methods that answer queries, which somebody may replace."""
    return [
        RewriteDatabase.__query__,
        *(class_.query for class_ in _DATABASES),
        NodeProcessingGraphRewriter.warn_inplace,
    ]


def _tagged(database: RewriteDatabase) -> dict[str, Any]:
    found: dict[str, Any] = vars(database).get(_TAGS, {})
    return found


def _is_database(value: object) -> bool:
    return isinstance(value, RewriteDatabase)


_contents: _Contents | None = None


def query(self: Any, *tags: Any, **options: Any) -> Any:
    """Do as `SequenceDB.query` of `optdb`, for queries of modes.

    Others, such as those with rewriters of their own, are answered by PyTensor each time.
    """
    global _contents
    stock = type(self).query
    if stock is not _stock_query or len(tags) != 1 or options:
        return stock(self, *tags, **options)
    key = _key(tags[0])
    if key is None:
        return stock(self, *tags)
    contents = _contents
    if contents is None or not contents.are_these() or len(contents.answers) > _MANY:
        _contents = contents = _Contents()
    if key not in contents.answers:
        answer = stock(self, *tags)
        # A rewriter may have come while it answered.
        can_be_copied = contents.are_these() and _can_be_copied(answer, contents.registered)
        contents.answers[key] = answer if can_be_copied else None
        if not can_be_copied:
            return answer
    known = contents.answers[key]
    return stock(self, *tags) if known is None else _copied(known, contents.registered)


def _key(asked: Any) -> tuple[Any, ...] | None:
    """Return all that an answer depends on beside the databases; None if that is too much."""
    if type(asked) is not RewriteDatabaseQuery or asked.extra_rewrites or asked.subquery:
        return None
    return (
        *(tuple(tags) for tags in (asked.include, asked.require, asked.exclude)),
        asked.position_cutoff,
        asked.name,
        config.optdb__max_use_ratio,
        config.optdb__position_cutoff,
    )


def _can_be_copied(answer: Any, registered: frozenset[int]) -> bool:
    """Whether all passes that were made for an answer are of classes that are known here."""
    if id(answer) in registered:
        return True
    if isinstance(answer, WalkingGraphRewriter):
        group = answer.node_rewriter
        is_known = id(group) in registered or (
            type(group) is SequentialNodeRewriter and type(group.tracker) is OpToRewriterTracker
        )
    elif isinstance(answer, EquilibriumGraphRewriter):
        is_known = type(answer.node_tracker) is OpToRewriterTracker and all(
            id(one) in registered for one in answer.get_node_rewriters()
        )
    else:
        is_known = True
    return (
        is_known
        and type(answer) in _LISTS
        and all(
            _can_be_copied(part, registered)
            for name in _LISTS[type(answer)]
            for part in getattr(answer, name)
        )
    )


def _copied(answer: Any, registered: frozenset[int]) -> Any:
    """Return a copy of a pass, and of the passes in it that were made with it."""
    made: Any = _new(type(answer))
    parts = vars(made)
    parts.update(vars(answer))
    parts.pop(_OF_RUNS, None)
    for name in _LISTS[type(answer)]:
        parts[name] = [
            part if id(part) in registered else _copied(part, registered) for part in parts[name]
        ]
    if _TRACKER in parts:
        parts[_TRACKER] = _shared(parts[_TRACKER])
    group = parts.get("node_rewriter")
    if group is not None and id(group) not in registered:
        parts["node_rewriter"] = _copied_group(group)
    return made


def _copied_group(group: Any) -> Any:
    """Return a copy of a group of node rewriters that has not been profiled yet."""
    made: Any = _new(SequentialNodeRewriter)
    parts = vars(made)
    parts.update(vars(group))
    parts["tracker"] = _shared(group.tracker)
    if group.profile:
        made.time_rewrites = defaultdict(float)
        made.process_count, made.applied_true, made.node_created = Counter(), Counter(), Counter()
    return made


def _shared(tracker: Any) -> Any:
    """Return a tracker that finds what another does, and becomes one of its own if added to."""
    # What is known of it goes along, for as long as nobody adds to it.
    found_by(tracker)
    if vars(tracker)[LOOKUP].cache_info().currsize > _MANY_OPS:
        # Ops of graphs that are gone are let go.
        vars(tracker)[LOOKUP] = functools.cache(tracker._get_trackers)
    made: Any = _new(OpToRewriterTracker)
    parts = vars(made)
    parts.update(vars(tracker))
    parts[_ADD] = functools.partial(_add_to_own, made)
    return made


def _add_to_own(tracker: Any, rewriter: Any) -> None:
    """Do as `OpToRewriterTracker.add_tracker`, with lists that no other tracker has."""
    parts = vars(tracker)
    del parts[_ADD]
    tracker.untracked_rewrites = list(tracker.untracked_rewrites)
    for name in ("tracked_instances", "tracked_types"):
        kept = parts[name]
        parts[name] = defaultdict(list, {key: list(found) for key, found in kept.items()})
    patterns: Any = defaultdict(lambda: defaultdict(list))
    for type_, kept in tracker.tracked_pattern_types.items():
        patterns[type_].update({key: list(found) for key, found in kept.items()})
    tracker.tracked_pattern_types = patterns
    tracker._cached_composed_mro = None
    parts[LOOKUP] = functools.cache(tracker._get_trackers)
    tracker.add_tracker(rewriter)


def patch() -> Patch:
    """Return the patch."""
    return BoundDropIn(optdb, "query", query)
