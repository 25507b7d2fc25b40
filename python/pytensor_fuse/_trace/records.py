"""What a trace is made of."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class TracedRewriter:
    """What a node rewriter did within a pass.

    Attributes
    ----------
    name
        The name it is registered under, or its own.
    group
        The name of the group of node rewriters that it is tried by, or None if the pass tries it.
    tried
        How often it was given a node; nodes of ops that it does not track are not counted. None in
        an equilibrium whose class has an ``apply`` of its own, which is not watched.
    fired
        How often the graph took what it returned; of a member of a group, how often it returned
        something. None if the pass raised before it could say.
    seconds
        What it took, with what it started inside and, outside a group, the change of the graph.
        None if the pass raised before it could say.
    own
        The seconds without the passes and calls that it started.
    created, removed
        Nodes that entered and left the graph by it. What the member of a group returned is put into
        the graph for the group, and counts there.
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
    """A round of a pass that goes on until nothing changes.

    Attributes
    ----------
    began
        Seconds since the trace began.
    seconds
        What it took.
    nodes
        Nodes of the graph as the round went through it.
    fired
        How often rewriters changed the graph in it.
    """

    began: float
    seconds: float
    nodes: int
    fired: int


@dataclass(frozen=True)
class TracedPass:
    """A run of a graph rewriter, or several that a pass makes again and again.

    Attributes
    ----------
    name
        The name it is registered under, or its own, or that of its class.
    kind
        The name of its class.
    within
        The name of the node rewriter of the enclosing pass that started it, or None.
    runs
        How many runs this is the sum of: those of a clean-up in an equilibrium, and those that node
        rewriters start, are not told apart.
    began
        Seconds from the beginning of the trace to that of the (first) run.
    seconds
        What it took, with what it started inside.
    own
        The seconds without the passes and calls inside, but with those of its node rewriters.
    requirements
        Seconds before that, for the features that the pass and those in it asked for.
    nodes_before, nodes_after
        Nodes of the graph.
    created, removed
        Nodes that entered and left the graph, with what was started inside on the same graph.
    error
        What it raised, or None.
    rounds
        The rounds of an equilibrium; empty for other passes.
    rewriters
        The node rewriters that it has, in the order in which it came to them, those that were never
        tried at the end.
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
        """The seconds that it took by itself: its own without those of its node rewriters."""
        return self.own - sum(one.own or 0.0 for one in self.rewriters if one.group is None)


@dataclass(frozen=True)
class TracedCall:
    """A call of `pytensor.function`, or of another that makes a function.

    Attributes
    ----------
    name
        The name given to the function, or None.
    where
        File and line of the program that called, outside libraries; where only these run, the
        innermost line of one other than PyTensor and this package.
    thread
        The name of the thread.
    began
        Seconds since the trace began.
    seconds
        What the function's maker took: preparing the graph, rewriting, linking.
    rewriting
        Of these, those of the passes, and of the features that they ask for.
    linking
        Of these, those of making the thunks. Numba and JAX compile when a function is first run.
    nodes_before, nodes_after
        Nodes of the graph before and after rewriting.
    created, removed
        Nodes that entered and left the graph.
    error
        What it raised, or None.
    inner
        The passes on the graph, and the calls that linking made.
    cached
        When the graph was rewritten that was taken from the cache, in seconds since the epoch; None
        if it was rewritten by this call. Such a call has no passes, and counts no nodes.
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
    """What a node rewriter did in all passes of a trace; see `TracedRewriter`.

    Attributes
    ----------
    name
        Its name.
    tried, fired
        How often it was tried, and how often it fired.
    seconds
        What it took, with what it started inside.
    own
        What it took by itself: without the passes and calls that it started and, of a group,
        without its members.
    created, removed
        Nodes that entered and left the graph by it.
    is_whole
        False if a pass raised before it could say how often the rewriter fired, and how long it
        took; that is then missing here.
    passes
        The names of the passes, in the order in which they came to it.
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
    """What all runs of a pass in a trace did; see `TracedPass`.

    Attributes
    ----------
    name
        Its name.
    runs
        How often it ran.
    seconds
        What it took, with what it started inside.
    own
        What it took by itself: without the passes and calls inside, and without its node rewriters.
    created, removed
        Nodes that entered and left the graph, with what was started inside on the same graph.
    """

    name: str
    runs: int = 0
    seconds: float = 0.0
    own: float = 0.0
    created: int = 0
    removed: int = 0
