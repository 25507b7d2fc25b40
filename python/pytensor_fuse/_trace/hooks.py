"""Recording what PyTensor's rewriting does, while somebody wants to know.

The classes of PyTensor's rewriters, and of what compiles functions, get other methods while a
trace is open; with the last trace they get their own back. So do the node rewriters that are made
from a function and are the only one of a pass, for that function. Databases, kept queries, modes
and other threads hold the same objects throughout.

What is measured where:

- a pass, by its class's ``apply``: its time, the nodes before and after, and what it starts;
- the node rewriters of a pass that has many of them, by the profile that it returns, which
  PyTensor takes in any case: times and successes. That lacks the tries. The pass goes through
  those of its rewriters that track the op of a node, by an iterator that counts how far it goes;
- the one node rewriter of a pass that walks over the graph, by the profile, too. Its tries are
  counted by what it does once it has not refused the op: most nodes that such a pass comes by are
  refused at once, in less time than it takes to note that;
- the members of a group of node rewriters, which the group goes through itself, by an iterator
  that takes the time as well;
- nodes created and thrown away, by a feature of the graph that counts.

To wrap each run of a node rewriter instead would cost a fifth of the time of a small compile.

Of all this only the feature is something that the rewriting could see. It is attached after the
others, is told of nothing but imports and prunes, does not go along into copies of the graph, and
is gone when the pass that it was attached for is.

Records are of the thread that runs the rewriting, each a tree of frames: a frame is open from the
start of a call or pass to its end, and belongs to those traces that are open all that time. A trace
gets the outermost frames that belong to it; the others are within these.
"""

from __future__ import annotations

import threading
from functools import wraps
from itertools import count
from time import perf_counter
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

from pytensor.compile.maker import FunctionMaker
from pytensor.graph.features import AlreadyThere, Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import (
    EquilibriumGraphRewriter,
    FromFunctionNodeRewriter,
    GraphRewriter,
    NodeRewriter,
    OpToRewriterTracker,
    SequentialNodeRewriter,
    WalkingGraphRewriter,
)

from pytensor_fuse._pytensor.provenance import calling_line
from pytensor_fuse._pytensor.versions import WRAPPERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytensor.graph.basic import Apply
    from pytensor.graph.op import Op

    Method = Callable[..., Any]

# Of the text of an error.
_MOST_LETTERS = 300

_serials = count()


class Listener(Protocol):
    """Somebody who wants the outermost frames; ``serial`` says since when."""

    serial: int

    def hear(self, frame: Frame) -> None:
        """Take a frame that has ended."""


class Tally:
    """What one node rewriter did in one pass."""

    __slots__ = (
        "created",
        "fired",
        "group",
        "inside",
        "removed",
        "rewriter",
        "seconds",
        "tried",
    )

    def __init__(self, rewriter: NodeRewriter, group: Tally | None) -> None:
        self.rewriter = rewriter
        # Of the group that it is a member of.
        self.group = group
        self.tried = 0
        self.fired = 0
        self.seconds = 0.0
        # Of the seconds, those of passes and calls that it started.
        self.inside = 0.0
        self.created = 0
        self.removed = 0


class Tracks:
    """Which ops a node rewriter gets to see where its own class looks at that."""

    __slots__ = ("_known", "_tracker", "rewriter")

    def __init__(self, rewriter: NodeRewriter) -> None:
        self.rewriter = rewriter
        self._tracker = _tracker_of(rewriter)
        # By the address of the op, which is kept so that no other gets it.
        self._known: dict[int, tuple[bool, Op]] = {}

    def has(self, op: Op) -> bool:
        """Whether the rewriter gets to see nodes of ``op``."""
        if self._tracker is None:
            return True
        known = self._known.get(id(op))
        if known is None:
            known = bool(self._tracker._get_trackers(op)), op
            self._known[id(op)] = known
        return known[0]


def _is_stock(method: Method) -> bool:
    return (method.__module__ or "").split(".")[0] == "pytensor"


def _tracker_of(rewriter: NodeRewriter) -> OpToRewriterTracker | None:
    """Return what knows the ops that ``rewriter`` tracks, if its ``transform`` refuses others."""
    if not _is_stock(type(rewriter).transform) or isinstance(rewriter, SequentialNodeRewriter):
        return None
    tracker = OpToRewriterTracker()
    try:
        tracker.add_tracker(rewriter)
    except NotImplementedError:
        # It tracks a union of classes, which no pass but one that asks about each node can run.
        return None
    return None if tracker.untracked_rewrites else tracker


def _nothing_tracked(op: Op) -> list[NodeRewriter]:
    return []


class Frame:
    """A pass that runs or has run, or a call of a function's maker."""

    __slots__ = (
        "asked",
        "began",
        "call",
        "counter",
        "created",
        "current",
        "error",
        "fgraph",
        "frames",
        "group",
        "groups",
        "has_asked",
        "inside",
        "is_busy",
        "is_equilibrium",
        "n_after",
        "n_before",
        "n_offered",
        "n_walked",
        "parent",
        "passes",
        "profiles",
        "removed",
        "requirements",
        "rewriter",
        "rounds",
        "seconds",
        "serial",
        "tallies",
        "told",
        "tracked_by",
        "tracker",
        "walk",
        "walked",
        "within",
    )

    def __init__(self, parent: Frame | None, call: CallInfo | None = None) -> None:
        self.serial = next(_serials)
        self.parent = parent
        self.call = call
        self.rewriter: GraphRewriter | None = None
        self.fgraph: FunctionGraph | None = None
        self.counter: Counter | None = None
        # The node rewriter of the parent that started this, and the one that runs in this.
        self.within: Tally | None = None if parent is None else parent.current
        self.current: Tally | None = None
        self.group: Group | None = None
        self.groups: dict[int, Group] = {}
        # The node rewriter of a pass that has one, its record, whether it is at work, how often it
        # has seen a node, and how often it had something to put in the node's place.
        self.walked: NodeRewriter | None = None
        self.walk: Tally | None = None
        self.is_busy = False
        self.n_walked = self.n_offered = 0
        # Whether PyTensor's own method has asked which node rewriters to try, what tells it while
        # it runs, and the passes that it runs beside these. Methods of others may want a list.
        self.is_equilibrium = self.has_asked = False
        self.tracker: OpToRewriterTracker | None = None
        self.tracked_by: Callable[[Op], list[NodeRewriter]] = _nothing_tracked
        self.passes: tuple[GraphRewriter, ...] = ()
        self.asked: dict[int, tuple[list[NodeRewriter], list[Tally]]] = {}
        # How many of the pass's own profiles are known, and what it says of each rewriter.
        self.told = 0
        self.profiles: tuple[tuple[dict[Any, float], Sequence[dict[Any, int]]], ...] = ()
        self.frames: list[Frame] = []
        self.tallies: dict[object, Tally] = {}
        self.rounds: tuple[Any, ...] = ()
        self.error: str | None = None
        self.requirements = 0.0
        self.seconds = 0.0
        self.inside = 0.0
        self.n_before = self.n_after = 0
        self.created = self.removed = 0
        self.began = perf_counter()

    def tally(self, rewriter: NodeRewriter, group: Tally | None = None) -> Tally:
        """Return the record of a node rewriter, or of a member of a group."""
        # The record keeps the rewriter, and thus its address.
        key = id(rewriter) if group is None else (id(rewriter), id(group))
        found = self.tallies.get(key)
        if found is None:
            found = self.tallies[key] = Tally(rewriter, group)
        return found

    def tries(self, op: Op) -> Iterator[NodeRewriter]:
        """Yield the node rewriters that track ``op``, for as long as the pass goes on with them."""
        rewriters = self.tracked_by(op)
        # The tracker keeps one list for each op; so do we, for its address.
        known = self.asked.get(id(rewriters))
        if known is None:
            known = rewriters, [self.tally(rewriter) for rewriter in rewriters]
            self.asked[id(rewriters)] = known
        try:
            for tally in known[1]:
                tally.tried += 1
                self.current = tally
                yield tally.rewriter
        finally:
            self.current = None

    def settle(self) -> None:
        """Give the records of node rewriters what the pass's own profile says of them."""
        profiles, self.profiles = self.profiles, ()
        for times, fired in profiles:
            for rewriter, seconds in times.items():
                if isinstance(rewriter, NodeRewriter):
                    tally = self.tally(rewriter)
                    tally.seconds += seconds
                    tally.fired += sum(counts.get(rewriter, 0) for counts in fired)

    def _add_within(self, seconds: float) -> None:
        tally = self.within
        while tally is not None:
            tally.inside += seconds
            tally = tally.group

    def add_linking(self, seconds: float) -> None:
        """Add to a call what came after its frame ended."""
        assert self.call is not None
        self.call.linking = seconds
        self.seconds += seconds
        if self.parent is not None:
            self.parent.inside += seconds
            self._add_within(seconds)

    def end(self, error: BaseException | None) -> None:
        """Stop the clock, and hand the frame to what it is part of."""
        elapsed = perf_counter() - self.began
        self.seconds += elapsed
        if error is not None:
            self.error = _said(error)
        whole = elapsed + self.requirements
        parent = self.parent
        if parent is not None:
            parent.inside += whole
            parent.frames.append(self)
            self._add_within(whole)
        if parent is None or parent.serial < _latest:
            # Another thread may open or close a trace.
            for listener in tuple(_listeners):
                if listener.serial < self.serial and (
                    parent is None or parent.serial < listener.serial
                ):
                    listener.hear(self)


def _text_of(name: object) -> str | None:
    """Return a function's name as text: PyTensor takes any object for one."""
    try:
        return None if name is None else str(name)
    except Exception:
        return type(name).__name__


def _said(error: BaseException) -> str:
    """Return the kind of an error and how its text begins."""
    try:
        text = str(error)
    except Exception:
        text = "(its text cannot be made)"
    first = (text.splitlines() or [""])[0]
    return f"{type(error).__name__}: {first[:_MOST_LETTERS]}"


class CallInfo:
    """What a call of `pytensor.function` is known by."""

    __slots__ = ("linking", "name", "thread", "where")

    def __init__(self, name: str | None) -> None:
        self.name = name
        line = calling_line()
        self.where = None if line is None else f"{line.file}:{line.line}"
        self.thread = threading.current_thread().name
        self.linking = 0.0


class Group:
    """A group of node rewriters in a pass: what it tries on one node after the other."""

    __slots__ = ("_known", "frame", "is_open", "rewriter", "running", "start", "tally", "tracker")

    def __init__(self, frame: Frame, rewriter: SequentialNodeRewriter, tally: Tally) -> None:
        self.frame = frame
        self.rewriter = rewriter
        self.tally = tally
        # While PyTensor's own method runs: those of others may want a list.
        self.tracker: OpToRewriterTracker | None = None
        self.is_open = False
        # The member that is at work, and since when.
        self.running: Tally | None = None
        self.start = 0.0
        self._known: dict[int, tuple[list[NodeRewriter], list[Tally]]] = {}

    def members(self, op: Op) -> Iterator[NodeRewriter]:
        """Yield the members that track ``op``, until one has something to put in the node's place.

        The group stops asking for members when one has, and drops this iterator.
        """
        rewriters = vars(self.rewriter.tracker)["get_trackers"](op)
        # The tracker keeps one list for each op; so do we, for its address.
        known = self._known.get(id(rewriters))
        if known is None:
            known = rewriters, [self.frame.tally(member, self.tally) for member in rewriters]
            self._known[id(rewriters)] = known
        frame = self.frame
        tally = None
        self.start = perf_counter()
        try:
            for tally in known[1]:
                tally.tried += 1
                self.running = frame.current = tally
                yield tally.rewriter
                now = perf_counter()
                tally.seconds += now - self.start
                self.start = now
        except GeneratorExit:
            # After the group is done, it is dropped by what handled an exception.
            if self.is_open and tally is not None:
                tally.fired += 1
                tally.seconds += perf_counter() - self.start
            raise
        finally:
            if self.is_open:
                self.running = None

    def close(self) -> None:
        """Note the time of a member that raised."""
        self.is_open = False
        if self.running is not None:
            self.running.seconds += perf_counter() - self.start
            self.running = None


class Counter(Feature):
    """Counts the nodes that enter a graph, and those that leave it."""

    def __init__(self) -> None:
        self.created = 0
        self.removed = 0
        self.frame: Frame | None = None

    def on_import(self, fgraph: FunctionGraph, node: Apply[Any], reason: object) -> None:
        """Count a node that enters."""
        self.created += 1
        if self.frame is not None and self.frame.current is not None:
            self.frame.current.created += 1

    def on_prune(self, fgraph: FunctionGraph, node: Apply[Any], reason: object) -> None:
        """Count a node that leaves."""
        self.removed += 1
        if self.frame is not None and self.frame.current is not None:
            self.frame.current.removed += 1

    def clone(self) -> Feature:
        """Return what a copy of the graph does not take."""
        return _Nothing()

    def __deepcopy__(self, memo: object) -> Feature:
        return _Nothing()

    def __reduce__(self) -> tuple[type[Feature], tuple[()]]:
        return _Nothing, ()


# PyTensor asks the class which events it is told of, and takes the time of each.
Counter._feature_callbacks = frozenset({"on_import", "on_prune"})


class _Nothing(Feature):
    def on_attach(self, fgraph: FunctionGraph) -> None:
        raise AlreadyThere


class _State(threading.local):
    """What runs in a thread."""

    frame: Frame | None = None
    # The graph for which a pass is about to run, and since when that is being prepared.
    asked: tuple[FunctionGraph, float] | None = None

    def __reduce__(self) -> str:
        return "_state"


class _Listeners(list[Listener]):
    def __reduce__(self) -> str:
        return "_listeners"


class _Makers(WeakKeyDictionary[FunctionMaker, Frame]):
    def __reduce__(self) -> str:
        return "_makers"


# Classes that are pickled by value, methods and all, take what these use along: by name.
_state = _State()
# Guards what is below.
_lock = threading.RLock()
_listeners = _Listeners()
# The serial of the latest listener that is open.
_latest = -1
# What the classes had before, in the order in which it was replaced.
_replaced: list[tuple[type, str, object, object]] = []
# The frames of makers that may still link.
_makers = _Makers()
# By the address of the rewriter, which the value keeps.
_tracks: dict[int, Tracks] = {}

# The rewriters made from functions that passes walk with, by address: what they ran, and run now.
_watched: dict[int, tuple[FromFunctionNodeRewriter, Method, Method]] = {}

_ABSENT = object()


def serial() -> int:
    """Return a number greater than those of all frames and listeners so far."""
    return next(_serials)


def listen(listener: Listener) -> None:
    """Let ``listener`` hear of the outermost frames that begin from now on."""
    global _latest
    with _lock:
        if not _listeners:
            _hook()
        _listeners.append(listener)
        _latest = max(other.serial for other in _listeners)


def ignore(listener: Listener) -> None:
    """Let ``listener`` hear no more; undo what the first one brought about."""
    global _latest
    with _lock:
        remaining = [other for other in _listeners if other is not listener]
        _listeners[:] = remaining
        _latest = max((other.serial for other in remaining), default=-1)
        if not remaining:
            _unhook()
            _makers.clear()
            _tracks.clear()


def _hook() -> None:
    try:
        for kind in _kinds_of(GraphRewriter):
            _hook_pass(kind)
        for kind in _kinds_of(FunctionMaker):
            _hook_maker(kind)
        _replace(GraphRewriter, "rewrite", _traced_rewrite(GraphRewriter.rewrite))
        for kind in _kinds_of(NodeRewriter):
            _hook_node_rewriter(kind)
        # Trackers have an attribute of that name each, over which a property prevails.
        _replace(OpToRewriterTracker, "get_trackers", property(_get_trackers, _set_trackers))
        for base, hook in (
            (FunctionMaker, _hook_maker),
            (GraphRewriter, _hook_pass),
            (NodeRewriter, _hook_node_rewriter),
        ):
            _replace(base, "__init_subclass__", classmethod(_hook_new(base, hook)))
    except BaseException:
        _unhook()
        raise


def _unhook() -> None:
    while _watched:
        rewriter, own, watched = _watched.popitem()[1]
        if rewriter.fn is watched:
            rewriter.fn = own
    while _replaced:
        kind, name, before, ours = _replaced.pop()
        # What somebody has put in the place of ours since is theirs to undo.
        if vars(kind).get(name) is not ours:
            continue
        if before is _ABSENT:
            delattr(kind, name)
        else:
            setattr(kind, name, before)


def _replace(kind: type, name: str, ours: object) -> None:
    _replaced.append((kind, name, vars(kind).get(name, _ABSENT), ours))
    setattr(kind, name, ours)


def _kinds_of(kind: type) -> Iterator[type]:
    """Yield a class and its subclasses, each once."""
    kinds = {kind: None}
    pending = [kind]
    while pending:
        subclasses: list[type] = type.__subclasses__(pending.pop())
        for subclass in subclasses:
            if subclass not in kinds:
                kinds[subclass] = None
                pending.append(subclass)
    yield from kinds


def _hook_pass(kind: type) -> None:
    method = vars(kind).get("apply")
    if not isinstance(method, FunctionType) or getattr(method, "__isabstractmethod__", False):
        return
    if not issubclass(kind, WRAPPERS):
        _replace(kind, "apply", _traced_apply(kind, method))


def _hook_node_rewriter(kind: type) -> None:
    transform = vars(kind).get("transform")
    if not isinstance(transform, FunctionType) or getattr(transform, "__isabstractmethod__", False):
        return
    if issubclass(kind, SequentialNodeRewriter):
        _replace(kind, "transform", _traced_group(transform))
    elif not issubclass(kind, FromFunctionNodeRewriter):
        _replace(kind, "transform", _traced_transform(transform))


def _hook_maker(kind: type) -> None:
    for name, traced in (("__init__", _traced_init), ("create", _traced_create)):
        method = vars(kind).get(name)
        if isinstance(method, FunctionType):
            _replace(kind, name, traced(method))


def _hook_new(base: type[Any], hook: Callable[[type], None]) -> Callable[..., None]:
    """Return what hooks the subclasses of ``base`` that are made while a trace is open."""

    def hook_new(kind: type[Any], /, **options: Any) -> None:
        super(base, kind).__init_subclass__(**options)
        with _lock:
            if _listeners:
                hook(kind)

    return hook_new


def _traced_apply(kind: type, apply: Method) -> Method:
    state = _state
    is_walk = issubclass(kind, WalkingGraphRewriter)
    is_equilibrium = issubclass(kind, EquilibriumGraphRewriter)
    asks_one_by_one = is_equilibrium and _is_stock(apply)

    def run(frame: Frame, self: Any, args: Any, kwargs: Any) -> Any:
        told = frame.told
        outer = frame.tracker
        frame.tracker = self.node_tracker if asks_one_by_one else None
        if asks_one_by_one:
            frame.has_asked = True
            frame.tracked_by = vars(self.node_tracker)["get_trackers"]
        try:
            result = apply(self, *args, **kwargs)
        finally:
            frame.tracker = outer
        # What a base class's method has told is not told again.
        if (is_walk or is_equilibrium) and frame.told == told:
            _take_profile(frame, result)
        return result

    @wraps(apply)
    def traced(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        parent = state.frame
        if not _listeners and parent is None:
            return apply(self, *args, **kwargs)
        # The first parameter has any name that its author gave it.
        fgraph = args[0] if args else next(iter(kwargs.values()), None)
        if not isinstance(fgraph, FunctionGraph):
            return apply(self, *args, **kwargs)
        if parent is not None and parent.rewriter is self and parent.fgraph is fgraph:
            # A class's method that calls that of its base class.
            return run(parent, self, args, kwargs)
        frame = Frame(parent)
        if state.asked is not None and state.asked[0] is fgraph:
            frame.requirements = frame.began - state.asked[1]
            state.asked = None
        frame.rewriter = self
        frame.fgraph = fgraph
        frame.is_equilibrium = is_equilibrium
        is_outermost = parent is None or parent.fgraph is not fgraph or parent.counter is None
        if is_outermost:
            counter = Counter()
        else:
            assert parent is not None
            assert parent.counter is not None
            counter = parent.counter
        frame.counter = counter
        # A subclass need not have what its base class's constructor sets.
        walked = getattr(self, "node_rewriter", None) if is_walk else None
        if walked is not None:
            frame.walked = walked
            frame.walk = frame.current = frame.tally(walked)
            _watch(walked)
        elif is_equilibrium:
            frame.passes = tuple(
                each
                for name in ("global_rewriters", "final_rewriters", "cleanup_rewriters")
                for each in getattr(self, name, None) or ()
            )
        if parent is not None and frame.within is not None and self in parent.passes:
            frame.within = None
        outer, counter.frame = counter.frame, frame
        created, removed = counter.created, counter.removed
        frame.n_before = len(fgraph.apply_nodes)
        state.frame = frame
        error: BaseException | None = None
        try:
            if is_outermost:
                fgraph.attach_feature(counter)
            return run(frame, self, args, kwargs)
        except BaseException as raised:
            error = raised
            raise
        finally:
            state.frame = parent
            frame.n_after = len(fgraph.apply_nodes)
            frame.created = counter.created - created
            frame.removed = counter.removed - removed
            counter.frame = outer
            # A trace does not keep graphs.
            frame.fgraph = frame.counter = frame.current = None
            frame.asked.clear()
            frame.groups.clear()
            if is_outermost:
                fgraph.remove_feature(counter)
                fgraph.execute_callbacks_times.pop(counter, None)
            frame.end(error)
            error = None
            walk = frame.walk
            if walk is not None:
                walk.tried = frame.n_walked
            if walk is not None and not frame.told:
                walk.seconds, walk.fired = frame.seconds, frame.n_offered

    return traced


def _take_profile(frame: Frame, result: Any) -> None:
    """Keep what a pass says of its rounds and its node rewriters."""
    if not isinstance(result, tuple):
        return
    if frame.walk is not None and len(result) == 8:
        _, fired, _, _, _, spent, _, _ = result
        frame.walk.fired += fired
        frame.walk.seconds += spent
        frame.told += 1
    elif frame.is_equilibrium and len(result) == 12:
        _, seconds, counts, _, _, n_nodes, times, *_ = result
        frame.rounds += tuple(
            (taken, n, sum(count.values()))
            for taken, n, count in zip(seconds, n_nodes, counts, strict=True)
        )
        frame.profiles = (*frame.profiles, (times, counts))
        frame.told += 1


def _traced_rewrite(rewrite: Method) -> Method:
    @wraps(rewrite)
    def traced(self: GraphRewriter, fgraph: FunctionGraph, *args: Any, **kwargs: Any) -> Any:
        outer = _state.asked
        _state.asked = fgraph, perf_counter()
        try:
            return rewrite(self, fgraph, *args, **kwargs)
        finally:
            _state.asked = outer

    return traced


def _traced_transform(transform: Method) -> Method:
    @wraps(transform)
    def traced(
        self: NodeRewriter,
        fgraph: FunctionGraph,
        node: Apply[Any],
        *args: Any,
        **options: Any,
    ) -> Any:
        frame = _state.frame
        if frame is None or frame.walked is not self or frame.is_busy:
            return transform(self, fgraph, node, *args, **options)
        if not _tracks_of(self).has(node.op):
            return transform(self, fgraph, node, *args, **options)
        frame.n_walked += 1
        frame.is_busy = True
        try:
            found = transform(self, fgraph, node, *args, **options)
        finally:
            frame.is_busy = False
        if found:
            frame.n_offered += 1
        return found

    return traced


def _watch(rewriter: NodeRewriter) -> None:
    """Let a rewriter made from a function count the nodes of ops that it does not refuse.

    For as long as any trace is open, in all threads: it is not put back after each pass.
    """
    if id(rewriter) in _watched or not isinstance(rewriter, FromFunctionNodeRewriter):
        return
    own: Method = rewriter.fn

    state = _state

    @wraps(own)
    def watched(fgraph: FunctionGraph, node: Apply[Any]) -> Any:
        frame = state.frame
        if frame is None or frame.walked is not rewriter or frame.is_busy:
            return own(fgraph, node)
        frame.n_walked += 1
        # What it calls by itself is no try of the pass's.
        frame.is_busy = True
        try:
            found = own(fgraph, node)
        finally:
            frame.is_busy = False
        if found:
            frame.n_offered += 1
        return found

    with _lock:
        if _listeners and id(rewriter) not in _watched:
            _watched[id(rewriter)] = rewriter, own, watched
            rewriter.fn = watched


def _tracks_of(rewriter: NodeRewriter) -> Tracks:
    tracks = _tracks.get(id(rewriter))
    if tracks is None:
        tracks = _tracks[id(rewriter)] = Tracks(rewriter)
    return tracks


def _traced_group(transform: Method) -> Method:
    state = _state
    is_stock = _is_stock(transform)

    @wraps(transform)
    def traced(
        self: SequentialNodeRewriter,
        fgraph: FunctionGraph,
        node: Apply[Any],
        *args: Any,
        **options: Any,
    ) -> Any:
        frame = state.frame
        current = None if frame is None else frame.current
        if frame is None or current is None or current.rewriter is not self:
            return transform(self, fgraph, node, *args, **options)
        outer = frame.group
        if outer is not None and outer.tally is current:
            # A class's method that calls that of its base class.
            known, outer.tracker = outer.tracker, self.tracker if is_stock else None
            try:
                return transform(self, fgraph, node, *args, **options)
            finally:
                outer.tracker = known
        group = frame.groups.get(id(current))
        if group is None:
            group = frame.groups[id(current)] = Group(frame, self, current)
        frame.group = group
        group.tracker = self.tracker if is_stock else None
        group.is_open = True
        try:
            found = transform(self, fgraph, node, *args, **options)
        finally:
            group.close()
            frame.group = outer
            frame.current = current
            if current is frame.walk:
                frame.n_walked += 1
        if found and current is frame.walk:
            frame.n_offered += 1
        return found

    return traced


def _get_trackers(tracker: OpToRewriterTracker) -> Method:
    frame = _state.frame
    if frame is not None:
        if frame.tracker is tracker:
            return frame.tries
        if frame.group is not None and frame.group.tracker is tracker:
            return frame.group.members
    own: Method = vars(tracker)["get_trackers"]
    return own


def _set_trackers(tracker: OpToRewriterTracker, own: Method) -> None:
    vars(tracker)["get_trackers"] = own


def _traced_init(init: Method) -> Method:
    @wraps(init)
    def traced(self: FunctionMaker, *args: Any, **kwargs: Any) -> None:
        state = _state
        parent = state.frame
        # A subclass's method calls that of its base class with the same maker.
        if (not _listeners and parent is None) or self in _makers:
            init(self, *args, **kwargs)
            return
        frame = Frame(parent, CallInfo(_text_of(kwargs.get("name"))))
        _makers[self] = state.frame = frame
        error: BaseException | None = None
        try:
            init(self, *args, **kwargs)
        except BaseException as raised:
            error = raised
            raise
        finally:
            state.frame = parent
            frame.end(error)
            error = None

    return traced


def _traced_create(create: Method) -> Method:
    @wraps(create)
    def traced(self: FunctionMaker, *args: Any, **kwargs: Any) -> Any:
        state = _state
        frame = _makers.pop(self, None)
        if frame is None or frame.call is None:
            return create(self, *args, **kwargs)
        outer, state.frame = state.frame, frame
        start = perf_counter()
        try:
            return create(self, *args, **kwargs)
        except BaseException as raised:
            frame.error = _said(raised)
            raise
        finally:
            state.frame = outer
            frame.add_linking(perf_counter() - start)

    return traced
