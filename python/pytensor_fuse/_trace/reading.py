"""Construction of records from frames, when a trace is read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytensor.graph.rewriting.basic import Rewriter, SequentialGraphRewriter

from pytensor_fuse._reports.text import without_address
from pytensor_fuse._trace.frames import CallFrame, EquilibriumFrame, Frame, PassFrame
from pytensor_fuse._trace.records import TracedCall, TracedPass, TracedRewriter, TracedRound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._trace.tallies import Tally


def record_of(frame: Frame, start: float) -> TracedPass | TracedCall:
    """Return the record of a frame, with times in seconds since ``start``."""
    inner = [record_of(each, start) for each in frame.inner]
    if isinstance(frame, CallFrame):
        return _call_record(frame, start, inner)
    if isinstance(frame, PassFrame):
        return _pass_record(frame, start, inner)
    raise AssertionError(f"a frame of {type(frame).__name__}")


def _call_record(
    frame: CallFrame, start: float, inner: list[TracedPass | TracedCall]
) -> TracedCall:
    passes = [each for each in inner if isinstance(each, TracedPass)]
    return TracedCall(
        name=frame.name,
        where=frame.where,
        thread=frame.thread,
        began=frame.began - start,
        seconds=frame.seconds,
        rewriting=sum(each.seconds + each.requirements for each in passes),
        linking=frame.linking,
        nodes_before=passes[0].nodes_before if passes else 0,
        nodes_after=passes[-1].nodes_after if passes else 0,
        created=sum(each.created for each in passes),
        removed=sum(each.removed for each in passes),
        error=frame.error,
        inner=tuple(inner),
        cached=frame.cached,
        native=frame.native,
    )


def _pass_record(
    frame: PassFrame, start: float, inner: list[TracedPass | TracedCall]
) -> TracedPass:
    frame.settle()
    rewriter = frame.rewriter
    is_sequence = isinstance(rewriter, SequentialGraphRewriter)
    equilibrium = frame if isinstance(frame, EquilibriumFrame) else None
    # A pass that raised has no profile, and one whose class overrides `apply` is not watched.
    is_profiled = equilibrium is None or equilibrium.profiled > 0
    is_watched = equilibrium is None or equilibrium.is_watched
    return TracedPass(
        name=name_of(rewriter),
        kind=type(rewriter).__name__,
        within=None if frame.within is None else name_of(frame.within.rewriter),
        runs=1,
        began=frame.began - start,
        seconds=frame.seconds,
        own=frame.seconds - frame.inside,
        requirements=frame.requirements,
        nodes_before=frame.nodes.before,
        nodes_after=frame.nodes.after,
        created=frame.nodes.created,
        removed=frame.nodes.removed,
        error=frame.error,
        rounds=() if equilibrium is None else _round_records(equilibrium, start),
        rewriters=tuple(
            _rewriter_record(tally, is_profiled, is_watched) for tally in frame.tallies.in_order()
        ),
        # The order of the passes of a sequence is meaningful.
        inner=tuple(inner) if is_sequence else _summed(inner),
    )


def _round_records(frame: EquilibriumFrame, start: float) -> tuple[TracedRound, ...]:
    rounds = []
    began = frame.began - start
    for seconds, nodes, fired in frame.rounds:
        rounds.append(TracedRound(began, seconds, nodes, fired))
        began += seconds
    return tuple(rounds)


def _rewriter_record(tally: Tally, is_profiled: bool, is_watched: bool) -> TracedRewriter:
    """Return the record of a node rewriter; counts of a group's members are always known."""
    group = tally.group
    is_timed = is_profiled or group is not None
    return TracedRewriter(
        name=name_of(tally.rewriter),
        group=None if group is None else name_of(group.rewriter),
        tried=tally.tried if is_watched or group is not None else None,
        fired=tally.fired if is_timed else None,
        seconds=tally.seconds if is_timed else None,
        own=tally.seconds - tally.inside if is_timed else None,
        created=tally.created,
        removed=tally.removed,
    )


def _summed(inner: list[TracedPass | TracedCall]) -> tuple[TracedPass | TracedCall, ...]:
    """Add up the runs of each pass; the sums are in the order of the first runs."""
    alike: dict[object, list[TracedPass]] = {}
    result: list[TracedPass | TracedCall] = []
    for each in inner:
        if isinstance(each, TracedCall):
            result.append(each)
        else:
            alike.setdefault((each.name, each.kind, each.within), []).append(each)
    result.extend(_sum(runs) if len(runs) > 1 else runs[0] for runs in alike.values())
    return tuple(sorted(result, key=lambda each: each.began))


def _sum(runs: list[TracedPass]) -> TracedPass:
    first, last = runs[0], runs[-1]
    rewriters: dict[object, list[TracedRewriter]] = {}
    for each in runs:
        for rewriter in each.rewriters:
            rewriters.setdefault((rewriter.name, rewriter.group), []).append(rewriter)
    errors = [each.error for each in runs if each.error is not None]
    return replace(
        first,
        **_totals(runs, "runs", "seconds", "own", "requirements", "created", "removed"),
        nodes_after=last.nodes_after,
        error=errors[0] if errors else None,
        rounds=(),
        rewriters=tuple(
            replace(
                same[0], **_totals(same, "tried", "fired", "seconds", "own", "created", "removed")
            )
            for same in rewriters.values()
        ),
        inner=_summed([each for run in runs for each in run.inner]),
    )


def _totals(
    records: Sequence[TracedPass] | Sequence[TracedRewriter], *names: str
) -> dict[str, Any]:
    """Return the sums of some fields, None for a field that is unknown in a record."""
    columns = {name: [getattr(each, name) for each in records] for name in names}
    return {name: None if None in values else sum(values) for name, values in columns.items()}


def name_of(rewriter: Rewriter) -> str:
    """Return the usual name of a rewriter, the same in every process."""
    for attribute in ("name", "__name__"):
        name = getattr(rewriter, attribute, None)
        if isinstance(name, str) and name:
            # A rewriter added by a query has its address in its name.
            return name.replace(f"_{id(rewriter)}", "")
    if type(rewriter).__str__ is object.__str__ or isinstance(rewriter, SequentialGraphRewriter):
        return type(rewriter).__name__
    try:
        text = str(rewriter)
    except Exception:
        return type(rewriter).__name__
    return without_address(text)
