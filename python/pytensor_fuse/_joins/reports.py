"""What became of each join of a graph, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pytensor.compile.executor import Function

from pytensor_fuse._joins.plans import JoinReason

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph


@dataclass(frozen=True)
class JoinReport:
    """What became of one join.

    Attributes
    ----------
    join
        Its printed name.
    axis
        Its axis.
    reason
        `JoinReason.WRITTEN` if it was eliminated, else why not.
    streams
        The same for each stream.
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
        return "\n".join(
            [
                head,
                *(
                    f"  stream {i} is copied: {stream.value}"
                    for i, stream in enumerate(self.streams)
                    if stream is not JoinReason.WRITTEN
                ),
            ]
        )


_reports: WeakKeyDictionary[FunctionGraph, tuple[JoinReport, ...]] = WeakKeyDictionary()


def note_reports(fgraph: FunctionGraph, reports: tuple[JoinReport, ...]) -> None:
    """Keep what became of the joins of a graph for as long as the graph is there."""
    _reports[fgraph] = reports


def reports_of(fgraph: FunctionGraph) -> tuple[JoinReport, ...] | None:
    """Return what was kept of a graph; None if the pass has not run over it."""
    return _reports.get(fgraph)


def explain_joins(compiled: Function | FunctionGraph) -> tuple[JoinReport, ...]:
    """Return what `join_buffer_elimination` did about each join of a graph, and why.

    Parameters
    ----------
    compiled
        A compiled function, or its graph. Empty for one that was compiled without the pass, or
        unpickled.
    """
    fgraph = compiled.maker.fgraph if isinstance(compiled, Function) else compiled
    return _reports.get(fgraph, ())
