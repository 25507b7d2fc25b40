"""Frames: calls of functions' makers and runs of passes, each from its start to its end.

A frame is within the one that was running in its thread when it began.
"""

from __future__ import annotations

import threading
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING

from pytensor_fuse._pytensor.provenance import calling_line
from pytensor_fuse._pytensor.rewriting_passes import (
    EquilibriumProfile,
    equilibrium_profile,
    passes_beside,
    walk_profile,
)
from pytensor_fuse._trace.tallies import GroupTries, NodeCounter, PassTries, Tallies, Tally

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph
    from pytensor.graph.rewriting.basic import (
        GraphRewriter,
        NodeRewriter,
        OpToRewriterTracker,
    )

# Of the text of an error.
_MOST_LETTERS = 300

_serials = count()


def next_serial() -> int:
    """Return a number greater than those of all that began before."""
    return next(_serials)


class Frame:
    """What runs or has run: its clock, what it is within, and what it started itself."""

    __slots__ = (
        "began",
        "error",
        "inner",
        "inside",
        "parent",
        "seconds",
        "serial",
        "tries",
        "within",
    )

    def __init__(self, parent: Frame | None, rewriter: GraphRewriter | None = None) -> None:
        self.serial = next(_serials)
        self.parent = parent
        # The node rewriter of the parent that started this.
        self.within: Tally | None = None if parent is None else parent.starter_of(rewriter)
        # What asks for node rewriters to try right now, if any: the pass itself or a group of it.
        self.tries: PassTries | None = None
        self.inner: list[Frame] = []
        self.error: str | None = None
        self.seconds = 0.0
        # Of these, those of the inner frames.
        self.inside = 0.0
        self.began = perf_counter()

    def starter_of(self, rewriter: GraphRewriter | None) -> Tally | None:
        """Return the node rewriter that starts a pass, or a call, within this right now."""
        return None

    def end(self, error: BaseException | None, prepared: float = 0.0) -> None:
        """Stop the clock, and hand the frame to what it is within.

        Its parent spent ``prepared`` seconds on it before it began.
        """
        elapsed = perf_counter() - self.began
        self.seconds += elapsed
        if error is not None:
            self.fail(error)
        if self.parent is not None:
            self.parent.inner.append(self)
            self._add_to_parent(elapsed + prepared)

    def fail(self, error: BaseException) -> None:
        """Keep what was raised, as text."""
        self.error = _error_text(error)

    def _add_to_parent(self, seconds: float) -> None:
        if self.parent is not None:
            self.parent.inside += seconds
        if self.within is not None:
            self.within.add_inside(seconds)


class CallFrame(Frame):
    """A call of a function's maker."""

    __slots__ = ("cached", "linking", "name", "native", "thread", "where")

    def __init__(self, parent: Frame | None, name: object) -> None:
        super().__init__(parent)
        line = calling_line()
        self.name = _name_text(name)
        self.where = None if line is None else f"{line.file}:{line.line}"
        self.thread = threading.current_thread().name
        self.linking = 0.0
        # When its graph was rewritten, if that was not now.
        self.cached: float | None = None
        # Whether what was linked is machine code.
        self.native: bool | None = None

    def add_linking(self, seconds: float) -> None:
        """Add what came after the frame ended."""
        self.linking = seconds
        self.seconds += seconds
        self._add_to_parent(seconds)


class NodeCounts:
    """The nodes of a graph before and after a pass, and those that came and went in it."""

    __slots__ = ("after", "before", "counter", "created", "removed")

    def __init__(self, fgraph: FunctionGraph, counter: NodeCounter) -> None:
        # One for all passes that are within each other on the same graph.
        self.counter: NodeCounter | None = counter
        self.before = self.after = len(fgraph.apply_nodes)
        # Until the pass is done: what had been counted before it.
        self.created, self.removed = counter.created, counter.removed

    def finish(self, fgraph: FunctionGraph) -> None:
        """Take the numbers of what the pass has left."""
        assert self.counter is not None
        self.after = len(fgraph.apply_nodes)
        self.created = self.counter.created - self.created
        self.removed = self.counter.removed - self.removed
        self.counter = None


class PassFrame(Frame):
    """A run of a graph rewriter."""

    __slots__ = (
        "fgraph",
        "groups",
        "nodes",
        "profiled",
        "requirements",
        "rewriter",
        "tallies",
    )

    def __init__(
        self,
        parent: Frame | None,
        rewriter: GraphRewriter,
        fgraph: FunctionGraph,
        nodes: NodeCounts,
    ) -> None:
        super().__init__(parent, rewriter)
        self.rewriter = rewriter
        # A trace does not keep graphs: None once the pass is done.
        self.fgraph: FunctionGraph | None = fgraph
        self.nodes = nodes
        # Seconds before it began, in which what it asks of the graph was attached.
        self.requirements = 0.0
        self.tallies = Tallies()
        # The groups of node rewriters, by the address of the tally.
        self.groups: dict[int, GroupTries] = {}
        # How many profiles the methods of its class, and those of base classes, have returned.
        self.profiled = 0

    def starter_of(self, rewriter: GraphRewriter | None) -> Tally | None:
        """Return the node rewriter that starts a pass, or a call, within this right now."""
        return self.tallies.current

    def new_group(self, tally: Tally) -> GroupTries:
        """Return what counts the members of a group of node rewriters, from its first node on."""
        group = self.groups[id(tally)] = GroupTries(self.tallies, tally)
        return group

    def take_profile(self, result: object) -> None:
        """Keep what a method of the pass returned, as far as it tells of node rewriters."""

    def finish(self, fgraph: FunctionGraph, error: BaseException | None) -> None:
        """End, and forget what is of use only while the pass runs."""
        self.nodes.finish(fgraph)
        self.fgraph = self.tallies.current = self.tries = None
        self.groups.clear()
        self.end(error, self.requirements)

    def settle(self) -> None:
        """Give the tallies what only the pass as a whole knows; for when the frame is read."""


class WalkFrame(PassFrame):
    """A run of a pass that tries one node rewriter on each node it comes by."""

    __slots__ = ("is_busy", "n_offered", "n_tried", "node_rewriter", "tally")

    def __init__(
        self,
        parent: Frame | None,
        rewriter: GraphRewriter,
        fgraph: FunctionGraph,
        nodes: NodeCounts,
        node_rewriter: NodeRewriter,
    ) -> None:
        super().__init__(parent, rewriter, fgraph, nodes)
        self.node_rewriter = node_rewriter
        self.tally = self.tallies.current = self.tallies.of(node_rewriter)
        # Whether it is at work: what it calls by itself is no try of the pass's.
        self.is_busy = False
        # How often it did not refuse the op of a node, and had something for the node's place.
        self.n_tried = self.n_offered = 0

    def take_profile(self, result: object) -> None:
        """Keep how often the node rewriter fired, and the time of the walk."""
        profile = walk_profile(result)
        if profile is not None:
            self.tally.fired += profile.fired
            self.tally.seconds += profile.seconds
            self.profiled += 1

    def finish(self, fgraph: FunctionGraph, error: BaseException | None) -> None:
        """End; without a profile, all the time is the node rewriter's."""
        group = self.groups.get(id(self.tally))
        if group is not None:
            self.n_tried += group.n_tried
            self.n_offered += group.n_offered
        super().finish(fgraph, error)
        self.tally.tried = self.n_tried
        if not self.profiled:
            self.tally.seconds, self.tally.fired = self.seconds, self.n_offered


class EquilibriumFrame(PassFrame):
    """A run of a pass that tries its node rewriters until nothing changes."""

    __slots__ = ("_own_tries", "_passes", "_profiles", "is_watched", "rounds")

    def __init__(
        self,
        parent: Frame | None,
        rewriter: GraphRewriter,
        fgraph: FunctionGraph,
        nodes: NodeCounts,
    ) -> None:
        super().__init__(parent, rewriter, fgraph, nodes)
        self._passes = passes_beside(rewriter)
        self.tries = self._own_tries = PassTries(self.tallies)
        # Whether PyTensor's own method has asked which node rewriters to try.
        self.is_watched = False
        self._profiles: list[EquilibriumProfile] = []
        # Seconds, nodes and changes of each round.
        self.rounds: tuple[tuple[float, int, int], ...] = ()

    def starter_of(self, rewriter: GraphRewriter | None) -> Tally | None:
        """Return the node rewriter at work, unless the equilibrium itself starts the pass."""
        at_work = self.tallies.current
        return None if at_work is None or rewriter in self._passes else at_work

    def watch(self, tracker: OpToRewriterTracker | None) -> OpToRewriterTracker | None:
        """Count what ``tracker`` is asked for from now on; return what it was before."""
        self.is_watched |= tracker is not None
        return self._own_tries.ask(tracker)

    def take_profile(self, result: object) -> None:
        """Keep what is said of the rounds, and of the node rewriters for later."""
        profile = equilibrium_profile(result)
        if profile is not None:
            self.rounds += profile.rounds
            self._profiles.append(profile)
            self.profiled += 1

    def finish(self, fgraph: FunctionGraph, error: BaseException | None) -> None:
        """End, and forget which node rewriters track which op."""
        self._own_tries.forget()
        super().finish(fgraph, error)

    def settle(self) -> None:
        """Give the tallies what the profiles say."""
        profiles, self._profiles = self._profiles, []
        for profile in profiles:
            for rewriter, seconds, fired in profile.node_rewriters():
                tally = self.tallies.of(rewriter)
                tally.seconds += seconds
                tally.fired += fired


def _name_text(name: object) -> str | None:
    """Return a function's name as text: PyTensor takes any object for one."""
    try:
        return None if name is None else str(name)
    except Exception:
        return type(name).__name__


def _error_text(error: BaseException) -> str:
    """Return the kind of an error and how its text begins."""
    try:
        text = str(error)
    except Exception:
        text = "(its text cannot be made)"
    first = (text.splitlines() or [""])[0]
    return f"{type(error).__name__}: {first[:_MOST_LETTERS]}"
