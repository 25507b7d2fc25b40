"""Tallies: counts and times of a pass's node rewriters, taken as PyTensor iterates over them."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from pytensor_fuse._pytensor.graphs.features import PassingFeature, told_of
from pytensor_fuse._pytensor.rewriting.node_trackers import lookup_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph
    from pytensor.graph.op import Op
    from pytensor.graph.rewriting.basic import NodeRewriter, OpToRewriterTracker

    from pytensor_fuse._pytensor.rewriting.node_trackers import Lookup


class Tally:
    """The counts and times of one node rewriter in one pass."""

    __slots__ = ("created", "fired", "group", "inside", "removed", "rewriter", "seconds", "tried")

    def __init__(self, rewriter: NodeRewriter, group: Tally | None) -> None:
        self.rewriter = rewriter
        # The tally of its group, if it is a member of one.
        self.group = group
        self.tried = 0
        self.fired = 0
        self.seconds = 0.0
        # The part of the seconds that was spent in passes and calls that it started.
        self.inside = 0.0
        self.created = 0
        self.removed = 0

    def add_inside(self, seconds: float) -> None:
        """Add the time of an inner pass or call, also to the group."""
        tally: Tally | None = self
        while tally is not None:
            tally.inside += seconds
            tally = tally.group


class Tallies:
    """The tallies of one pass.

    Attributes
    ----------
    current
        The tally of the node rewriter at work.
    """

    __slots__ = ("_found", "current")

    def __init__(self) -> None:
        self._found: dict[object, Tally] = {}
        self.current: Tally | None = None

    def of(self, rewriter: NodeRewriter, group: Tally | None = None) -> Tally:
        """Return the tally of a node rewriter, or of a member of a group."""
        # The tally keeps the rewriter alive, so that its address stays unique.
        key = id(rewriter) if group is None else (id(rewriter), id(group))
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = Tally(rewriter, group)
        return found

    def in_order(self) -> list[Tally]:
        """Return all tallies in the order of first tries, followed by rewriters never tried."""
        return sorted(self._found.values(), key=lambda tally: tally.tried == 0)


class PassTries:
    """The node rewriters that a pass tries on a node in turn.

    Attributes
    ----------
    tracker
        The tracker that lists them, while PyTensor's own method iterates: third-party methods may
        need a list.
    group
        The tally of the group of which these are members, or None.
    """

    __slots__ = ("_known", "_lookup", "_tallies", "group", "tracker")

    def __init__(self, tallies: Tallies, group: Tally | None = None) -> None:
        self._tallies = tallies
        self.group = group
        self.tracker: OpToRewriterTracker | None = None
        self._lookup: Lookup = _nothing_tracked
        self._known: dict[int, tuple[list[NodeRewriter], list[Tally]]] = {}

    def ask(self, tracker: OpToRewriterTracker | None) -> OpToRewriterTracker | None:
        """Count the queries of ``tracker`` from now on; return the previous tracker."""
        before = self.tracker
        if tracker is not before:
            self.tracker = tracker
            if tracker is not None:
                self._lookup = lookup_of(tracker)
        return before

    def candidates(self, op: Op) -> Iterator[NodeRewriter]:
        """Yield the rewriters that track ``op``, as long as the pass iterates."""
        rewriters = self._lookup(op)
        known = self._known.get(id(rewriters)) or self._meet(rewriters)
        tallies = self._tallies
        try:
            for tally in known[1]:
                tally.tried += 1
                tallies.current = tally
                yield tally.rewriter
        finally:
            tallies.current = None

    def forget(self) -> None:
        """Drop the lists of rewriters by op."""
        self._known.clear()

    def _meet(self, rewriters: list[NodeRewriter]) -> tuple[list[NodeRewriter], list[Tally]]:
        """Return a list of rewriters with their tallies.

        The tracker has one list for each op. It is kept alive here, since its address is the key.
        """
        tallies = [self._tallies.of(rewriter, self.group) for rewriter in rewriters]
        known = self._known[id(rewriters)] = rewriters, tallies
        return known


def _nothing_tracked(op: Op) -> list[NodeRewriter]:
    return []


class GroupTries(PassTries):
    """The members of a group of node rewriters, which the group tries on a node in turn.

    Attributes
    ----------
    n_tried, n_offered
        How many nodes the group has been given, and for how many it returned a replacement.
    """

    __slots__ = ("_is_open", "_running", "_start", "n_offered", "n_tried")

    def __init__(self, tallies: Tallies, group: Tally) -> None:
        super().__init__(tallies, group)
        self.n_tried = self.n_offered = 0
        self._is_open = False
        # The member at work, and the start of its work.
        self._running: Tally | None = None
        self._start = 0.0

    def candidates(self, op: Op) -> Iterator[NodeRewriter]:
        """Yield the members that track ``op``, until one returns a replacement.

        The group then stops iterating and drops this iterator.
        """
        rewriters = self._lookup(op)
        known = self._known.get(id(rewriters)) or self._meet(rewriters)
        tallies = self._tallies
        tally = None
        self._start = perf_counter()
        try:
            for tally in known[1]:
                tally.tried += 1
                self._running = tallies.current = tally
                yield tally.rewriter
                now = perf_counter()
                tally.seconds += now - self._start
                self._start = now
        except GeneratorExit:
            # A group that raised drops the iterator late, in the handler of the exception.
            if self._is_open and tally is not None:
                tally.fired += 1
                tally.seconds += perf_counter() - self._start
            raise
        finally:
            if self._is_open:
                self._running = None

    def open(self, tracker: OpToRewriterTracker | None) -> None:
        """Note that the group starts on a node, with members from ``tracker``."""
        if tracker is not self.tracker:
            self.ask(tracker)
        self.n_tried += 1
        self._is_open = True

    def close(self) -> None:
        """Note that the group is done with the node, and the time of a member that raised."""
        self._is_open = False
        if self._running is not None:
            self._running.seconds += perf_counter() - self._start
            self._running = None


@told_of("on_import", "on_prune")
class NodeCounter(PassingFeature):
    """Counts the nodes that enter and leave a graph.

    Attributes
    ----------
    tallies
        The tallies of the running pass, whose node rewriter at work also counts the nodes.
    """

    def __init__(self) -> None:
        self.created = 0
        self.removed = 0
        self.tallies: Tallies | None = None

    def on_import(self, fgraph: FunctionGraph, node: Apply[Any], reason: object) -> None:
        """Count a node that enters."""
        self.created += 1
        if self.tallies is not None and self.tallies.current is not None:
            self.tallies.current.created += 1

    def on_prune(self, fgraph: FunctionGraph, node: Apply[Any], reason: object) -> None:
        """Count a node that leaves."""
        self.removed += 1
        if self.tallies is not None and self.tallies.current is not None:
            self.tallies.current.removed += 1
