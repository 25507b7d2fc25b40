"""Reports on the joins of a graph: whether each was eliminated, and why not."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytensor.compile.executor import Function

from pytensor_fuse._joins.notes import reports_of
from pytensor_fuse._joins.plans import JoinReason
from pytensor_fuse._pytensor.linking.makers import is_copy
from pytensor_fuse._reports.asked import function_or_graph, graph_of
from pytensor_fuse._reports.entries import Entries, plain

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Self

    from pytensor_fuse._joins.plans import JoinPlan
    from pytensor_fuse._reports.asked import GraphLike


@dataclass(frozen=True)
class JoinReport:
    """The result of the pass for one join.

    Attributes
    ----------
    join
        Its printed name.
    axis
        Its axis.
    reason
        `JoinReason.WRITTEN` if it was eliminated, else why not.
    streams
        The same for each stream; `JoinReason.KEPT` for a stream that could be written if the join
        were not kept.
    """

    join: str
    axis: int
    reason: JoinReason
    streams: tuple[JoinReason, ...]

    @property
    def eliminated(self) -> bool:
        """Whether kernels write into the result."""
        return self.reason is JoinReason.WRITTEN

    def __str__(self) -> str:
        written = sum(stream is JoinReason.WRITTEN for stream in self.streams)
        head = f"{self.join}: "
        if self.eliminated:
            head += f"eliminated, {written} of {len(self.streams)} streams written"
        else:
            head += f"kept: {self.reason.value}"
        copied = (
            f"  stream {i} is copied: {stream.value}"
            for i, stream in enumerate(self.streams)
            if stream is not JoinReason.WRITTEN
        )
        return "\n".join([head, *copied])


class JoinsKnown(enum.Enum):
    """The completeness of the reports on a graph's joins."""

    PASS_RAN = "the pass join_buffer_elimination has run over it"
    NOT_RUN = "the pass join_buffer_elimination has not run over it"
    UNKNOWN = (
        "what became of its joins is not known: it is a copy, was unpickled, or was not compiled "
        "here"
    )


class JoinReports(Entries[JoinReport]):
    """A tuple of a `JoinReport` for each join of a graph, which says if it is complete.

    Attributes
    ----------
    known
        Whether the reports are complete, as a `JoinsKnown`.
    """

    _if_empty = "there are no joins"
    known: JoinsKnown

    def __new__(cls, reports: Iterable[JoinReport], known: JoinsKnown) -> Self:
        made = super().__new__(cls, reports)
        made.known = known
        return made

    def __getnewargs__(self) -> tuple[tuple[JoinReport, ...], JoinsKnown]:
        return tuple(self), self.known

    def __str__(self) -> str:
        if self.known is JoinsKnown.PASS_RAN:
            return super().__str__()
        return "\n".join([*map(str, self), self.known.value])

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, ready for JSON.

        Returns
        -------
        dict
            ``format`` is the version of this layout, ``known`` the name of the `JoinsKnown`, and
            ``entries`` a list of dicts.
        """
        return super().to_dict() | {"known": plain(self.known)}


def report_of(plan: JoinPlan, join: str, reason: JoinReason) -> JoinReport:
    """Return the report on a planned join, given its printed name and the final reason."""
    reasons = (stream.reason for stream in plan.streams)
    if reason is not JoinReason.WRITTEN:
        # No stream is written into the result of a join that is kept.
        reasons = (JoinReason.KEPT if each is JoinReason.WRITTEN else each for each in reasons)
    return JoinReport(join, plan.axis, reason, tuple(reasons))


def explain_joins(graph: GraphLike) -> JoinReports:
    """Return the result of `join_buffer_elimination` for each join of a graph, with reasons.

    Parameters
    ----------
    graph : Function or FunctionGraph
        A compiled function, or its graph.

    Returns
    -------
    JoinReports
        A tuple of a `JoinReport` for each join. If it is empty, its attribute `known` says whether
        there are no joins, the pass did not run, or its result is no longer known. The latter
        happens for copies, and for unpickled functions whose joins had been eliminated before
        pickling.

    Raises
    ------
    TypeError
        If ``graph`` is neither a function nor a graph.

    Examples
    --------
    >>> import pytensor
    >>> import pytensor.tensor as pt
    >>> from pytensor_fuse import explain
    >>> x, y = pt.vectors("x", "y")
    >>> f = pytensor.function([x, y], pt.concatenate([x * 2 + 1, pt.exp(y) - 1]))
    >>> [report] = explain(f, "joins")
    >>> report.eliminated
    True
    >>> print(explain(pytensor.function([x], x * 2), "joins"))
    there are no joins
    >>> print(explain(f.copy(), "joins"))
    what became of its joins is not known: it is a copy, was unpickled, or was not compiled here
    """
    compiled = function_or_graph("explain", graph)
    # Imported here, since the ops come with C code that most programs do not need.
    from pytensor_fuse._joins.ops.join import WriteJoin

    fgraph = graph_of(compiled)
    n_there = sum(isinstance(node.op, WriteJoin) for node in fgraph.apply_nodes)
    reports = reports_of(fgraph)
    if reports is not None:
        # The graph may hold joins that were eliminated before the pass ran, if it was unpickled,
        # for instance.
        is_all = n_there <= sum(report.eliminated for report in reports)
        return JoinReports(reports, JoinsKnown.PASS_RAN if is_all else JoinsKnown.UNKNOWN)
    is_compiled_here = isinstance(compiled, Function) and not is_copy(compiled)
    known = JoinsKnown.NOT_RUN if is_compiled_here and not n_there else JoinsKnown.UNKNOWN
    return JoinReports((), known)
