"""Tallies: what the node rewriters of a pass did, counted as PyTensor comes to them."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from pytensor_fuse._pytensor.features import PassingFeature, told_of
from pytensor_fuse._pytensor.node_trackers import lookup_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph
    from pytensor.graph.op import Op
    from pytensor.graph.rewriting.basic import NodeRewriter, OpToRewriterTracker

    from pytensor_fuse._pytensor.node_trackers import Lookup


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

    def add_inside(self, seconds: float) -> None:
        """Add what something took that the rewriter started, to its group as well."""
        tally: Tally | None = self
        while tally is not None:
            tally.inside += seconds
            tally = tally.group


class Tallies:
    """The tallies of one pass.

    Attributes
    ----------
    current
        That of the node rewriter at work.
    """

    __slots__ = ("_found", "current")

    def __init__(self) -> None:
        self._found: dict[object, Tally] = {}
        self.current: Tally | None = None

    def of(self, rewriter: NodeRewriter, group: Tally | None = None) -> Tally:
        """Return the tally of a node rewriter, or of a member of a group."""
        # The tally keeps the rewriter, and thus its address.
        key = id(rewriter) if group is None else (id(rewriter), id(group))
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = Tally(rewriter, group)
        return found

    def in_order(self) -> list[Tally]:
        """Return all, as the pass came to them; those that were never tried at the end."""
        return sorted(self._found.values(), key=lambda tally: tally.tried == 0)


class PassTries:
    """The node rewriters that a pass tries on a node in turn.

    Attributes
    ----------
    tracker
        What tells them, while PyTensor's own method asks it: methods of others may want a list.
    group
        The tally of the group whose members these are, or None.
    """

    __slots__ = ("_known", "_lookup", "_tallies", "group", "tracker")

    def __init__(self, tallies: Tallies, group: Tally | None = None) -> None:
        self._tallies = tallies
        self.group = group
        self.tracker: OpToRewriterTracker | None = None
        self._lookup: Lookup = _nothing_tracked
        self._known: dict[int, tuple[list[NodeRewriter], list[Tally]]] = {}

    def ask(self, tracker: OpToRewriterTracker | None) -> OpToRewriterTracker | None:
        """Count what ``tracker`` is asked for from now on; return what it was before."""
        before = self.tracker
        if tracker is not before:
            self.tracker = tracker
            if tracker is not None:
                self._lookup = lookup_of(tracker)
        return before

    def candidates(self, op: Op) -> Iterator[NodeRewriter]:
        """Yield those that track ``op``, for as long as the pass goes on with them."""
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
        """Forget which ones track which op."""
        self._known.clear()

    def _meet(self, rewriters: list[NodeRewriter]) -> tuple[list[NodeRewriter], list[Tally]]:
        """Return a list of rewriters with their tallies.

        The tracker keeps one list for each op; so is it kept here, for its address.
        """
        tallies = [self._tallies.of(rewriter, self.group) for rewriter in rewriters]
        known = self._known[id(rewriters)] = rewriters, tallies
        return known


def _nothing_tracked(op: Op) -> list[NodeRewriter]:
    return []


class GroupTries(PassTries):
    """The members of a group of node rewriters, which it tries on one node after the other.

    Attributes
    ----------
    n_tried, n_offered
        How many nodes the group has been given, and for how many it had something to put there.
    """

    __slots__ = ("_is_open", "_running", "_start", "n_offered", "n_tried")

    def __init__(self, tallies: Tallies, group: Tally) -> None:
        super().__init__(tallies, group)
        self.n_tried = self.n_offered = 0
        self._is_open = False
        # The member that is at work, and since when.
        self._running: Tally | None = None
        self._start = 0.0

    def candidates(self, op: Op) -> Iterator[NodeRewriter]:
        """Yield those that track ``op``, until one has something to put in the node's place.

        The group stops asking for members when one has, and drops this iterator.
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
            # After the group is done, it is dropped by what handled an exception.
            if self._is_open and tally is not None:
                tally.fired += 1
                tally.seconds += perf_counter() - self._start
            raise
        finally:
            if self._is_open:
                self._running = None

    def open(self, tracker: OpToRewriterTracker | None) -> None:
        """Note that the group begins with a node; ``tracker`` is what it asks for its members."""
        if tracker is not self.tracker:
            self.ask(tracker)
        self.n_tried += 1
        self._is_open = True

    def close(self) -> None:
        """Note that it is done with the node, and the time of a member that raised."""
        self._is_open = False
        if self._running is not None:
            self._running.seconds += perf_counter() - self._start
            self._running = None


@told_of("on_import", "on_prune")
class NodeCounter(PassingFeature):
    """Counts the nodes that enter a graph, and those that leave it.

    Attributes
    ----------
    tallies
        Those of the pass that runs, whose node rewriter at work is to be told, too.
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
