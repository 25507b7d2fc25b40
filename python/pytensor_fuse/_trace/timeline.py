"""Timelines: a trace as nested spans, for profile viewers.

Calls of one thread follow each other; those of several threads are in separate rows. Starts are
seconds since the trace began. Items of which a trace records only sums, node rewriters and repeated
passes, are side by side within their parent.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from pytensor_fuse._trace.bars import Bar, bars_of, start_of, width_of
from pytensor_fuse._trace.records import TracedCall, TracedPass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytensor_fuse._trace.recording import Recording

# The row of passes outside any call, whose thread is not recorded.
_OUTSIDE = "outside calls of pytensor.function"


@dataclass
class Span:
    """An item from its start to its end, in seconds, with its inner spans in order.

    The inner spans of a span do not overlap, and do not exceed it.
    """

    bar: Bar
    start: float
    end: float
    inner: list[Span] = field(default_factory=list)


@dataclass(frozen=True)
class Row:
    """Consecutive spans, under a name."""

    name: str
    spans: list[Span]


def timeline(recording: Recording) -> list[Row]:
    """Return the rows of a recording; O(n log n) for n calls, passes and node rewriters."""
    rows: list[Row] = []
    named: dict[str, list[TracedPass | TracedCall]] = {}
    outermost: tuple[TracedPass | TracedCall, ...] = (*recording.calls, *recording.outside)
    for each in outermost:
        name = each.thread if isinstance(each, TracedCall) else _OUTSIDE
        named.setdefault(name, []).append(each)
    for name, those in named.items():
        # Threads with the same name may overlap.
        lanes: list[Row] = []
        for each in sorted(those, key=start_of):
            lane = next((lane for lane in lanes if lane.spans[-1].end <= start_of(each)), None)
            if lane is None:
                lane = Row(name if not lanes else f"{name} ({len(lanes) + 1})", [])
                lanes.append(lane)
            lane.spans.append(_span(bars_of(each), width_of(each)))
        rows += lanes
    return rows


def _span(bars: Sequence[Bar], width: float) -> Span:
    """Nest the bars of a call or pass in one span; the outermost have the lowest depth."""
    by_depth = [list(group) for _, group in groupby(sorted(bars, key=_depth), key=_depth)]
    first = by_depth[0][0]
    # A pass and the preceding attachment of its features are both outermost.
    top = Span(first, first.start, first.start + width)
    above = [top]
    if len(by_depth[0]) == 1:
        by_depth.pop(0)
    else:
        top.bar = by_depth[0][-1]
    for level in by_depth:
        spans = sorted((Span(b, b.start, b.start + b.width) for b in level), key=_start)
        starts = [span.start for span in above]
        for span in spans:
            # By its middle, since its ends coincide with those of neighbors up to rounding.
            at = bisect_right(starts, (span.start + span.end) / 2)
            above[max(at - 1, 0)].inner.append(span)
        above = spans
    _confine(top)
    return top


def _confine(span: Span) -> None:
    """Clip inner spans so that they fit and do not overlap, despite errors of measured times."""
    pending = [span]
    while pending:
        outer = pending.pop()
        free = outer.start
        for inner in outer.inner:
            inner.start = min(max(inner.start, free), outer.end)
            free = inner.end = min(max(inner.end, inner.start), outer.end)
        pending += outer.inner


def walk(spans: Iterable[Span]) -> Iterable[tuple[Span, bool]]:
    """Yield each span twice, in order: with True at its start, and with False at its end."""
    pending = [(span, True) for span in reversed(list(spans))]
    while pending:
        span, begins = pending.pop()
        yield span, begins
        if begins:
            pending.append((span, False))
            pending += [(inner, True) for inner in reversed(span.inner)]


def _depth(bar: Bar) -> int:
    return bar.depth


def _start(span: Span) -> float:
    return span.start
