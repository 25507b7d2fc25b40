"""Records: the parts of a trace."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class TracedRewriter:
    """The record of a node rewriter within a pass.

    Attributes
    ----------
    name
        Its registered name, or its own.
    group
        The name of the group of node rewriters that tries it, or None if the pass itself does.
    tried
        How often it was given a node, without nodes of ops that it does not track. None in an
        equilibrium whose class overrides ``apply``, which is not watched.
    fired
        How often its result entered the graph; for a member of a group, how often it returned a
        result. None if the pass raised before returning its profile.
    seconds
        Its time, including inner passes and calls and, outside a group, the change of the graph.
        None if the pass raised before returning its profile.
    own
        The seconds without the passes and calls that it started.
    created, removed
        Nodes that it added to and removed from the graph. A result of a group's member is inserted
        by the group, and counted there.
    """

    name: str
    group: str | None
    tried: int | None
    fired: int | None
    seconds: float | None
    own: float | None
    created: int
    removed: int


@dataclass(frozen=True)
class TracedRound:
    """A round of a pass that runs until nothing changes.

    Attributes
    ----------
    began
        Its start, in seconds since the trace began.
    seconds
        Its duration.
    nodes
        The number of nodes of the graph during the round.
    fired
        How often rewriters changed the graph in it.
    """

    began: float
    seconds: float
    nodes: int
    fired: int


@dataclass(frozen=True)
class TracedPass:
    """A run of a graph rewriter, or the sum of the repeated runs of one within a pass.

    Attributes
    ----------
    name
        Its registered name, or its own, or that of its class.
    kind
        The name of its class.
    within
        The name of the node rewriter of the enclosing pass that started it, or None.
    runs
        The number of summed runs: repeated runs of a clean-up pass in an equilibrium, or of a pass
        that node rewriters start, are not recorded separately.
    began
        The start of the (first) run, in seconds since the trace began.
    seconds
        Its time, including inner passes and calls.
    own
        The seconds without inner passes and calls, but including its node rewriters.
    requirements
        Seconds before its start for attaching the features that it and its parts require.
    nodes_before, nodes_after
        The numbers of nodes of the graph before and after it.
    created, removed
        Nodes added to and removed from the graph, including by inner passes on the same graph.
    error
        The exception that it raised, or None.
    rounds
        The rounds of an equilibrium; empty for other passes.
    rewriters
        Its node rewriters in the order of their first tries, followed by those never tried.
    inner
        The passes and calls that it started.
    """

    name: str
    kind: str
    within: str | None
    runs: int
    began: float
    seconds: float
    own: float
    requirements: float
    nodes_before: int
    nodes_after: int
    created: int
    removed: int
    error: str | None
    rounds: tuple[TracedRound, ...]
    rewriters: tuple[TracedRewriter, ...]
    inner: tuple[TracedPass | TracedCall, ...]

    @property
    def alone(self) -> float:
        """The seconds of the pass itself: its own without those of its node rewriters."""
        return self.own - sum(one.own or 0.0 for one in self.rewriters if one.group is None)


@dataclass(frozen=True)
class TracedCall:
    """A call of `pytensor.function`, or of another constructor of functions.

    Attributes
    ----------
    name
        The given name of the function, or None.
    where
        File and line of the caller outside libraries; if there are only libraries, the innermost
        line outside PyTensor and this package.
    thread
        The name of the thread.
    began
        Its start, in seconds since the trace began.
    seconds
        The time of the function maker: preparing the graph, rewriting, linking.
    rewriting
        The part of these seconds for passes, and for the features that they require.
    linking
        The part of these seconds for making thunks. Numba and JAX compile when a function first
        runs.
    nodes_before, nodes_after
        The numbers of nodes of the graph before and after rewriting.
    created, removed
        Nodes added to and removed from the graph.
    error
        The exception that it raised, or None.
    inner
        The passes on the graph, and the calls that linking made.
    cached
        When a graph from the cache was rewritten, in seconds since the epoch; None if this call
        rewrote it. A call with a cached graph has no passes and no counts of nodes.
    native
        Whether the function is machine code as a whole, without Numba; None if none was linked.
    """

    name: str | None
    where: str | None
    thread: str
    began: float
    seconds: float
    rewriting: float
    linking: float
    nodes_before: int
    nodes_after: int
    created: int
    removed: int
    error: str | None
    inner: tuple[TracedPass | TracedCall, ...]
    cached: float | None = None
    native: bool | None = None


@dataclass
class RewriterTotal:
    """The totals of a node rewriter over all passes of a trace; see `TracedRewriter`.

    Attributes
    ----------
    name
        Its name.
    tried, fired
        How often it was tried, and how often it fired.
    seconds
        Its time, including the passes and calls that it started.
    own
        Its time without the passes and calls that it started and, for a group, without its members.
    created, removed
        Nodes that it added to and removed from the graph.
    is_whole
        False if a pass raised before returning its profile, whose counts and times are then missing
        here.
    passes
        The names of its passes, in the order of their first use of it.
    """

    name: str
    tried: int = 0
    fired: int = 0
    seconds: float = 0.0
    own: float = 0.0
    created: int = 0
    removed: int = 0
    is_whole: bool = True
    passes: list[str] = field(default_factory=list)


@dataclass
class PassTotal:
    """The totals of a pass over all its runs in a trace; see `TracedPass`.

    Attributes
    ----------
    name
        Its name.
    runs
        The number of runs.
    seconds
        Its time, including inner passes and calls.
    own
        Its time without inner passes and calls, and without its node rewriters.
    created, removed
        Nodes added to and removed from the graph, including by inner passes on the same graph.
    """

    name: str
    runs: int = 0
    seconds: float = 0.0
    own: float = 0.0
    created: int = 0
    removed: int = 0
