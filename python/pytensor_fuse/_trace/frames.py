"""Frames: calls of function makers and runs of passes, each from its start to its end.

The parent of a frame is the innermost open frame of its thread at its start.
"""

from __future__ import annotations

import threading
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING

from pytensor_fuse._pytensor.graphs.provenance import calling_line
from pytensor_fuse._pytensor.rewriting.passes import (
    EquilibriumProfile,
    equilibrium_profile,
    passes_beside,
    walk_profile,
)
from pytensor_fuse._trace.tallies import GroupTries, NodeCounter, PassTries, Tallies, Tally

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph
    from pytensor.graph.rewriting.basic import GraphRewriter, NodeRewriter, OpToRewriterTracker

# The maximum length of an error's text.
_MOST_LETTERS = 300

_serials = count()


def next_serial() -> int:
    """Return a number greater than the serials of all earlier frames."""
    return next(_serials)


class Frame:
    """A running or finished item: its clock, its parent, and the frames that it started."""

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
        # The node rewriter of the parent that started this frame.
        self.within: Tally | None = None if parent is None else parent.starter_of(rewriter)
        # The iteration over node rewriters in progress, if any: the pass's own or a group's.
        self.tries: PassTries | None = None
        self.inner: list[Frame] = []
        self.error: str | None = None
        self.seconds = 0.0
        # The part of ``seconds`` that was spent in inner frames.
        self.inside = 0.0
        self.began = perf_counter()

    def starter_of(self, rewriter: GraphRewriter | None) -> Tally | None:
        """Return the node rewriter at work, as the starter of an inner pass or call."""
        return None

    def end(self, error: BaseException | None, prepared: float = 0.0) -> None:
        """Stop the clock, and add the frame to its parent.

        The parent spent ``prepared`` seconds on the frame before its start.
        """
        elapsed = perf_counter() - self.began
        self.seconds += elapsed
        if error is not None:
            self.fail(error)
        if self.parent is not None:
            self.parent.inner.append(self)
            self._add_to_parent(elapsed + prepared)

    def fail(self, error: BaseException) -> None:
        """Record an exception, as text."""
        self.error = _error_text(error)

    def _add_to_parent(self, seconds: float) -> None:
        if self.parent is not None:
            self.parent.inside += seconds
        if self.within is not None:
            self.within.add_inside(seconds)


class CallFrame(Frame):
    """A call of a function maker."""

    __slots__ = ("cached", "linking", "name", "native", "thread", "where")

    def __init__(self, parent: Frame | None, name: object) -> None:
        super().__init__(parent)
        line = calling_line()
        self.name = _name_text(name)
        self.where = None if line is None else f"{line.file}:{line.line}"
        self.thread = threading.current_thread().name
        self.linking = 0.0
        # When the graph was rewritten, if it came from the cache.
        self.cached: float | None = None
        # Whether the linked function is machine code.
        self.native: bool | None = None

    def add_linking(self, seconds: float) -> None:
        """Add the time of linking, which follows the end of the frame."""
        self.linking = seconds
        self.seconds += seconds
        self._add_to_parent(seconds)


class NodeCounts:
    """The nodes of a graph before and after a pass, and the numbers created and removed by it."""

    __slots__ = ("after", "before", "counter", "created", "removed")

    def __init__(self, fgraph: FunctionGraph, counter: NodeCounter) -> None:
        # Shared by nested passes on the same graph.
        self.counter: NodeCounter | None = counter
        self.before = self.after = len(fgraph.apply_nodes)
        # While the pass runs: the counts at its start.
        self.created, self.removed = counter.created, counter.removed

    def finish(self, fgraph: FunctionGraph) -> None:
        """Compute the numbers at the end of the pass."""
        assert self.counter is not None
        self.after = len(fgraph.apply_nodes)
        self.created = self.counter.created - self.created
        self.removed = self.counter.removed - self.removed
        self.counter = None


class PassFrame(Frame):
    """A run of a graph rewriter."""

    __slots__ = ("fgraph", "groups", "nodes", "profiled", "requirements", "rewriter", "tallies")

    def __init__(
        self,
        parent: Frame | None,
        rewriter: GraphRewriter,
        fgraph: FunctionGraph,
        nodes: NodeCounts,
    ) -> None:
        super().__init__(parent, rewriter)
        self.rewriter = rewriter
        # None once the pass is done, so that a trace does not keep graphs alive.
        self.fgraph: FunctionGraph | None = fgraph
        self.nodes = nodes
        # Seconds before its start for attaching the features that it requires.
        self.requirements = 0.0
        self.tallies = Tallies()
        # The groups of node rewriters, by the addresses of their tallies.
        self.groups: dict[int, GroupTries] = {}
        # The number of profiles returned so far by the methods of its class and base classes.
        self.profiled = 0

    def starter_of(self, rewriter: GraphRewriter | None) -> Tally | None:
        """Return the node rewriter at work, as the starter of an inner pass or call."""
        return self.tallies.current

    def new_group(self, tally: Tally) -> GroupTries:
        """Return the counter of the members of a group, created at the group's first node."""
        group = self.groups[id(tally)] = GroupTries(self.tallies, tally)
        return group

    def take_profile(self, result: object) -> None:
        """Record the part about node rewriters of a method's return value."""

    def finish(self, fgraph: FunctionGraph, error: BaseException | None) -> None:
        """End the frame, and drop the state of the running pass."""
        self.nodes.finish(fgraph)
        self.fgraph = self.tallies.current = self.tries = None
        self.groups.clear()
        self.end(error, self.requirements)

    def settle(self) -> None:
        """Complete the tallies from the data of the whole pass, when the frame is read."""


class WalkFrame(PassFrame):
    """A run of a pass that tries one node rewriter on each node of a walk."""

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
        # Whether the node rewriter is running: its own recursive calls are not tries of the pass.
        self.is_busy = False
        # How often it tracked the op of a node, and how often it returned a replacement.
        self.n_tried = self.n_offered = 0

    def take_profile(self, result: object) -> None:
        """Record how often the node rewriter fired, and the time of the walk."""
        profile = walk_profile(result)
        if profile is not None:
            self.tally.fired += profile.fired
            self.tally.seconds += profile.seconds
            self.profiled += 1

    def finish(self, fgraph: FunctionGraph, error: BaseException | None) -> None:
        """End the frame; without a profile, the node rewriter is charged for all the time."""
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
        # Whether PyTensor's own method has iterated over the tracked node rewriters.
        self.is_watched = False
        self._profiles: list[EquilibriumProfile] = []
        # Seconds, nodes and changes of each round.
        self.rounds: tuple[tuple[float, int, int], ...] = ()

    def starter_of(self, rewriter: GraphRewriter | None) -> Tally | None:
        """Return the node rewriter at work, unless the equilibrium itself starts the pass."""
        at_work = self.tallies.current
        return None if at_work is None or rewriter in self._passes else at_work

    def watch(self, tracker: OpToRewriterTracker | None) -> OpToRewriterTracker | None:
        """Count the queries of ``tracker`` from now on; return the previous tracker."""
        self.is_watched |= tracker is not None
        return self._own_tries.ask(tracker)

    def take_profile(self, result: object) -> None:
        """Record the rounds, and keep the data of the node rewriters for `settle`."""
        profile = equilibrium_profile(result)
        if profile is not None:
            self.rounds += profile.rounds
            self._profiles.append(profile)
            self.profiled += 1

    def finish(self, fgraph: FunctionGraph, error: BaseException | None) -> None:
        """End the frame, and drop the lists of node rewriters by op."""
        self._own_tries.forget()
        super().finish(fgraph, error)

    def settle(self) -> None:
        """Add the data of the profiles to the tallies."""
        profiles, self._profiles = self._profiles, []
        for profile in profiles:
            for rewriter, seconds, fired in profile.node_rewriters():
                tally = self.tallies.of(rewriter)
                tally.seconds += seconds
                tally.fired += fired


def _name_text(name: object) -> str | None:
    """Return a function's name as text: PyTensor accepts any object as a name."""
    try:
        return None if name is None else str(name)
    except Exception:
        return type(name).__name__


def _error_text(error: BaseException) -> str:
    """Return the class of an error and the start of its message."""
    try:
        text = str(error)
    except Exception:
        text = "(its text cannot be made)"
    first = (text.splitlines() or [""])[0]
    return f"{type(error).__name__}: {first[:_MOST_LETTERS]}"
